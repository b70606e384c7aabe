// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// GIFTI 1.0 (NITRC): XML with one array of points and one of triangles.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include <expat.h>

#include "larch/core/error.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

constexpr const char* kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

namespace {

std::string from_base64(const std::string& path, std::string_view text) {
  std::array<int, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 64; ++i) values[static_cast<uint8_t>(kAlphabet[i])] = i;
  std::string out;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=' || c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    const int value = values[static_cast<uint8_t>(c)];
    if (value < 0) bad(path, "the base64 data contain other characters; damaged?");
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(group >> bits & 255U);
    }
  }
  return out;
}

constexpr int64_t kMaximumGrowth = 32;  ///< of surfaces it is 2 to 6
constexpr int64_t kAnyGrowth = int64_t{8} << 20;
constexpr double kSameMm = 0.1;  ///< between two ways to the scanner

std::string inflated(const std::string& path, const std::string& packed, int64_t wanted) {
  if (wanted > kAnyGrowth && wanted / kMaximumGrowth > static_cast<int64_t>(packed.size())) {
    bad(path, std::to_string(packed.size()) + " compressed bytes promise " +
                  std::to_string(wanted) + ", more than " + std::to_string(kMaximumGrowth) +
                  " times as many, as no surface does; damaged?");
  }
  std::string out(static_cast<size_t>(wanted), '\0');
  ZReader in(packed, Packing::kZlib, path);
  if (in.read(out.data(), wanted) < wanted || in.finish() > 0) {
    bad(path, "compressed data are damaged, truncated, or of another size");
  }
  return out;
}

using Texts = std::map<std::string, std::string>;

struct Array {
  Texts attributes;
  Texts system;  ///< the elements of the CoordinateSystemTransformMatrix
  Texts meta;    ///< the values of MetaData, by their names
  std::string data;
};

struct Document {
  XML_Parser parser = nullptr;
  Array array;  ///< that is being read
  std::optional<Array> points, triangles;
  std::string text, name;
  int depth = 0;
  bool is_gifti = false, is_in_array = false;
  std::string problem;

  void stop(const char* why) {
    problem = why;
    XML_StopParser(parser, XML_FALSE);
  }
};

void XMLCALL on_start(void* user, const XML_Char* name, const XML_Char** attributes) {
  auto& document = *static_cast<Document*>(user);
  document.text.clear();
  if (++document.depth > 64) document.stop("elements stand in one another 64 times");
  if (std::strcmp(name, "GIFTI") == 0) document.is_gifti = true;
  if (std::strcmp(name, "DataArray") != 0) return;
  document.array = {};
  document.is_in_array = true;
  for (; attributes[0] != nullptr; attributes += 2) {
    document.array.attributes[attributes[0]] = attributes[1];
  }
}

void end_array(Document& document) {
  const std::string& intent = document.array.attributes["Intent"];
  document.is_in_array = false;
  if (intent != "NIFTI_INTENT_POINTSET" && intent != "NIFTI_INTENT_TRIANGLE") return;
  auto& place = intent.ends_with("POINTSET") ? document.points : document.triangles;
  if (place) document.stop("there are two arrays of points or of triangles");
  place = std::move(document.array);
}

void XMLCALL on_end(void* user, const XML_Char* name) {
  auto& document = *static_cast<Document*>(user);
  --document.depth;
  if (!document.is_in_array) return;
  Array& array = document.array;
  const std::string element = name;
  if (element == "DataArray") return end_array(document);
  std::string& place = element == "Data"    ? array.data
                       : element == "Name"  ? document.name
                       : element == "Value" ? array.meta[document.name]
                                            : array.system[element];
  place.swap(document.text);
  document.text.clear();
}

void XMLCALL on_text(void* user, const XML_Char* text, int length) {
  auto& document = *static_cast<Document*>(user);
  if (document.is_in_array) document.text.append(text, static_cast<size_t>(length));
}

/// Entities make much text of little, in calls that go as deep as the file likes.
void XMLCALL on_entity(void* user, const XML_Char*, int, const XML_Char*, int, const XML_Char*,
                       const XML_Char*, const XML_Char*, const XML_Char*) {
  static_cast<Document*>(user)->stop("it declares entities, which GIFTI has no use for");
}

Document parse_xml(const std::string& path, std::string_view bytes) {
  const XML_Parser parser = XML_ParserCreate(nullptr);
  if (parser == nullptr) throw MemoryError("'" + path + "': not enough host memory to read it");
  Document document;
  document.parser = parser;
  XML_SetUserData(parser, &document);
  XML_SetElementHandler(parser, on_start, on_end);
  XML_SetCharacterDataHandler(parser, on_text);
  XML_SetEntityDeclHandler(parser, on_entity);
  bool good = true;
  constexpr size_t kPiece = size_t{1} << 28;
  for (size_t at = 0; good && (at < bytes.size() || at == 0); at += kPiece) {
    const std::string_view piece = bytes.substr(at, kPiece);
    good = XML_Parse(parser, piece.data(), static_cast<int>(piece.size()),
                     at + kPiece >= bytes.size() ? 1 : 0) == XML_STATUS_OK;
  }
  if (!good && document.problem.empty()) {
    document.problem = "not sound XML: " + std::string(XML_ErrorString(XML_GetErrorCode(parser)));
  }
  const auto line = static_cast<int64_t>(XML_GetCurrentLineNumber(parser));
  XML_ParserFree(parser);
  if (!good) {
    bad(path, "line " + std::to_string(line) + ": " + document.problem + "; damaged or truncated?");
  }
  if (!document.is_gifti) bad(path, "not a GIFTI file: it has no element GIFTI");
  return document;
}

