// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// GIFTI 1.0 (NITRC): XML with one array of points and one of triangles.
#include <array>
#include <cstring>
#include <map>

#include <expat.h>

#include "larch/core/error.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

constexpr const char* kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

std::string inflated(const std::string& path, const std::string& packed, int64_t wanted) {
  check_count(path, wanted, 1, static_cast<int64_t>(packed.size()) * kMostDeflate, "bytes");
  std::string out(static_cast<size_t>(wanted), '\0');
  ZReader in(packed, Packing::kZlib, path);
  if (in.read(out.data(), wanted) < wanted || in.finish() > 0) {
    bad(path, "compressed data are damaged or truncated");
  }
  return out;
}

struct Array {
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> texts;  ///< of the elements within, by their names
};

struct Document {
  std::vector<Array> arrays;
  std::string text;
  bool is_gifti = false;
};

void XMLCALL on_start(void* user, const XML_Char* name, const XML_Char** attributes) {
  auto& document = *static_cast<Document*>(user);
  document.text.clear();
  if (std::strcmp(name, "GIFTI") == 0) document.is_gifti = true;
  if (std::strcmp(name, "DataArray") != 0) return;
  document.arrays.emplace_back();
  for (; attributes[0] != nullptr; attributes += 2) {
    document.arrays.back().attributes[attributes[0]] = attributes[1];
  }
}

void XMLCALL on_end(void* user, const XML_Char* name) {
  auto& document = *static_cast<Document*>(user);
  if (document.arrays.empty()) return;
  document.arrays.back().texts[name].swap(document.text);
  document.text.clear();
}

void XMLCALL on_text(void* user, const XML_Char* text, int length) {
  static_cast<Document*>(user)->text.append(text, static_cast<size_t>(length));
}

Document parse_xml(const std::string& path, std::string_view bytes) {
  Document document;
  const XML_Parser parser = XML_ParserCreate(nullptr);
  if (parser == nullptr) throw MemoryError("'" + path + "': not enough host memory to read it");
  XML_SetUserData(parser, &document);
  XML_SetElementHandler(parser, on_start, on_end);
  XML_SetCharacterDataHandler(parser, on_text);
  bool good = true;
  constexpr size_t kPiece = size_t{1} << 28;
  for (size_t at = 0; good && (at < bytes.size() || at == 0); at += kPiece) {
    const std::string_view piece = bytes.substr(at, kPiece);
    good = XML_Parse(parser, piece.data(), static_cast<int>(piece.size()),
                     at + kPiece >= bytes.size() ? 1 : 0) == XML_STATUS_OK;
  }
  const std::string problem = good ? "" : XML_ErrorString(XML_GetErrorCode(parser));
  const auto line = static_cast<int64_t>(XML_GetCurrentLineNumber(parser));
  XML_ParserFree(parser);
  if (!good) {
    bad(path,
        "not sound XML, line " + std::to_string(line) + ": " + problem + "; damaged or truncated?");
  }
  if (!document.is_gifti) bad(path, "not a GIFTI file: it has no element GIFTI");
  return document;
}

const std::string& value_of(const std::map<std::string, std::string>& values, const char* name) {
  static const std::string kNone;
  const auto found = values.find(name);
  return found == values.end() ? kNone : found->second;
}

