// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Legacy VTK PolyData, as "VTK file formats" (Kitware) defines it; binary data are big-endian.
#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

/// An id has 32 bits in these files, whatever it has in memory.
constexpr std::pair<std::string_view, NumberType> kVtkTypes[] = {
    {"float", kNumberType<float>},
    {"double", kNumberType<double>},
    {"int", kNumberType<int32_t>},
    {"unsigned_int", kNumberType<uint32_t>},
    {"vtktypeint32", kNumberType<int32_t>},
    {"long", kNumberType<int64_t>},
    {"vtktypeint64", kNumberType<int64_t>},
    {"vtkIdType", kNumberType<int32_t>},
    {"short", kNumberType<int16_t>},
    {"unsigned_short", kNumberType<uint16_t>},
    {"char", kNumberType<int8_t>},
    {"unsigned_char", kNumberType<uint8_t>},
    {"unsigned_long", kNumberType<uint64_t>},
    {"vtktypeuint64", kNumberType<uint64_t>}};

struct Parser {
  const std::string& path;
  Words words;
  Encoding encoding = Encoding::kText;

  NumberType type() { return type_of(words.word()); }
  NumberType type_of(std::string_view name) const {
    for (const auto& [known, type] : kVtkTypes) {
      if (name == known) return type;
    }
    bad(path, "the VTK data type " + shown(name) + " is not supported");
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

using UseCell = std::function<void(std::span<const double> corners)>;

// Cells as files of versions 1 to 4 list them: count, then that many indices.
void cells_of_list(Parser& in, int64_t cells, int64_t numbers, const UseCell& use) {
  const std::vector<double> values = in.numbers(numbers, kNumberType<int32_t>);
  check_count(in.path, cells, 1, numbers, "cells");
  std::span<const double> left = values;
  for (int64_t cell = 0; cell < cells; ++cell) {
    if (left.empty()) bad(in.path, "the list of cells ends early; damaged?");
    const double count = left[0];
    left = left.subspan(1);
    if (!(is_count(count) && count <= static_cast<double>(left.size()))) {
      bad(in.path, "a cell has more corners than the list holds; damaged?");
    }
    use(left.first(static_cast<size_t>(count)));
    left = left.subspan(static_cast<size_t>(count));
  }
  if (!left.empty()) bad(in.path, "the list of cells holds more than its cells; damaged?");
}

// Cells as version 5 lists them: offsets, then all indices.
void cells_of_offsets(Parser& in, int64_t offsets, int64_t corners, const UseCell& use) {
  const std::vector<double> starts = in.numbers(offsets, in.type());
  if (in.words.word() != "CONNECTIVITY") bad(in.path, "expected CONNECTIVITY; damaged?");
  const std::vector<double> values = in.numbers(corners, in.type());
  size_t at = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const double most = i == 0 ? 0 : static_cast<double>(values.size());
    if (!is_count(starts[i]) || starts[i] < static_cast<double>(at) || starts[i] > most) {
      bad(in.path, "the offsets of the cells are not in order; damaged?");
    }
    const auto end = static_cast<size_t>(starts[i]);
    if (i > 0) use(std::span(values).subspan(at, end - at));
    at = end;
  }
  if (at != values.size()) bad(in.path, "the offsets leave out corners of cells; damaged?");
}

void read_cells(Parser& in, const UseCell& use) {
  const int64_t first = in.words.integer(), second = in.words.integer();
  const Words before = in.words;
  if (in.words.word() == "OFFSETS") return cells_of_offsets(in, first, second, use);
  in.words = before;
  cells_of_list(in, first, second, use);
}

// A block that ends with an empty line.
void skip_metadata(Words& words) {
  words.line();
  while (!words.line().empty()) {
  }
}

// A text is a line, or follows its length, whose first two bits tell how many bytes it has.
void skip_text(Parser& in) {
  if (in.encoding == Encoding::kText) {
    in.words.line();
    return;
  }
  const auto bytes = [&](int64_t count) {
    return in.words.numbers(count, kNumberType<uint8_t>, in.encoding);
  };
  const auto first = static_cast<int>(bytes(1)[0]);
  double length = first % 64;
  for (const double byte : bytes(std::array{7, 3, 1, 0}[first / 64])) length = 256 * length + byte;
  check_count(in.path, static_cast<int64_t>(length), 1, in.words.left(), "letters");
  bytes(static_cast<int64_t>(length));
}

// Arrays that belong to no point or cell; writers put them before the points.
void skip_field(Parser& in) {
  in.words.word();  // its name
  for (int64_t arrays = in.words.integer(); arrays > 0; --arrays) {
    if (in.words.word() == "METADATA") {  // of the array before; else the name of this one
      skip_metadata(in.words);
      in.words.word();
    }
    const int64_t components = in.words.integer(), tuples = in.words.integer();
    check_count(in.path, tuples, 1, in.words.left(), "tuples of field data");
    check_count(in.path, components, std::max<int64_t>(tuples, 1), in.words.left(), "numbers");
    const std::string_view type = in.words.word();
    if (type != "string") {
      in.numbers(components * tuples, in.type_of(type));
      continue;
    }
    in.words.line();
    for (int64_t i = 0; i < components * tuples; ++i) skip_text(in);
  }
}

void add_strip(Mesh& mesh, std::span<const double> strip, const std::string& path) {
  if (strip.size() < 3) bad(path, "a triangle strip has fewer than three corners; damaged?");
  for (size_t i = 2; i < strip.size(); ++i) {
    const size_t odd = i % 2;  // every second triangle of a strip runs the other way
    add_polygon(mesh, std::array{strip[i - 2 + odd], strip[i - 1 - odd], strip[i]}, path);
  }
}

}  // namespace

Mesh parse_vtk(const std::string& path, std::string_view bytes, const MeshWarn&) {
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
  std::set<std::string_view> seen;
  for (std::string_view word = in.words.word(); !word.empty(); word = in.words.word()) {
    if (word == "METADATA") {
      skip_metadata(in.words);
      continue;
    }
    if (word == "POINT_DATA" || word == "CELL_DATA") break;  // attributes come after the surface
    if (!seen.insert(word).second) bad(path, shown(word) + " stands there twice; damaged?");
    if (word == "POINTS") {
      read_points(in, mesh);
    } else if (word == "POLYGONS") {
      read_cells(in, [&](std::span<const double> cell) { add_polygon(mesh, cell, path); });
    } else if (word == "TRIANGLE_STRIPS") {
      read_cells(in, [&](std::span<const double> cell) { add_strip(mesh, cell, path); });
    } else if (word == "VERTICES" || word == "LINES") {
      read_cells(in, [](std::span<const double>) {});
    } else if (word == "FIELD") {
      skip_field(in);
    } else {
      bad(path, "unexpected word " + shown(word) + "; damaged?");
    }
  }
  if (!seen.contains("POINTS")) bad(path, "the surface has no points; truncated?");
  if (!seen.contains("POLYGONS") && !seen.contains("TRIANGLE_STRIPS")) {
    bad(path, "there are neither polygons nor triangle strips; is it truncated, or no surface?");
  }
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
