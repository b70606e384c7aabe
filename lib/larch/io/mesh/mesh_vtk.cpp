// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Legacy VTK PolyData, as "VTK file formats" (Kitware) defines it; binary data are big-endian.
#include <algorithm>
#include <cstring>

#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

enum class Type { kChar, kShort, kInt, kLong, kFloat, kDouble };

Type type_of(const std::string& path, std::string_view name) {
  if (name == "float") return Type::kFloat;
  if (name == "double") return Type::kDouble;
  if (name == "int" || name == "unsigned_int" || name == "vtktypeint32") return Type::kInt;
  if (name == "long" || name == "vtktypeint64" || name == "vtkIdType") return Type::kLong;
  if (name == "short" || name == "unsigned_short") return Type::kShort;
  if (name == "char" || name == "unsigned_char") return Type::kChar;
  bad(path, "the VTK data type '" + std::string(name.substr(0, 40)) + "' is not supported");
}

int bytes_of_type(Type type) {
  constexpr int kBytes[] = {1, 2, 4, 8, 4, 8};
  return kBytes[static_cast<int>(type)];
}

// The state of a parse: the words, and whether numbers stand as text.
struct Parser {
  const std::string& path;
  Words words;
  bool binary = false;

  std::vector<double> numbers(int64_t count, Type type) {
    const int width = binary ? bytes_of_type(type) : 2;  // a digit and a space
    check_count(path, count, width, words.left() + 1, "numbers");
    std::vector<double> values(static_cast<size_t>(count));
    if (!binary) {
      for (double& value : values) value = words.number();
      return values;
    }
    words.line();
    const std::string_view raw = words.bytes(count * width);
    const FieldReader reader{raw.data(), true};
    for (int64_t i = 0; i < count; ++i) {
      double& value = values[static_cast<size_t>(i)];
      switch (type) {
        case Type::kChar:
          value = reader.get<int8_t>(i);
          break;
        case Type::kShort:
          value = reader.get<int16_t>(2 * i);
          break;
        case Type::kInt:
          value = reader.get<int32_t>(4 * i);
          break;
        case Type::kLong:
          value = static_cast<double>(reader.get<int64_t>(8 * i));
          break;
        case Type::kFloat:
          value = reader.get<float>(4 * i);
          break;
        case Type::kDouble:
          value = reader.get<double>(8 * i);
          break;
      }
    }
    return values;
  }
};

void read_points(Parser& in, Mesh& mesh) {
  const int64_t count = in.words.integer();
  const Type type = type_of(in.path, in.words.word());
  check_count(in.path, count, 3, in.words.left() + 1, "points");
  const std::vector<double> values = in.numbers(3 * count, type);
  mesh.vertices_mm.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < mesh.vertices_mm.size(); ++i) {
    mesh.vertices_mm[i] = {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
  }
}

// Cells as files of versions 1 to 4 list them: count, then that many indices.
std::vector<std::vector<int64_t>> cells_of_list(Parser& in, int64_t cells, int64_t numbers) {
  const std::vector<double> values = in.numbers(numbers, Type::kInt);
  check_count(in.path, cells, 1, numbers, "cells");
  std::vector<std::vector<int64_t>> all;
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
std::vector<std::vector<int64_t>> cells_of_offsets(Parser& in, int64_t offsets, int64_t corners) {
  const Type offset_type = type_of(in.path, in.words.word());
  const std::vector<double> starts = in.numbers(offsets, offset_type);
  if (in.words.word() != "CONNECTIVITY") bad(in.path, "expected CONNECTIVITY; damaged?");
  const Type corner_type = type_of(in.path, in.words.word());
  const std::vector<double> values = in.numbers(corners, corner_type);
  std::vector<std::vector<int64_t>> all;
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

std::vector<std::vector<int64_t>> read_cells(Parser& in) {
  const int64_t first = in.words.integer(), second = in.words.integer();
  Words ahead = in.words;
  if (ahead.word() == "OFFSETS") {
    in.words = ahead;
    return cells_of_offsets(in, first, second);
  }
  return cells_of_list(in, first, second);
}

void add_strip(Mesh& mesh, const std::vector<int64_t>& strip, const std::string& path) {
  for (size_t i = 2; i < strip.size(); ++i) {
    const bool odd = i % 2 == 1;  // every second triangle of a strip runs the other way
    add_polygon(mesh, {strip[odd ? i - 1 : i - 2], strip[odd ? i - 2 : i - 1], strip[i]}, path);
  }
}

}  // namespace

Mesh parse_vtk(const std::string& path, std::string_view bytes) {
  Parser in{path, Words(path, bytes)};
  if (in.words.line().substr(0, 14) != "# vtk DataFile") {
    bad(path, "not a legacy VTK file: it does not start with '# vtk DataFile'");
  }
  const bool ras = in.words.line().find("SPACE=RAS") != std::string_view::npos;
  const std::string_view mode = in.words.word();
  if (mode != "ASCII" && mode != "BINARY") bad(path, "neither ASCII nor BINARY; damaged?");
  in.binary = mode == "BINARY";
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
  for (const Vec3d& v : mesh.vertices_mm) {
    for (int i = 0; i < 3; ++i) put_big(out, static_cast<float>(v[i]));
  }
  const size_t cells = mesh.triangles.size();
  out += "\nPOLYGONS " + std::to_string(cells) + " " + std::to_string(4 * cells) + "\n";
  for (const Vec3i& t : mesh.triangles) {
    put_big(out, int32_t{3});
    for (int i = 0; i < 3; ++i) put_big(out, t[i]);
  }
  out += "\n";
  if (!numbers.empty()) out += "POINT_DATA " + std::to_string(mesh.vertices_mm.size()) + "\n";
  for (const VertexNumbers& n : numbers) {
    out += "SCALARS " + n.name + " float 1\nLOOKUP_TABLE default\n";
    for (const float value : n.values) put_big(out, value);
    out += "\n";
  }
  return out;
}

}  // namespace larch::io