// The numbers of an array of `rows` x 3.
std::vector<double> values_of(const std::string& path, const Array& array) {
  const auto attribute = [&](const char* name) { return value_of(array.attributes, name); };
  const std::string& data = value_of(array.texts, "Data");
  const int64_t rows = Words(path, data).integer_of(attribute("Dim0"));
  if (attribute("Dimensionality") != "2" || attribute("Dim1") != "3") {
    bad(path, "the points or triangles do not come in threes; not a triangle surface");
  }
  const std::string type = attribute("DataType");
  const bool is_float = type == "NIFTI_TYPE_FLOAT32";
  if (!is_float && type != "NIFTI_TYPE_INT32") {
    bad(path, "the data type '" + type + "' is not supported; use float32 and int32");
  }
  const std::string coding = attribute("Encoding");
  const bool is_text = coding == "ASCII", is_packed = coding == "GZipBase64Binary";
  const auto size = static_cast<int64_t>(data.size());
  check_count(path, rows, 1, size * kMostDeflate, "rows");
  if (!is_text && !is_packed && coding != "Base64Binary") {
    bad(path, "the encoding '" + coding + "' is not supported; use Base64Binary");
  }
  std::string bytes = is_text ? data : from_base64(path, data);
  if (is_packed) bytes = inflated(path, bytes, rows * 12);
  check_count(path, rows, is_text ? 3 : 12, static_cast<int64_t>(bytes.size()), "rows");
  std::vector<double> values =
      Words(path, bytes)
          .numbers(3 * rows, is_float ? kNumberType<float> : kNumberType<int32_t>,
                   is_text                              ? Encoding::kText
                   : attribute("Endian") == "BigEndian" ? Encoding::kBigEndian
                                                        : Encoding::kLittleEndian);
  if (attribute("ArrayIndexingOrder") == "ColumnMajorOrder") {
    std::vector<double> rows_first(values.size());
    const size_t n = values.size() / 3;
    for (size_t i = 0; i < values.size(); ++i) rows_first[i % n * 3 + i / n] = values[i];
    values.swap(rows_first);
  }
  return values;
}

constexpr std::pair<WorldFrame, const char*> kSpaces[] = {
    {WorldFrame::kScanner, "NIFTI_XFORM_SCANNER_ANAT"},
    {WorldFrame::kAligned, "NIFTI_XFORM_ALIGNED_ANAT"},
    {WorldFrame::kTalairach, "NIFTI_XFORM_TALAIRACH"},
    {WorldFrame::kMni152, "NIFTI_XFORM_MNI_152"},
    {WorldFrame::kUnknown, "NIFTI_XFORM_UNKNOWN"}};

// The matrix leads from DataSpace to TransformedSpace. It is applied unless the points already are
// in scanner space. Returns the space of the points.
std::string apply_transform(const std::string& path, const Array& array, Mesh& mesh) {
  const std::string& matrix = value_of(array.texts, "MatrixData");
  const std::string& space = value_of(array.texts, "DataSpace");
  if (matrix.empty() || space.find(kSpaces[0].second) != std::string::npos) return space;
  Words words(path, matrix);
  const std::vector<double> m = words.numbers(16, {}, Encoding::kText);
  for (Vec3d& v : mesh.vertices_mm) {
    v = {m[0] * v.x + m[1] * v.y + m[2] * v.z + m[3], m[4] * v.x + m[5] * v.y + m[6] * v.z + m[7],
         m[8] * v.x + m[9] * v.y + m[10] * v.z + m[11]};
  }
  return value_of(array.texts, "TransformedSpace");
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

Mesh parse_gifti(const std::string& path, std::string_view bytes) {
  const Document document = parse_xml(path, bytes);
  const Array *points = nullptr, *triangles = nullptr;
  for (const Array& array : document.arrays) {
    const std::string& intent = value_of(array.attributes, "Intent");
    if (intent == "NIFTI_INTENT_POINTSET") points = &array;
    if (intent == "NIFTI_INTENT_TRIANGLE") triangles = &array;
  }
  if (points == nullptr || triangles == nullptr) {
    bad(path, "the GIFTI file has no points or no triangles; give a surface (.surf.gii)");
  }
  Mesh mesh;
  mesh.vertices_mm = positions_of(values_of(path, *points));
  const std::string space = apply_transform(path, *points, mesh);
  const std::vector<double> corners = values_of(path, *triangles);
  for (size_t i = 0; i < corners.size(); i += 3) {
    add_polygon(mesh, std::span(corners).subspan(i, 3), path);
  }
  flip_ras_lps(mesh);
  for (const auto& [frame, name] : kSpaces) {
    if (space.find(name) != std::string::npos) mesh.frame = frame;
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
