// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Wavefront OBJ: lines "v x y z" and "f a b c ...", counted from 1, or from the end if negative.
#include <cstdio>

#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {

Mesh parse_obj(const std::string& path, std::string_view bytes) {
  Mesh mesh;
  bool ras = false;
  Words lines(path, bytes);
  std::vector<double> corners;
  while (!lines.end()) {
    const std::string_view line = lines.line();
    if (line.find('\0') != std::string_view::npos) bad(path, "not an OBJ file: not text");
    Words words(path, line);
    const std::string_view key = words.word();
    if (key == "v") {
      mesh.vertices_mm.push_back(words.position());
    } else if (key == "f") {
      corners.clear();
      for (std::string_view word = words.word(); !word.empty(); word = words.word()) {
        // vertex/texture/normal
        const auto index = static_cast<double>(words.integer_of(word.substr(0, word.find('/'))));
        if (index == 0) bad(path, "a face refers to vertex 0, but OBJ counts from 1");
        const auto vertices = static_cast<double>(mesh.vertices_mm.size());
        corners.push_back(index > 0 ? index - 1 : vertices + index);
      }
      add_polygon(mesh, corners, path);
    } else if (key.starts_with('#')) {
      ras = ras || says_ras(line);
    }
  }
  if (mesh.vertices_mm.empty()) bad(path, "no vertices; not an OBJ file, or truncated");
  if (ras) flip_ras_lps(mesh);
  return mesh;
}

std::string format_obj(const Mesh& mesh, std::span<const VertexNumbers>) {
  std::string out = "# Larch surface, SPACE=LPS, mm\n";
  char line[128];
  for (const Vec3d& v : mesh.vertices_mm) {  // 9 digits are enough for float
    std::snprintf(line, sizeof line, "v %.9g %.9g %.9g\n", v.x + 0.0, v.y + 0.0, v.z + 0.0);
    out += line;
  }
  for (const Vec3i& t : mesh.triangles) {
    std::snprintf(line, sizeof line, "f %d %d %d\n", t.x + 1, t.y + 1, t.z + 1);
    out += line;
  }
  return out;
}

}  // namespace larch::io
