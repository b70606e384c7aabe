// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Legacy VTK PolyData, as "VTK file formats" (Kitware) defines it; binary data are big-endian.
#include <array>

#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

/// Numbers without a sign are read as those with one.
constexpr std::pair<std::string_view, NumberType> kVtkTypes[] = {
    {"float", kNumberType<float>},          {"double", kNumberType<double>},
    {"int", kNumberType<int32_t>},          {"unsigned_int", kNumberType<int32_t>},
    {"vtktypeint32", kNumberType<int32_t>}, {"long", kNumberType<int64_t>},
    {"vtktypeint64", kNumberType<int64_t>}, {"vtkIdType", kNumberType<int64_t>},
    {"short", kNumberType<int16_t>},        {"unsigned_short", kNumberType<int16_t>},
    {"char", kNumberType<int8_t>},          {"unsigned_char", kNumberType<int8_t>}};

struct Parser {
  const std::string& path;
  Words words;
  Encoding encoding = Encoding::kText;

  NumberType type() {
    const std::string_view name = words.word();
    for (const auto& [known, type] : kVtkTypes) {
      if (name == known) return type;
    }
    bad(path, "the VTK data type '" + std::string(name.substr(0, 40)) + "' is not supported");
  }

  std::vector<double> numbers(int64_t count, const NumberType& type) {
    const int least = encoding == Encoding::kText ? 2 : type.bytes;  // a digit and a space
    check_count(path, count, least, words.left() + 1, "numbers");
    if (encoding != Encoding::kText) words.line();
    return words.numbers(count, type, encoding);
  }
};

void read_points(Parser& in, Mesh& mesh) {
  const int64_t count = in.words.integer();
  const NumberType type = in.type();
  check_count(in.path, count, 3, in.words.left() + 1, "points");
  mesh.vertices_mm = positions_of(in.numbers(3 * count, type));
}

using Cells = std::vector<std::vector<double>>;

// Cells as files of versions 1 to 4 list them: count, then that many indices.
Cells cells_of_list(Parser& in, int64_t cells, int64_t numbers) {
  const std::vector<double> values = in.numbers(numbers, kNumberType<int32_t>);
  check_count(in.path, cells, 1, numbers, "cells");
  Cells all;
  size_t at = 0;
  for (int64_t cell = 0; cell < cells; ++cell) {
    if (at >= values.size()) bad(in.path, "the list of cells ends early; damaged?");
    const double count = values[at++];
    if (!(count >= 0 && count <= static_cast<double>(values.size() - at))) {
      bad(in.path, "a cell has more corners than the list holds; damaged?");
    }
    const auto first = values.begin() + static_cast<int64_t>(at);
    all.emplace_back(first, first + static_cast<int64_t>(count));
    at += static_cast<size_t>(count);
  }
  return all;
}

// Cells as version 5 lists them: offsets, then all indices.
Cells cells_of_offsets(Parser& in, int64_t offsets, int64_t corners) {
  const std::vector<double> starts = in.numbers(offsets, in.type());
  if (in.words.word() != "CONNECTIVITY") bad(in.path, "expected CONNECTIVITY; damaged?");
  const std::vector<double> values = in.numbers(corners, in.type());
  Cells all;
  for (size_t i = 1; i < starts.size(); ++i) {
    if (!(starts[i - 1] >= 0 && starts[i - 1] <= starts[i] &&
          starts[i] <= static_cast<double>(values.size()))) {
      bad(in.path, "the offsets of the cells are not in order; damaged?");
    }
    all.emplace_back(values.begin() + static_cast<int64_t>(starts[i - 1]),
                     values.begin() + static_cast<int64_t>(starts[i]));
  }
  return all;
}

Cells read_cells(Parser& in) {
  const int64_t first = in.words.integer(), second = in.words.integer();
  const Words before = in.words;
  if (in.words.word() == "OFFSETS") return cells_of_offsets(in, first, second);
  in.words = before;
  return cells_of_list(in, first, second);
}

void add_strip(Mesh& mesh, const std::vector<double>& strip, const std::string& path) {
  for (size_t i = 2; i < strip.size(); ++i) {
    const size_t odd = i % 2;  // every second triangle of a strip runs the other way
    add_polygon(mesh, std::array{strip[i - 2 + odd], strip[i - 1 - odd], strip[i]}, path);
  }
}

}  // namespace

Mesh parse_vtk(const std::string& path, std::string_view bytes) {
  Parser in{path, Words(path, bytes)};
  if (in.words.line().substr(0, 14) != "# vtk DataFile") {
    bad(path, "not a legacy VTK file: it does not start with '# vtk DataFile'");
  }
  const bool ras = says_ras(in.words.line());
  const std::string_view mode = in.words.word();
  if (mode != "ASCII" && mode != "BINARY") bad(path, "neither ASCII nor BINARY; damaged?");
  if (mode == "BINARY") in.encoding = Encoding::kBigEndian;
  if (in.words.word() != "DATASET" || in.words.word() != "POLYDATA") {
    bad(path, "not a surface (DATASET POLYDATA); export it as PolyData");
  }
  Mesh mesh;
  bool has_points = false;
  for (std::string_view word = in.words.word(); !word.empty(); word = in.words.word()) {
    if (word == "POINTS") {
      read_points(in, mesh);
      has_points = true;
    } else if (word == "POLYGONS") {
      for (const auto& cell : read_cells(in)) add_polygon(mesh, cell, path);
    } else if (word == "TRIANGLE_STRIPS") {
      for (const auto& cell : read_cells(in)) add_strip(mesh, cell, path);
    } else if (word == "VERTICES" || word == "LINES") {
      read_cells(in);
    } else if (word == "METADATA") {
      in.words.line();  // a block that ends with an empty line
      while (!in.words.line().empty()) {
      }
    } else if (word == "POINT_DATA" || word == "CELL_DATA" || word == "FIELD") {
      break;  // attributes come after the surface
    } else {
      bad(path, "unexpected word '" + std::string(word.substr(0, 40)) + "'; damaged?");
    }
  }
  if (!has_points) bad(path, "the surface has no points; truncated?");
  if (ras) flip_ras_lps(mesh);
  return mesh;
}

std::string format_vtk(const Mesh& mesh, std::span<const VertexNumbers> numbers) {
  std::string out =
      "# vtk DataFile Version 4.2\nLarch surface, SPACE=LPS, mm\nBINARY\n"
      "DATASET POLYDATA\nPOINTS " +
      std::to_string(mesh.vertices_mm.size()) + " float\n";
  for (const Vec3d& v : mesh.vertices_mm) put(out, v.cast<float>(), Encoding::kBigEndian);
  const size_t cells = mesh.triangles.size();
  out += "\nPOLYGONS " + std::to_string(cells) + " " + std::to_string(4 * cells) + "\n";
  for (const Vec3i& t : mesh.triangles) {
    put(out, int32_t{3}, Encoding::kBigEndian);
    put(out, t, Encoding::kBigEndian);
  }
  out += "\n";
  if (!numbers.empty()) out += "POINT_DATA " + std::to_string(mesh.vertices_mm.size()) + "\n";
  for (const VertexNumbers& n : numbers) {
    out += "SCALARS " + n.name + " float 1\nLOOKUP_TABLE default\n";
    for (const float value : n.values) put(out, value, Encoding::kBigEndian);
    out += "\n";
  }
  return out;
}

}  // namespace larch::io
