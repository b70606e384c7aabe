// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// STL: binary (80 bytes, count, 50 bytes per triangle) or ASCII ("solid ... facet ... vertex x y
// z").
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

constexpr int64_t kHeader = 84, kTriangle = 50;

// STL repeats a vertex in each triangle; equal coordinates are one vertex.
class Merger {
 public:
  Merger(Mesh& mesh, const std::string& path) : mesh_(mesh), path_(path) {}
  int32_t index(const Vec3d& v) {
    if (!(norm(v) < 1e30)) bad(path_, "a coordinate is not finite or not in mm; damaged?");
    const auto [at, is_new] = index_.emplace(std::tuple(v.x + 0.0, v.y + 0.0, v.z + 0.0),
                                             static_cast<int32_t>(mesh_.vertices_mm.size()));
    if (is_new) mesh_.vertices_mm.push_back(v);
    return at->second;
  }

 private:
  Mesh& mesh_;
  const std::string& path_;
  std::map<std::tuple<double, double, double>, int32_t> index_;
};

Mesh parse_binary(const std::string& path, std::string_view bytes) {
  const FieldReader in{bytes.data(), false};
  const auto count = static_cast<int64_t>(in.get<uint32_t>(80));
  const int64_t room = static_cast<int64_t>(bytes.size()) - kHeader;
  check_count(path, count, kTriangle, room, "triangles");
  if (room >= (count + 1) * kTriangle) {
    bad(path, "the file holds more than its " + std::to_string(count) + " triangles; damaged?");
  }
  Mesh mesh;
  Merger merger(mesh, path);
  for (int64_t i = 0; i < count; ++i) {
    Vec3i triangle;
    for (int corner = 0; corner < 3; ++corner) {
      const int64_t at = kHeader + i * kTriangle + 12 + 12 * corner;
      triangle[corner] =
          merger.index({in.get<float>(at), in.get<float>(at + 4), in.get<float>(at + 8)});
    }
    mesh.triangles.push_back(triangle);
  }
  return mesh;
}

Mesh parse_ascii(const std::string& path, std::string_view bytes) {
  Mesh mesh;
  Merger merger(mesh, path);
  Words words(path, bytes);
  std::vector<int32_t> corners;
  words.line();  // the name of the solid may be any text
  std::string_view last;
  for (std::string_view word = words.word(); !word.empty(); word = words.word()) {
    last = word;
    if (word == "vertex") {
      corners.push_back(merger.index(words.position()));
    } else if (word == "endfacet") {
      if (corners.size() != 3) bad(path, "a facet does not have three vertices; damaged?");
      mesh.triangles.push_back({corners[0], corners[1], corners[2]});
      corners.clear();
    } else if (word == "solid" || word == "endsolid") {
      words.line();
    }
  }
  if (!corners.empty() || last != "endsolid") bad(path, "the text ends early; truncated?");
  return mesh;
}

}  // namespace

Mesh parse_stl(const std::string& path, std::string_view bytes, const MeshWarn&) {
  // Binary files may start with "solid" too; their size tells them.
  const auto size = static_cast<int64_t>(bytes.size());
  bool binary = false;
  if (size >= kHeader) {
    const int64_t count = FieldReader{bytes.data(), false}.get<uint32_t>(80);
    binary = size == kHeader + count * kTriangle;
  }
  const bool solid = bytes.substr(0, 5) == "solid";
  if (!binary && !solid && size < kHeader) bad(path, "not an STL file, or truncated");
  const std::string_view header = bytes.substr(0, binary || !solid ? 80 : bytes.find('\n'));
  Mesh mesh = binary || !solid ? parse_binary(path, bytes) : parse_ascii(path, bytes);
  if (says_ras(header)) flip_ras_lps(mesh);
  return mesh;
}

std::string format_stl(const Mesh& mesh, std::span<const VertexNumbers>) {
  std::string out = "Larch surface, SPACE=LPS, mm";
  out.resize(80, ' ');
  put(out, static_cast<uint32_t>(mesh.triangles.size()));
  for (const Vec3i& t : mesh.triangles) {
    const Vec3d a = mesh.vertices_mm[static_cast<size_t>(t.x)];
    const Vec3d b = mesh.vertices_mm[static_cast<size_t>(t.y)];
    const Vec3d c = mesh.vertices_mm[static_cast<size_t>(t.z)];
    Vec3d normal = cross(b - a, c - a);
    const double length = norm(normal);
    normal = length > 0 ? normal / length : Vec3d{0, 0, 0};
    for (const Vec3d& v : {normal, a, b, c}) put(out, (v + Vec3d{}).cast<float>());
    out.append(2, '\0');
  }
  return out;
}

}  // namespace larch::io
