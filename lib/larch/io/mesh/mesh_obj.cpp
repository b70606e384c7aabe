// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Wavefront OBJ: lines "v x y z" and "f a b c ...", counted from 1, or from the end if negative.
#include "larch/core/text.h"
#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {

Mesh parse_obj(const std::string& path, std::string_view bytes, const MeshWarn&) {
  Mesh mesh;
  bool ras = false;
  Words lines(path, bytes);
  std::vector<double> corners;
  std::string joined;
  while (!lines.end()) {
    std::string_view line = lines.line();
    if (line.ends_with('\\')) {  // goes on in the next line
      joined.clear();
      for (; line.ends_with('\\'); line = lines.line()) {
        joined.append(line, 0, line.size() - 1) += ' ';
      }
      line = joined.append(line);
    }
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
        const auto vertices = static_cast<double>(mesh.vertices_mm.size());
        if (index == 0 || index < -vertices) {
          bad(path, "a face refers to vertex " + std::to_string(static_cast<int64_t>(index)) +
                        ", but OBJ counts from 1, or back from the last one");
        }
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
  for (const Vec3d& v : mesh.vertices_mm) {
    out += 'v';
    for (int i = 0; i < 3; ++i) out += ' ' + number_text(v[i] + 0.0, 9);  // enough for float
    out += '\n';
  }
  for (const Vec3i& t : mesh.triangles) {
    out += 'f';
    for (int i = 0; i < 3; ++i) out += ' ' + std::to_string(t[i] + 1);
    out += '\n';
  }
  return out;
}

}  // namespace larch::io
