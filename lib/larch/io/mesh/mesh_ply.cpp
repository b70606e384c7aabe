// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// PLY (Stanford), ASCII and binary of both byte orders: elements with typed properties.
#include <bit>
#include <cmath>

#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

enum class Type { kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kFloat, kDouble };

int bytes_of_type(Type type) {
  constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return kBytes[static_cast<int>(type)];
}

Type type_of(const std::string& path, std::string_view name) {
  constexpr const char* kNames[][2] = {
      {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
      {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};
  for (int i = 0; i < 8; ++i)
    if (name == kNames[i][0] || name == kNames[i][1]) return static_cast<Type>(i);
  bad(path, "unknown PLY type '" + std::string(name.substr(0, 40)) + "'; damaged?");
}

struct Property {
  std::string name;
  Type type = Type::kFloat;
  bool is_list = false;
  Type count_type = Type::kUint8;
};
struct Element {
  std::string name;
  int64_t count = 0;
  std::vector<Property> properties;
};
struct PlyHeader {
  bool ascii = false, swapped = false, ras = false;
  std::vector<Element> elements;
};

Property read_property(const std::string& path, Words& words) {
  Property property;
  std::string_view type = words.word();
  if (type == "list") {
    property.is_list = true;
    property.count_type = type_of(path, words.word());
    type = words.word();
  }
  property.type = type_of(path, type);
  property.name = words.word();
  return property;
}

PlyHeader read_header(const std::string& path, Words& lines) {
  if (lines.line() != "ply") bad(path, "not a PLY file: it does not start with 'ply'");
  PlyHeader header;
  while (true) {
    if (lines.end()) bad(path, "the header has no 'end_header'; truncated?");
    const std::string_view line = lines.line();
    Words words(path, line);
    const std::string_view key = words.word();
    if (key == "end_header") break;
    if (key == "format") {
      const std::string_view format = words.word();
      header.ascii = format == "ascii";
      header.swapped = format == "binary_big_endian";
      if (!header.ascii && !header.swapped && format != "binary_little_endian") {
        bad(path, "unknown PLY format; damaged?");
      }
    } else if (key == "element") {
      Element element;
      element.name = words.word();
      element.count = words.integer();
      header.elements.push_back(element);
    } else if (key == "property") {
      if (header.elements.empty()) bad(path, "a property without an element; damaged?");
      header.elements.back().properties.push_back(read_property(path, words));
    } else if (key == "comment" || key == "obj_info") {
      header.ras = header.ras || line.find("SPACE=RAS") != std::string_view::npos;
    }
  }
  return header;
}

double read_value(const PlyHeader& header, Words& data, Type type) {
  if (header.ascii) return data.number();
  const FieldReader in{data.bytes(bytes_of_type(type)).data(), header.swapped};
  switch (type) {
    case Type::kInt8:
      return in.get<int8_t>(0);
    case Type::kUint8:
      return in.get<uint8_t>(0);
    case Type::kInt16:
      return in.get<int16_t>(0);
    case Type::kUint16:
      return in.get<uint16_t>(0);
    case Type::kInt32:
      return in.get<int32_t>(0);
    case Type::kUint32:
      return in.get<uint32_t>(0);
    case Type::kFloat:
      return in.get<float>(0);
    case Type::kDouble:
      return in.get<double>(0);
  }
  return 0;
}

bool is_face_list(const Property& property) {
  return property.is_list && (property.name == "vertex_indices" || property.name == "vertex_index");
}

void read_item(const std::string& path, const PlyHeader& header, const Element& element,
               Words& data, Mesh& mesh) {
  Vec3d vertex;
  std::vector<int64_t> corners;
  for (const Property& property : element.properties) {
    if (!property.is_list) {
      const double value = read_value(header, data, property.type);
      if (property.name.size() == 1 && property.name[0] >= 'x' && property.name[0] <= 'z') {
        vertex[property.name[0] - 'x'] = value;
      }
      continue;
    }
    const double count = read_value(header, data, property.count_type);
    if (!(count >= 0 && count <= 1e9)) bad(path, "a list has no sound length; damaged?");
    check_count(path, static_cast<int64_t>(count), header.ascii ? 1 : bytes_of_type(property.type),
                data.left(), "numbers in a list");
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      const double value = read_value(header, data, property.type);
      if (!is_face_list(property)) continue;
      if (!(std::abs(value) < 1e15)) bad(path, "a face has no sound index; damaged?");
      corners.push_back(static_cast<int64_t>(value));
    }
  }
  if (element.name == "vertex") mesh.vertices_mm.push_back(vertex);
  if (element.name == "face") add_polygon(mesh, corners, path);
}

}  // namespace

Mesh parse_ply(const std::string& path, std::string_view bytes) {
  Words data(path, bytes);
  const PlyHeader header = read_header(path, data);
  Mesh mesh;
  bool has_vertices = false;
  for (const Element& element : header.elements) {
    int64_t least = 0;
    for (const Property& p : element.properties) {
      least += header.ascii ? 2 : bytes_of_type(p.is_list ? p.count_type : p.type);
    }
    if (least == 0) bad(path, "an element without properties; damaged?");
    check_count(path, element.count, least, data.left() + 1, "elements");
    has_vertices = has_vertices || element.name == "vertex";
    for (int64_t i = 0; i < element.count; ++i) read_item(path, header, element, data, mesh);
  }
  if (!has_vertices) bad(path, "no element 'vertex'; not a surface");
  if (header.ras) flip_ras_lps(mesh);
  return mesh;
}

std::string format_ply(const Mesh& mesh, std::span<const VertexNumbers> numbers) {
  std::string out =
      "ply\nformat binary_little_endian 1.0\ncomment Larch surface, SPACE=LPS, mm\n"
      "element vertex " +
      std::to_string(mesh.vertices_mm.size()) +
      "\nproperty float x\nproperty float y\nproperty float z\n";
  for (const VertexNumbers& n : numbers) out += "property float " + n.name + "\n";
  out += "element face " + std::to_string(mesh.triangles.size()) +
         "\nproperty list uchar int vertex_indices\nend_header\n";
  for (size_t v = 0; v < mesh.vertices_mm.size(); ++v) {
    for (int i = 0; i < 3; ++i) put_little(out, static_cast<float>(mesh.vertices_mm[v][i]));
    for (const VertexNumbers& n : numbers) put_little(out, n.values[v]);
  }
  for (const Vec3i& t : mesh.triangles) {
    out += '\3';
    for (int i = 0; i < 3; ++i) put_little(out, static_cast<uint32_t>(t[i]));
  }
  return out;
}

}  // namespace larch::io
