// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Wavefront OBJ: lines "v x y z" and "f a b c ...", counted from 1, or from the end if negative.
#include "larch/io/image/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

int64_t corner_of(const std::string& path, std::string_view word, size_t vertices) {
  const int64_t index = integer_of(path, word.substr(0, word.find('/')));  // vertex/texture/normal
  if (index == 0) bad(path, "a face refers to vertex 0, but OBJ counts from 1");
  return index > 0 ? index - 1 : static_cast<int64_t>(vertices) + index;
}

}  // namespace

Mesh parse_obj(const std::string& path, std::string_view bytes) {
  Mesh mesh;
  bool ras = false;
  Words lines(path, bytes);
  std::vector<int64_t> corners;
  while (!lines.end()) {
    const std::string_view line = lines.line();
    if (line.find('\0') != std::string_view::npos) bad(path, "not an OBJ file: not text");
    Words words(path, line);
    const std::string_view key = words.word();
    if (key == "v") {
      const double x = words.number(), y = words.number(), z = words.number();
      mesh.vertices_mm.push_back({x, y, z});
    } else if (key == "f") {
      corners.clear();
      for (std::string_view word = words.word(); !word.empty(); word = words.word()) {
        corners.push_back(corner_of(path, word, mesh.vertices_mm.size()));
      }
      add_polygon(mesh, corners, path);
    } else if (!key.empty() && key[0] == '#') {
      ras = ras || line.find("SPACE=RAS") != std::string_view::npos;
    }
  }
  if (mesh.vertices_mm.empty()) bad(path, "no vertices; not an OBJ file, or truncated");
  if (ras) flip_ras_lps(mesh);
  return mesh;
}

std::string format_obj(const Mesh& mesh, std::span<const VertexNumbers>) {
  std::string out = "# Larch surface, SPACE=LPS, mm\n";
  for (const Vec3d& v : mesh.vertices_mm) {
    out += "v " + short_number(v.x) + " " + short_number(v.y) + " " + short_number(v.z) + "\n";
  }
  for (const Vec3i& t : mesh.triangles) {
    out += "f " + std::to_string(t.x + 1) + " " + std::to_string(t.y + 1) + " " +
           std::to_string(t.z + 1) + "\n";
  }
  return out;
}

}  // namespace larch::io
