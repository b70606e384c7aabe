// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/mesh/mesh_io.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

static_assert(std::endian::native == std::endian::little);

namespace larch {
namespace io {
namespace {

constexpr int32_t kMaximumIndex = std::numeric_limits<int32_t>::max();

constexpr std::string_view kBlanks = " \t\n\r";

/// Tells whether a whole word is a number.
template <class T>
bool parse(std::string_view word, T& value) {
  const char* last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, value);
  if constexpr (std::is_same_v<T, double>) {
    // A number out of the range of double is 0 if it is small, which a wider type tells.
    if (long double wide = 1; error == std::errc::result_out_of_range) {
      value = 0;
      return parse(word, wide) && std::abs(wide) < 1;
    }
  }
  return error == std::errc() && end == last && !word.empty();
}

}  // namespace

std::string_view Words::word() {
  const size_t start = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
  at_ = std::min(text_.find_first_of(kBlanks, start), text_.size());
  return text_.substr(start, at_ - start);
}

std::string_view Words::line() {
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  const std::string_view line = text_.substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

double Words::number_of(std::string_view word) const {
  if (word.starts_with('+')) word.remove_prefix(1);
  double value = 0;
  if (parse(word, value)) return value;
  bad(*path_, "expected a number, found '" + std::string(word.substr(0, 40)) +
                  "'; the file is damaged or truncated");
}

int64_t Words::integer_of(std::string_view word) const {
  int64_t value = 0;
  if (parse(word, value)) return value;
  bad(*path_, "expected a whole number, found '" + std::string(word.substr(0, 40)) +
                  "'; the file is damaged or truncated");
}

FieldReader Words::take(int64_t bytes, Encoding encoding) {
  check_count(*path_, bytes, 1, left(), "bytes");
  const char* taken = text_.data() + at_;
  at_ += static_cast<size_t>(bytes);
  return {taken, encoding == Encoding::kBigEndian};
}

double Words::number(const NumberType& type, Encoding encoding) {
  return encoding == Encoding::kText ? number() : type.get(take(type.bytes, encoding), 0);
}

Vec3d Words::position() {
  const double x = number(), y = number(), z = number();
  return {x, y, z};
}

std::vector<double> Words::numbers(int64_t count, const NumberType& type, Encoding encoding) {
  std::vector<double> values(static_cast<size_t>(count));
  if (encoding == Encoding::kText) {
    for (double& value : values) value = number();
    return values;
  }
  const FieldReader raw = take(count * type.bytes, encoding);
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = type.get(raw, i * type.bytes);
  return values;
}

void check_count(const std::string& path, int64_t count, int64_t least_bytes, int64_t available,
                 const char* what) {
  if (count >= 0 && count <= available / least_bytes) return;
  bad(path, "the file promises " + std::to_string(count) + " " + what +
                ", more than it can hold; it is truncated or damaged");
}

int32_t index_of(double corner, const std::string& path) {
  if (is_count(corner) && corner <= kMaximumIndex) return static_cast<int32_t>(corner);
  bad(path, "a face has a corner that is no index of a vertex; the file is damaged");
}

void add_polygon(Mesh& mesh, std::span<const double> corners, const std::string& path) {
  if (corners.size() < 3) {
    bad(path, "a face has " + std::to_string(corners.size()) + " corners; give triangles");
  }
  const auto index = [&](size_t i) { return index_of(corners[i], path); };
  for (size_t i = 2; i < corners.size(); ++i) {
    mesh.triangles.push_back({index(0), index(i - 1), index(i)});
  }
}

std::vector<Vec3d> positions_of(std::span<const double> numbers) {
  std::vector<Vec3d> positions(numbers.size() / 3);
  for (size_t i = 0; i < numbers.size(); ++i)
    positions[i / 3][static_cast<int>(i % 3)] = numbers[i];
  return positions;
}

bool says_ras(std::string_view text) {
  return text.find("SPACE=RAS") != std::string_view::npos;
}

void flip_ras_lps(Mesh& mesh) {
  for (Vec3d& v : mesh.vertices_mm) v = {-v.x + 0.0, -v.y + 0.0, v.z};
}

namespace {

// One row per format; a new one needs nothing else. One without a parser is written alone.
struct MeshFormat {
  const char* extension;
  Mesh (*parse)(const std::string& path, std::string_view bytes, const MeshWarn& warn);
  std::string (*format)(const Mesh& mesh, std::span<const VertexNumbers> numbers);
};
constexpr MeshFormat kMeshFormats[] = {
    {".vtk", parse_vtk, format_vtk},     {".obj", parse_obj, format_obj},
    {".gii", parse_gifti, format_gifti}, {".ply", parse_ply, format_ply},
    {".stl", parse_stl, format_stl},     {".vtp", nullptr, format_vtp},
};

const MeshFormat* find_mesh_format(const std::string& path) {
  const std::string extension = file_extension(path);
  const auto found = std::ranges::find(kMeshFormats, extension, &MeshFormat::extension);
  return found == std::end(kMeshFormats) ? nullptr : found;
}

std::string unknown(const std::string& verb, const std::string& path) {
  std::string known;
  for (const MeshFormat& format : kMeshFormats) {
    if (verb == "write" || format.parse != nullptr) known += std::string(" ") + format.extension;
  }
  return "cannot " + verb + " '" + path + "': unknown mesh ending; known are" + known;
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

/// The only place that compares indices with vertices, once all of both are there.
void check_mesh(const std::string& path, const Mesh& mesh) {
  const size_t count = mesh.vertices_mm.size();
  if (mesh.triangles.empty()) {
    bad(path,
        "there are " + std::to_string(count) +
            " vertices and no triangle, but a surface is needed; export it with its polygons");
  }
  for (const Vec3i& t : mesh.triangles) {
    for (int corner = 0; corner < 3; ++corner) {
      if (t[corner] < 0 || static_cast<size_t>(t[corner]) >= count) {
        bad(path, "a face refers to vertex " + std::to_string(t[corner]) + ", but there are " +
                      std::to_string(count) + "; the file is damaged");
      }
    }
  }
  for (const Vec3d& v : mesh.vertices_mm) {
    for (int axis = 0; axis < 3; ++axis) {
      if (std::abs(v[axis]) <= kFarthestMm) continue;
      bad(path,
          "a vertex has a coordinate that is not finite or more than 10 km from the origin; "
          "is the file damaged, or in other units than mm?");
    }
  }
}

}  // namespace
}  // namespace io

Mesh read_mesh(const std::string& path, const MeshWarn& warn) {
  const io::MeshFormat* format = io::find_mesh_format(path);
  if (format == nullptr || format->parse == nullptr) throw InputError(io::unknown("read", path));
  const std::string bytes = read_file(path);
  refuse_placeholder(path, bytes);
  Mesh mesh = format->parse(path, bytes, warn);
  io::check_mesh(path, mesh);
  return mesh;
}

void write_mesh(const std::string& path, const Mesh& mesh, std::span<const VertexNumbers> numbers) {
  require_mesh_extension(path);
  io::check_numbers(path, mesh, numbers);
  write_file(path, io::find_mesh_format(path)->format(mesh, numbers));
}

bool has_mesh_extension(const std::string& path) {
  return io::find_mesh_format(path) != nullptr;
}

void require_mesh_extension(const std::string& path) {
  if (!has_mesh_extension(path)) throw UsageError(io::unknown("write", path));
}

}  // namespace larch
