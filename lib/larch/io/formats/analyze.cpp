// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/analyze.h"

#include <cstring>

#include "larch/files/file.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

// Bytes of the fields of dbh.h, and of those to which SPM gave a meaning.
constexpr int kUnits = 56, kDataType = 70, kSpacing = 76, kScale = 112, kOffset = 116;
constexpr int kOrient = 252, kMark = 344;
constexpr int kUnitsLength = 4, kColour = 128;

[[noreturn]] void bad_analyze(const std::string& path, const std::string& what) {
  bad(path,
      "this is ANALYZE 7.5, and " + what + "; convert it to NIfTI with the program that wrote it");
}

}  // namespace

bool is_analyze(const std::string& header_path, const char* header) {
  const std::string ending = file_extension(header_path);
  if (ending != ".hdr" && ending != ".hdr.gz") return false;
  return header[kMark] != 'n';
}

void check_analyze(const std::string& path, const FieldReader& header) {
  if (header.get<uint8_t>(kOrient) != 0) {
    bad_analyze(path, "it does not store axial slices (orient is " +
                          std::to_string(header.get<uint8_t>(kOrient)) +
                          "), which readers turn differently");
  }
  const auto scale = header.get<float>(kScale);
  if (scale != 0 && scale != 1) {
    bad_analyze(path, "it has a scale factor (" + std::to_string(scale) +
                          "), which some programs apply and some do not");
  }
  if (header.get<float>(kOffset) != 0) {
    bad_analyze(path, "it has an offset of the values (" +
                          std::to_string(header.get<float>(kOffset)) +
                          "), which some programs apply and some do not");
  }
  for (int axis = 1; axis <= 3; ++axis) {
    if (header.get<float>(kSpacing + 4 * axis) < 0) {
      bad_analyze(
          path,
          "a voxel spacing in the header is negative, by which some programs mean a flipped axis");
    }
  }
  std::string units(header.bytes + kUnits, kUnitsLength);
  units.resize(std::strlen(units.c_str()));
  if (!units.empty() && units != "mm" && units != "mm.") {
    bad_analyze(path, "its spacings are in " + shown(units) + " instead of mm");
  }
  if (header.get<int16_t>(kDataType) == kColour) {
    bad_analyze(
        path,
        "the colours of ANALYZE are stored in two ways, of which the header does not say one");
  }
}

void set_analyze_geometry(const std::string& path, Header& header) {
  header.grid.direction = {{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}}};
  header.doubt = Doubt{Allow::kAnalyzeOrientation,
                       "'" + path + "': this is ANALYZE 7.5, which does not say which side is left",
                       "the radiological convention of SPM is taken: the axes run from right to "
                       "left, to the front and upwards (LAS), from the origin"};
}

}  // namespace larch::io