const std::string& value_of(const Texts& values, const char* name) {
  static const std::string kNone;
  const auto found = values.find(name);
  return found == values.end() ? kNone : found->second;
}

/// Reads an array of `rows` x 3 numbers. `resize(rows)` comes first, then `put(row, column,
/// number)`.
template <class Resize, class Put>
void read_rows(const std::string& path, const Array& array, const Resize& resize, const Put& put) {
  const auto attribute = [&](const char* name) { return value_of(array.attributes, name); };
  const auto is_one_of = [&](const char* name, std::string_view one, std::string_view other) {
    const std::string value = attribute(name);
    if (value == one || value == other) return value == one;
    bad(path, std::string(name) + " " + shown(value) + " is not supported");
  };
  const std::string& data = array.data;
  const int64_t rows = Words(path, data).integer_of(attribute("Dim0"));
  if (attribute("Dimensionality") != "2" || attribute("Dim1") != "3") {
    bad(path, "the points or triangles do not come in threes; not a triangle surface");
  }
  const bool is_float = is_one_of("DataType", "NIFTI_TYPE_FLOAT32", "NIFTI_TYPE_INT32");
  const bool is_text = attribute("Encoding") == "ASCII";
  const bool is_packed = !is_text && is_one_of("Encoding", "GZipBase64Binary", "Base64Binary");
  const bool is_by_rows = attribute("ArrayIndexingOrder").empty() ||
                          is_one_of("ArrayIndexingOrder", "RowMajorOrder", "ColumnMajorOrder");
  const Encoding encoding = is_text ? Encoding::kText
                            : is_one_of("Endian", "LittleEndian", "BigEndian")
                                ? Encoding::kLittleEndian
                                : Encoding::kBigEndian;
  check_count(path, rows, 1, static_cast<int64_t>(data.size()) * kMaximumDeflate, "rows");
  std::string bytes = is_text ? data : from_base64(path, data);
  if (is_packed) bytes = inflated(path, bytes, rows * 12);
  check_count(path, rows, is_text ? 5 : 12, static_cast<int64_t>(bytes.size()) + 1, "rows");
  resize(static_cast<size_t>(rows));
  Words words(path, bytes);
  for (int64_t i = 0; i < 3 * rows; ++i) {
    const double number =
        words.number(is_float ? kNumberType<float> : kNumberType<int32_t>, encoding);
    const auto [row, column] = is_by_rows ? std::pair(i / 3, i % 3) : std::pair(i % rows, i / rows);
    put(static_cast<size_t>(row), static_cast<int>(column), number);
  }
  if (is_text ? !words.word().empty() : !words.end()) {
    bad(path, "there are more data than " + std::to_string(rows) + " rows; damaged?");
  }
}

constexpr std::pair<WorldFrame, const char*> kSpaces[] = {
    {WorldFrame::kScanner, "NIFTI_XFORM_SCANNER_ANAT"},
    {WorldFrame::kAligned, "NIFTI_XFORM_ALIGNED_ANAT"},
    {WorldFrame::kTalairach, "NIFTI_XFORM_TALAIRACH"},
    {WorldFrame::kMni152, "NIFTI_XFORM_MNI_152"},
    {WorldFrame::kUnknown, "NIFTI_XFORM_UNKNOWN"}};

