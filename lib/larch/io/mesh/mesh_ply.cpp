// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// PLY (Stanford), ASCII and binary of both byte orders: elements with typed properties.
#include <algorithm>

#include "larch/io/bytes/message.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

constexpr std::pair<std::string_view, NumberType> kPlyTypes[] = {
    {"char", kNumberType<int8_t>},     {"int8", kNumberType<int8_t>},
    {"uchar", kNumberType<uint8_t>},   {"uint8", kNumberType<uint8_t>},
    {"short", kNumberType<int16_t>},   {"int16", kNumberType<int16_t>},
    {"ushort", kNumberType<uint16_t>}, {"uint16", kNumberType<uint16_t>},
    {"int", kNumberType<int32_t>},     {"int32", kNumberType<int32_t>},
    {"uint", kNumberType<uint32_t>},   {"uint32", kNumberType<uint32_t>},
    {"float", kNumberType<float>},     {"float32", kNumberType<float>},
    {"double", kNumberType<double>},   {"float64", kNumberType<double>}};

NumberType type_of(const std::string& path, std::string_view name) {
  for (const auto& [known, type] : kPlyTypes) {
    if (name == known) return type;
  }
  bad(path, "unknown PLY type " + shown(name) + "; damaged?");
}

struct Property {
  std::string name;
  NumberType type;
  bool is_list = false;
  NumberType count_type{};
};
struct Element {
  std::string name;
  int64_t count = 0;
  std::vector<Property> properties;
};
struct PlyHeader {
  Encoding encoding = Encoding::kLittleEndian;
  bool ras = false;
  bool has_format = false;
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
      header.has_format = true;
      header.encoding = format == "ascii"               ? Encoding::kText
                        : format == "binary_big_endian" ? Encoding::kBigEndian
                                                        : Encoding::kLittleEndian;
      if (header.encoding == Encoding::kLittleEndian && format != "binary_little_endian") {
        bad(path, "unknown PLY format; damaged?");
      }
    } else if (key == "element") {
      Element element;
      element.name = words.word();
      if (std::ranges::count(header.elements, element.name, &Element::name) > 0) {
        bad(path, "two elements are called " + shown(element.name) + "; damaged?");
      }
      element.count = words.integer();
      header.elements.push_back(element);
    } else if (key == "property") {
      if (header.elements.empty()) bad(path, "a property without an element; damaged?");
      header.elements.back().properties.push_back(read_property(path, words));
    } else if (key == "comment" || key == "obj_info") {
      header.ras = header.ras || says_ras(line);
    } else if (!key.empty()) {
      bad(path, "unexpected word " + shown(key) + " in the header; damaged?");
    }
  }
  if (!header.has_format) bad(path, "the header does not tell its format; damaged?");
  return header;
}

bool is_corners(const Property& property) {
  return property.is_list && (property.name == "vertex_indices" || property.name == "vertex_index");
}

/// A vertex has each of its coordinates once, a face one list of corners.
void check_properties(const std::string& path, const Element& element) {
  for (const char* name : {"x", "y", "z"}) {
    const auto is_it = [&](const Property& p) { return p.name == name && !p.is_list; };
    if (element.name == "vertex" && std::ranges::count_if(element.properties, is_it) != 1) {
      bad(path, std::string("a vertex needs the property ") + name + " exactly once; damaged?");
    }
  }
  if (element.name == "face" && std::ranges::count_if(element.properties, is_corners) != 1) {
    bad(path, "a face needs one list 'vertex_indices'; damaged?");
  }
}

void read_item(const std::string& path, const PlyHeader& header, const Element& element,
               Words& data, Mesh& mesh) {
  const Encoding encoding = header.encoding;
  Vec3d vertex;
  std::vector<double> corners;
  for (const Property& property : element.properties) {
    if (!property.is_list) {
      const double value = data.number(property.type, encoding);
      if (property.name.size() == 1 && property.name[0] >= 'x' && property.name[0] <= 'z') {
        vertex[property.name[0] - 'x'] = value;
      }
      continue;
    }
    const double count = data.number(property.count_type, encoding);
    if (!(is_count(count) && count <= 1e9)) bad(path, "a list has no sound length; damaged?");
    check_count(path, static_cast<int64_t>(count),
                encoding == Encoding::kText ? 1 : property.type.bytes, data.left(),
                "numbers in a list");
    const bool is_face = is_corners(property);
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      const double value = data.number(property.type, encoding);
      if (is_face) corners.push_back(value);
    }
  }
  if (element.name == "vertex") mesh.vertices_mm.push_back(vertex);
  if (element.name == "face") add_polygon(mesh, corners, path);
}

}  // namespace

Mesh parse_ply(const std::string& path, std::string_view bytes, const MeshWarn&) {
  Words data(path, bytes);
  const PlyHeader header = read_header(path, data);
  Mesh mesh;
  bool has_vertices = false;
  for (const Element& element : header.elements) {
    check_properties(path, element);
    int64_t least = 0;
    for (const Property& p : element.properties) {
      least += header.encoding == Encoding::kText ? 2 : (p.is_list ? p.count_type : p.type).bytes;
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
    put(out, mesh.vertices_mm[v].cast<float>());
    for (const VertexNumbers& n : numbers) put(out, n.values[v]);
  }
  for (const Vec3i& t : mesh.triangles) {
    out += '\3';
    put(out, t);
  }
  return out;
}

}  // namespace larch::io
