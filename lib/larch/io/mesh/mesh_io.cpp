// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/mesh/mesh_io.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch {
namespace io {

namespace {
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
}  // namespace

std::string_view Words::word() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  const size_t start = at_;
  while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::string_view Words::line() {
  const size_t start = at_;
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  at_ = std::min(end + 1, text_.size());
  std::string_view line = text_.substr(start, end - start);
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return line;
}

double Words::number() {
  return number_of(*path_, word());
}
int64_t Words::integer() {
  return integer_of(*path_, word());
}

std::string_view Words::bytes(int64_t count) {
  check_count(*path_, count, 1, left(), "bytes");
  const std::string_view taken = text_.substr(at_, static_cast<size_t>(count));
  at_ += static_cast<size_t>(count);
  return taken;
}

double number_of(const std::string& path, std::string_view word) {
  if (!word.empty() && word.front() == '+') word.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool underflow = error == std::errc::result_out_of_range && std::abs(value) < 1;
  if (end != word.data() + word.size() || word.empty() || (error != std::errc() && !underflow)) {
    bad(path, "expected a number, found '" + std::string(word.substr(0, 40)) +
                  "'; the file is damaged or truncated");
  }
  return value;
}

int64_t integer_of(const std::string& path, std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || word.empty() || error != std::errc()) {
    bad(path, "expected a whole number, found '" + std::string(word.substr(0, 40)) +
                  "'; the file is damaged or truncated");
  }
  return value;
}

void check_count(const std::string& path, int64_t count, int64_t least_bytes, int64_t available,
                 const char* what) {
  if (count >= 0 && count <= available / least_bytes) return;
  bad(path, "the file promises " + std::to_string(count) + " " + what +
                ", more than it can hold; it is truncated or damaged");
}

void add_polygon(Mesh& mesh, const std::vector<int64_t>& corners, const std::string& path) {
  if (corners.size() < 3) {
    bad(path, "a face has " + std::to_string(corners.size()) + " corners; give triangles");
  }
  const auto vertices = static_cast<int64_t>(mesh.vertices_mm.size());
  for (const int64_t corner : corners) {
    if (corner < 0 || corner >= vertices) {
      bad(path, "a face refers to vertex " + std::to_string(corner) + ", but there are " +
                    std::to_string(vertices) + "; the file is damaged");
    }
  }
  for (size_t i = 2; i < corners.size(); ++i) {
    mesh.triangles.push_back({static_cast<int32_t>(corners[0]),
                              static_cast<int32_t>(corners[i - 1]),
                              static_cast<int32_t>(corners[i])});
  }
}

void flip_ras_lps(Mesh& mesh) {
  for (Vec3d& v : mesh.vertices_mm) v = {-v.x + 0.0, -v.y + 0.0, v.z};
}

void finish_mesh(const Mesh& mesh, const std::string& path) {
  if (mesh.vertices_mm.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    bad(path, "more vertices than 32 bits can count; simplify the mesh");
  }
  for (const Vec3d& v : mesh.vertices_mm) {
    if (!std::isfinite(v.x) || !std::isfinite(v.y) || !std::isfinite(v.z)) {
      bad(path, "a vertex has a coordinate that is not finite; the file is damaged");
    }
  }
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value + 0.0);
  return text;
}

namespace {
template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
}  // namespace

void put_little(std::string& out, float value) {
  put(out, value);
}
void put_little(std::string& out, uint32_t value) {
  put(out, value);
}
void put_big(std::string& out, float value) {
  put(out, byte_swapped(value));
}
void put_big(std::string& out, int32_t value) {
  put(out, byte_swapped(value));
}

namespace {

// One row per format; a new one needs nothing else.
struct MeshFormat {
  const char* extension;
  Mesh (*parse)(const std::string& path, std::string_view bytes);
  std::string (*format)(const Mesh& mesh, std::span<const VertexNumbers> numbers);
};
constexpr MeshFormat kMeshFormats[] = {
    {".vtk", parse_vtk, format_vtk},     {".obj", parse_obj, format_obj},
    {".gii", parse_gifti, format_gifti}, {".ply", parse_ply, format_ply},
    {".stl", parse_stl, format_stl},
};

const MeshFormat* find_format(const std::string& path) {
  const std::string extension = file_extension(path);
  for (const MeshFormat& format : kMeshFormats) {
    if (extension == format.extension) return &format;
  }
  return nullptr;
}

std::string unknown(const std::string& verb, const std::string& path) {
  std::string known;
  for (const MeshFormat& format : kMeshFormats) known += std::string(" ") + format.extension;
  return "cannot " + verb + " '" + path + "': unknown mesh ending; known are" + known;
}

const MeshFormat& format_for_writing(const std::string& path) {
  const MeshFormat* format = find_format(path);
  if (format == nullptr) throw UsageError(unknown("write", path));
  return *format;
}

void check_numbers(const std::string& path, const Mesh& mesh,
                   std::span<const VertexNumbers> numbers) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::set<std::string> taken{"", "x", "y", "z"};
  for (const auto& [name, values] : numbers) {
    const std::string which = "numbers '" + name + "' of vertices";
    if (name.find_first_not_of(kLetters) != std::string::npos || !taken.insert(name).second) {
      bad(path, which + ": the name is taken, or not of letters, digits and underscores");
    }
    if (values.size() != mesh.vertices_mm.size()) {
      bad(path, which + ": there are " + std::to_string(values.size()) + " for " +
                    std::to_string(mesh.vertices_mm.size()) + " vertices");
    }
  }
}

}  // namespace
}  // namespace io

Mesh read_mesh(const std::string& path) {
  const io::MeshFormat* format = io::find_format(path);
  if (format == nullptr) throw InputError(io::unknown("read", path));
  Mesh mesh = format->parse(path, read_file(path));
  io::finish_mesh(mesh, path);
  return mesh;
}

void write_mesh(const std::string& path, const Mesh& mesh, std::span<const VertexNumbers> numbers) {
  const io::MeshFormat& format = io::format_for_writing(path);
  io::check_numbers(path, mesh, numbers);
  write_file(path, format.format(mesh, numbers));
}

bool has_mesh_extension(const std::string& path) {
  return io::find_format(path) != nullptr;
}

void require_mesh_extension(const std::string& path) {
  io::format_for_writing(path);
}

}  // namespace larch