/// Moves the points to scanner space where the file says how, and returns the name of their space.
/// Points in a space that has a name stay as they are, as in FreeSurfer, Connectome Workbench and
/// nibabel: FreeSurfer gives them a matrix that leads back to its own coordinates. Those are turned
/// to the axes of its volume, about its centre; MetaData tell both in scanner space.
std::string move_points(const std::string& path, const Array& array, const MeshWarn& warn,
                        Mesh& mesh) {
  const std::string unknown = "NIFTI_XFORM_UNKNOWN", scanner = kSpaces[0].second;
  const auto word = [&](const char* name) {
    return std::string(Words(path, value_of(array.system, name)).word());
  };
  std::string from = word("DataSpace");
  const std::string to = word("TransformedSpace");
  if (!from.empty() && from != unknown) return from;
  const auto vector_of = [&](const std::string& name, Vec3d vector) {
    for (int axis = 0; axis < 3; ++axis) {
      const auto found = array.meta.find(name + "RAS"[axis]);
      if (found != array.meta.end()) vector[axis] = Words(path, found->second).number();
    }
    return vector;
  };
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Vec3d x = vector_of("VolGeomX_", {-1, 0, 0}), y = vector_of("VolGeomY_", {0, 0, -1}),
              z = vector_of("VolGeomZ_", {0, 1, 0}),
              centre = vector_of("VolGeomC_", {kNone, kNone, kNone});
  const bool is_own = std::ranges::any_of(
      array.meta, [](const auto& entry) { return entry.first.starts_with("VolGeomC_"); });
  const bool leads_there = to == scanner || (to == unknown && !is_own);
  std::vector<double> m{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  if (leads_there) {
    m = Words(path, value_of(array.system, "MatrixData")).numbers(12, {}, Encoding::kText);
  }
  bool is_moved = false;
  for (Vec3d& v : mesh.vertices_mm) {
    const Vec3d before = v, own = centre - x * v.x + z * v.y - y * v.z;
    v = {m[0] * v.x + m[1] * v.y + m[2] * v.z + m[3], m[4] * v.x + m[5] * v.y + m[6] * v.z + m[7],
         m[8] * v.x + m[9] * v.y + m[10] * v.z + m[11]};
    if (is_own && leads_there && norm(v - own) > kSameMm) {
      bad(path,
          "its matrix and VolGeom of FreeSurfer lead to different places, so that it is not known "
          "which counts; write it again with mris_convert --to-scanner");
    }
    if (is_own) v = own;
    is_moved = is_moved || v != before;
  }
  const std::string how =
      is_own     ? "the points are FreeSurfer's; VolGeom moves them to the scanner's"
      : is_moved ? "its matrix moves the points, to " + shown(to)
      : leads_there || to.empty() ? ""
                                  : "its matrix, which leads to " + shown(to) + ", is not applied";
  if (warn && !how.empty()) warn("'" + path + "': " + how);
  return is_own || to == scanner ? scanner : from;
}

std::string array_element(const char* intent, const char* type, size_t rows,
                          const std::string& inner, const std::string& bytes) {
  return std::string("  <DataArray Intent=\"") + intent + "\" DataType=\"" + type +
         "\" ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"" +
         std::to_string(rows) +
         "\" Dim1=\"3\" Encoding=\"Base64Binary\" Endian=\"LittleEndian\" ExternalFileName=\"\" "
         "ExternalFileOffset=\"\">\n    <MetaData/>\n" +
         inner + "    <Data>" + base64(bytes) + "</Data>\n  </DataArray>\n";
}

}  // namespace

Mesh parse_gifti(const std::string& path, std::string_view bytes, const MeshWarn& warn) {
  const Document document = parse_xml(path, bytes);
  if (!document.points || !document.triangles) {
    bad(path, "the GIFTI file has no points or no triangles; give a surface (.surf.gii)");
  }
  Mesh mesh;
  read_rows(
      path, *document.points, [&](size_t rows) { mesh.vertices_mm.resize(rows); },
      [&](size_t row, int column, double mm) { mesh.vertices_mm[row][column] = mm; });
  read_rows(
      path, *document.triangles, [&](size_t rows) { mesh.triangles.resize(rows); },
      [&](size_t row, int column, double corner) {
        mesh.triangles[row][column] = index_of(corner, path);
      });
  const std::string space = move_points(path, *document.points, warn, mesh);
  flip_ras_lps(mesh);
  for (const auto& [frame, name] : kSpaces) {
    if (space == name) mesh.frame = frame;
  }
  return mesh;
}

std::string format_gifti(const Mesh& mesh, std::span<const VertexNumbers>) {
  std::string points, triangles;
  for (const Vec3d& v : mesh.vertices_mm) {
    put(points, Vec3d{-v.x + 0.0, -v.y + 0.0, v.z}.cast<float>());
  }
  for (const Vec3i& t : mesh.triangles) put(triangles, t);
  std::string name = "NIFTI_XFORM_UNKNOWN";  // GIFTI has no name for other templates
  for (const auto& [known, known_name] : kSpaces) {
    if (known == mesh.frame) name = known_name;
  }
  const std::string space =
      "    <CoordinateSystemTransformMatrix>\n      <DataSpace>" + name +
      "</DataSpace>\n      <TransformedSpace>" + name +
      "</TransformedSpace>\n      <MatrixData>1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1</MatrixData>\n"
      "    </CoordinateSystemTransformMatrix>\n";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<!DOCTYPE GIFTI SYSTEM \"http://www.nitrc.org/frs/download.php/115/gifti.dtd\">\n"
         "<GIFTI Version=\"1.0\" NumberOfDataArrays=\"2\">\n  <MetaData/>\n  <LabelTable/>\n" +
         array_element("NIFTI_INTENT_POINTSET", "NIFTI_TYPE_FLOAT32", mesh.vertices_mm.size(),
                       space, points) +
         array_element("NIFTI_INTENT_TRIANGLE", "NIFTI_TYPE_INT32", mesh.triangles.size(), "",
                       triangles) +
         "</GIFTI>\n";
}

}  // namespace larch::io
