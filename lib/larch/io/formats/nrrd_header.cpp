// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "larch/core/guard.h"
#include "larch/io/formats/nrrd.h"
#include "larch/io/formats/nrrd_files.h"
#include "larch/io/image/message.h"
#include "larch/io/image/text_header.h"

namespace larch::io {
namespace {
[[noreturn]] void bad_line(const std::string& path, const char* field) {
  bad(path, std::string("the header line '") + field + "' is damaged or not supported");
}

/// Fields that have two spellings, one without the space, under the first.
std::string field_value(const TextHeader& text, const char* name) {
  std::string value = text.value(name);
  if (!value.empty()) return value;
  std::string joined = name;
  joined.erase(std::remove(joined.begin(), joined.end(), ' '), joined.end());
  return text.value(joined);
}

/// Of words that stand between bars.
bool holds(std::string_view words, const std::string& word) {
  return word.find('|') == word.npos && words.find("|" + word + "|") != words.npos;
}

void check_fields(const std::string& path, const TextHeader& text) {
  constexpr std::string_view kKnown =
      "|number|type|block size|blocksize|dimension|space|sizes|space dimension|spacings|"
      "thicknesses|axis mins|axismins|axis maxs|axismaxs|space directions|centers|centerings|"
      "kinds|labels|units|min|max|old min|oldmin|old max|oldmax|endian|encoding|line skip|"
      "lineskip|byte skip|byteskip|content|sample units|sampleunits|space units|space origin|"
      "measurement frame|data file|datafile|";
  for (const auto& [field, value] : text.values) {
    if (!holds(kKnown, field)) {
      bad(path, "the header has a field " + shown(field) + ", which NRRD does not know");
    }
  }
}

int64_t integer_field(const std::string& path, const TextHeader& text, const char* field,
                      int64_t least) {
  const std::string word = field_value(text, field);
  if (word.empty()) return 0;
  const auto value = number_of_word(word);
  if (!value || !(*value >= static_cast<double>(least) && *value <= 1e15) ||
      *value != std::floor(*value)) {
    bad_line(path, field);
  }
  return static_cast<int64_t>(*value);
}

/// A number for each axis, NaN where the file says so; empty if the field is absent.
std::vector<double> axis_numbers(const std::string& path, const TextHeader& text, const char* field,
                                 size_t axes) {
  std::vector<double> all;
  for (const std::string& word : words_of(field_value(text, field))) {
    const auto value = number_of_word(word);
    if (!value) bad_line(path, field);
    all.push_back(*value);
  }
  if (!all.empty() && all.size() != axes) bad_line(path, field);
  return all;
}

using Vector = std::optional<Vec3d>;  ///< nothing for "none"

/// Vectors "(1,2,3)" of `length` numbers, of which the first three count.
std::vector<Vector> vectors_of(const std::string& path, const std::string& text, const char* field,
                               size_t length) {
  std::vector<Vector> all;
  for (const char* at = text.c_str(); *at != '\0';) {
    if (*at == ' ' || *at == '\t') {
      ++at;
    } else if (std::string_view(at).starts_with("none")) {
      all.emplace_back();
      at += 4;
    } else {
      if (*at++ != '(') bad_line(path, field);
      Vec3d vector{0, 0, 0};
      for (size_t i = 0; i < length; ++i) {
        char* end = nullptr;
        const double value = std::strtod(at, &end);
        if (end == at) bad_line(path, field);
        while (*end == ' ') ++end;
        if (*end != (i + 1 < length ? ',' : ')')) bad_line(path, field);
        if (i < 3) vector[static_cast<int>(i)] = value;
        at = end + 1;
      }
      const bool none =
          std::isnan(vector.x) && std::isnan(vector.y) && (length < 3 || std::isnan(vector.z));
      all.push_back(none ? Vector() : Vector(vector));
    }
  }
  return all;
}

Component component_of(const std::string& path, const std::string& type) {
  struct Row {
    Component component;
    std::vector<std::string> names;
  };
  static const Row kRows[] = {
      {Component::kInt8, {"signed char", "int8", "int8_t"}},
      {Component::kUint8, {"uchar", "unsigned char", "uint8", "uint8_t"}},
      {Component::kInt16,
       {"short", "short int", "signed short", "signed short int", "int16", "int16_t"}},
      {Component::kUint16,
       {"ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"}},
      {Component::kInt32, {"int", "signed int", "int32", "int32_t"}},
      {Component::kUint32, {"uint", "unsigned int", "uint32", "uint32_t"}},
      {Component::kInt64,
       {"longlong", "long long", "long long int", "signed long long", "signed long long int",
        "int64", "int64_t"}},
      {Component::kUint64,
       {"ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"}},
      {Component::kFloat32, {"float"}},
      {Component::kFloat64, {"double"}}};
  const std::string wanted = lower_case(type);
  for (const Row& row : kRows) {
    if (std::find(row.names.begin(), row.names.end(), wanted) != row.names.end()) {
      return row.component;
    }
  }
  bad(path, "the type " + shown(type) + " is not supported or damaged");
}

/// What the header says of its world: how many numbers a position has, which of them change their
/// sign on the way to LPS, and how many millimetres a unit is.
struct Space {
  size_t dimension = 0;  ///< 0: no space, spacings at most
  Vec3d sign{1, 1, 1};
  Vec3d mm{1, 1, 1};
};

Space space_of(const std::string& path, const TextHeader& text) {
  struct Row {
    const char *name, *short_name;
    size_t dimension;
    Vec3d sign;
  };
  constexpr Row kRows[] = {{"right-anterior-superior", "ras", 3, {-1, -1, 1}},
                           {"left-anterior-superior", "las", 3, {1, -1, 1}},
                           {"left-posterior-superior", "lps", 3, {1, 1, 1}},
                           {"right-anterior-superior-time", "rast", 4, {-1, -1, 1}},
                           {"left-anterior-superior-time", "last", 4, {1, -1, 1}},
                           {"left-posterior-superior-time", "lpst", 4, {1, 1, 1}},
                           {"scanner-xyz", "scanner-xyz", 3, {1, 1, 1}},
                           {"scanner-xyz-time", "scanner-xyz-time", 4, {1, 1, 1}},
                           {"3d-right-handed", "3d-right-handed", 3, {1, 1, 1}},
                           {"3d-left-handed", "3d-left-handed", 3, {1, 1, 1}},
                           {"3d-right-handed-time", "3d-right-handed-time", 4, {1, 1, 1}},
                           {"3d-left-handed-time", "3d-left-handed-time", 4, {1, 1, 1}}};
  Space space;
  const std::string name = lower_case(text.value("space"));
  if (!name.empty()) {
    const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) {
      return name == r.name || name == r.short_name;
    });
    if (row == std::end(kRows)) bad_line(path, "space");
    space.dimension = row->dimension;
    space.sign = row->sign;
  }
  const int64_t dimension = integer_field(path, text, "space dimension", 1);
  if (dimension > 8 || (dimension != 0 && !name.empty())) bad_line(path, "space dimension");
  if (dimension != 0) space.dimension = static_cast<size_t>(dimension);
  return space;
}

double mm_of_unit(const std::string& path, const std::string& unit) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},       {"mm", 1},        {"millimeter", 1}, {"millimeters", 1}, {"millimetre", 1},
      {"???", 1},    {"none", 1},      {"cm", 10},        {"m", 1000},        {"um", 1e-3},
      {"µm", 1e-3},  {"micron", 1e-3}, {"microns", 1e-3}, {"nm", 1e-6},       {"voxel", 1},
      {"voxels", 1}, {"pixel", 1},     {"pixels", 1}};
  for (const auto& [name, mm] : kUnits)
    if (unit == name) return mm;
  bad(path, "lengths in " + shown(unit) + " are not supported; write them in mm");
}

/// The axes of the array: those of the image, at most one of time, and at most one of the values at
/// a point.
struct Axes {
  std::vector<size_t> domain;  ///< of space; a fourth one counts frames, whatever it is
  std::optional<size_t> time;  ///< the slowest of all but the range
  std::optional<size_t> range;
  std::string range_kind;
};

bool is_domain(const std::string& path, const std::string& kind) {
  constexpr std::string_view kRange =
      "|list|point|vector|covariant-vector|normal|stub|scalar|complex|2-vector|3-color|"
      "rgb-color|hsv-color|xyz-color|4-color|rgba-color|3-vector|3-gradient|3-normal|4-vector|"
      "quaternion|2d-symmetric-matrix|2d-masked-symmetric-matrix|2d-matrix|2d-masked-matrix|"
      "3d-symmetric-matrix|3d-masked-symmetric-matrix|3d-matrix|3d-masked-matrix|";
  if (holds("|domain|space|time|???|none||", kind)) return true;
  if (!holds(kRange, kind)) bad_line(path, "kinds");
  return false;
}

Axes axes_of(const std::string& path, const TextHeader& text, const std::vector<double>& sizes) {
  std::vector<std::string> kinds = words_of(lower_case(text.value("kinds")));
  if (!kinds.empty() && kinds.size() != sizes.size()) bad_line(path, "kinds");
  kinds.resize(sizes.size());
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (kinds[i] == "time") {
      if (axes.time) bad(path, "two axes of time (kinds); write one of them alone");
      axes.time = i;
    } else if (is_domain(path, kinds[i])) {
      if (axes.time) bad(path, "the axis of time (kinds) comes before one of space; write it last");
      axes.domain.push_back(i);
    } else if (sizes[i] > 1) {
      if (axes.range) bad(path, "two axes of components (kinds); write one of them alone");
      axes.range = i;
      axes.range_kind = kinds[i];
    }
  }
  if (axes.domain.empty()) bad(path, "no axis of the image is one of space (kinds)");
  return axes;
}

void set_channels(const std::string& path, const Axes& axes, const std::vector<double>& sizes,
                  NrrdHeader& out) {
  if (!axes.range) return;
  const double channels = sizes[*axes.range];
  if (channels > 65535) bad_line(path, "sizes");
  out.header.channels = static_cast<int>(channels);
  const std::string& kind = axes.range_kind;
  out.header.colour = ((kind == "rgb-color" || kind == "3-color") && channels == 3) ||
                      ((kind == "rgba-color" || kind == "4-color") && channels == 4);
  for (size_t i = 0; i < *axes.range; ++i) out.values_between *= static_cast<int64_t>(sizes[i]);
}

/// Positions by the directions of a space.
void place_by_directions(const std::string& path, const TextHeader& text, const Axes& axes,
                         const Space& space, size_t array_axes, Grid& grid) {
  const auto directions =
      vectors_of(path, text.value("space directions"), "space directions", space.dimension);
  if (space.dimension == 0 || directions.size() != array_axes) bad_line(path, "space directions");
  const int n = static_cast<int>(std::min<size_t>(axes.domain.size(), 3));
  for (int axis = 0; axis < n; ++axis) {
    const Vector& along = directions[axes.domain[static_cast<size_t>(axis)]];
    if (!along) bad(path, "an axis of the image has no direction in space; repair the header");
    Vec3d step;
    for (int row = 0; row < 3; ++row) step[row] = (*along)[row] * space.sign[row] * space.mm[row];
    grid.spacing_mm[axis] = norm(step);
    for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = step[row] / norm(step) + 0.0;
  }
  if (n == 2 && space.dimension > 2) {  // a slice in space: its normal
    const Vec3d a = grid.direction.column(0), b = grid.direction.column(1);
    const Vec3d normal{a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
    for (int row = 0; row < 3; ++row) grid.direction.m[row][2] = normal[row] / norm(normal) + 0.0;
  }
}

/// Positions along the axes of the array, without a space.
void place_by_spacings(const std::string& path, const TextHeader& text, const Axes& axes,
                       size_t array_axes, Grid& grid) {
  const auto spacings = axis_numbers(path, text, "spacings", array_axes);
  const auto mins = axis_numbers(path, text, "axis mins", array_axes);
  const auto maxs = axis_numbers(path, text, "axis maxs", array_axes);
  auto centers = words_of(lower_case(text.value("centers") + text.value("centerings")));
  if (!centers.empty() && centers.size() != array_axes) bad_line(path, "centers");
  centers.resize(array_axes);
  auto units = quoted_words(text.value("units"));
  if (text.values.contains("units") && units.size() != array_axes) bad_line(path, "units");
  units.resize(array_axes);
  const auto given = [](const std::vector<double>& numbers, size_t i) {
    return !numbers.empty() && !std::isnan(numbers[i]);
  };
  for (size_t d = 0; d < std::min<size_t>(axes.domain.size(), 3); ++d) {
    const size_t i = axes.domain[d];
    const int axis = static_cast<int>(d);
    const bool node = centers[i] == "node";
    if (given(spacings, i)) {
      grid.spacing_mm[axis] = spacings[i];
    } else if (given(mins, i) && given(maxs, i)) {
      // From border to border of the voxels, or between the outermost centres.
      const double steps = std::max(grid.size[axis] - (node ? 1 : 0), 1);
      grid.spacing_mm[axis] = (maxs[i] - mins[i]) / steps;
    }
    if (given(mins, i)) grid.origin_mm[axis] = mins[i] + (node ? 0 : grid.spacing_mm[axis] / 2);
    const double mm = mm_of_unit(path, units[i]);
    grid.spacing_mm[axis] *= mm;
    grid.origin_mm[axis] *= mm;
  }
}

/// The spacing of an axis of time; 0 if there is none, or in no unit of time.
double ms_between(const std::string& path, const TextHeader& text, size_t axis, size_t array_axes) {
  const auto spacings = axis_numbers(path, text, "spacings", array_axes);
  const auto units = quoted_words(text.value("units"));
  if (spacings.empty() || units.size() != array_axes) return 0;
  if (!(spacings[axis] > 0) || !std::isfinite(spacings[axis])) return 0;
  const std::string& unit = units[axis];
  return spacings[axis] * (unit == "s" || unit == "sec"     ? 1e3
                           : unit == "ms" || unit == "msec" ? 1
                           : unit == "us"                   ? 1e-3
                                                            : 0);
}

void set_grid(const std::string& path, const TextHeader& text, const std::vector<double>& sizes,
              NrrdHeader& out) {
  const Axes axes = axes_of(path, text, sizes);
  set_channels(path, axes, sizes, out);
  Grid& grid = out.header.grid;
  grid.size = {1, 1, 1};
  for (size_t d = 0; d < axes.domain.size(); ++d) {
    const double n = sizes[axes.domain[d]];
    if (d < 3) grid.size[static_cast<int>(d)] = static_cast<int32_t>(n);
    if (d >= 3) out.frames = static_cast<int>(std::min(out.frames * n, 2147483647.0));
  }
  if (axes.time) {
    out.frames = static_cast<int>(std::min(out.frames * sizes[*axes.time], 2147483647.0));
    // Frames along two axes have no one distance in time.
    const bool alone = axes.domain.size() <= 3;
    if (alone) out.header.times = {ms_between(path, text, *axes.time, sizes.size()), 0, 1};
  }
  Space space = space_of(path, text);
  if (space.sign == Vec3d{1, 1, 1}) {
    vectors_of(path, text.value("measurement frame"), "measurement frame",
               std::max<size_t>(space.dimension, 3));
  }
  const auto units = quoted_words(text.value("space units"));
  if (text.values.contains("space units") &&
      (space.dimension == 0 || units.size() != space.dimension)) {
    bad_line(path, "space units");
  }
  for (size_t i = 0; i < std::min<size_t>(units.size(), 3); ++i) {
    space.mm[static_cast<int>(i)] = mm_of_unit(path, units[i]);
  }
  if (text.values.contains("space directions")) {
    place_by_directions(path, text, axes, space, sizes.size(), grid);
  } else if (space.dimension != 0) {
    bad(path, "the header names a space and no directions of the axes in it; repair the header");
  } else {
    place_by_spacings(path, text, axes, sizes.size(), grid);
  }
  if (text.values.contains("space origin")) {
    const auto origin =
        vectors_of(path, text.value("space origin"), "space origin", space.dimension);
    if (space.dimension == 0 || origin.size() != 1) bad_line(path, "space origin");
    for (int row = 0; row < 3 && origin[0]; ++row) {
      grid.origin_mm[row] = (*origin[0])[row] * space.sign[row] * space.mm[row] + 0.0;
    }
  }
  check_geometry(grid, path);
}

void set_encoding(const std::string& path, const TextHeader& text, NrrdHeader& out) {
  const std::string encoding = lower_case(text.value("encoding"));
  if (encoding == "raw") {
    out.encoding = NrrdEncoding::kRaw;
  } else if (encoding == "gz" || encoding == "gzip") {
    out.encoding = NrrdEncoding::kGzip;
  } else if (encoding == "txt" || encoding == "text" || encoding == "ascii") {
    out.encoding = NrrdEncoding::kText;
  } else if (encoding == "hex") {
    out.encoding = NrrdEncoding::kHex;
  } else {
    bad(path,
        "the encoding " + shown(encoding) + " is not supported or damaged; write raw or gzip");
  }
  const std::string endian = lower_case(text.value("endian"));
  if (!endian.empty() && endian != "little" && endian != "big") bad_line(path, "endian");
  const bool binary = out.encoding != NrrdEncoding::kText && bytes_of(out.header.component) > 1;
  if (binary && endian.empty())
    bad(path, "the header does not say in which order bytes are (endian)");
  out.swapped = binary && endian == "big";
  out.line_skip = integer_field(path, text, "line skip", 0);
  out.byte_skip = integer_field(path, text, "byte skip", -1);
  if (out.byte_skip == -1 && out.encoding != NrrdEncoding::kRaw) bad_line(path, "byte skip");
}

void set_data(const std::string& path, const TextHeader& text, NrrdHeader& out) {
  const std::string value = field_value(text, "data file");
  out.data = value.empty() ? std::vector{path} : nrrd_data_files(path, value, text.plain);
  out.data_offset = value.empty() ? text.bytes : 0;
}

}  // namespace

NrrdHeader read_nrrd_header(const std::string& path) {
  TextHeader text = read_text_header(path, ':', "");
  const std::string magic = text.plain.empty() ? "" : text.plain[0];
  if (magic.size() != 8 || magic.rfind("NRRD", 0) != 0) {
    bad(path, "not an NRRD file: it does not start with NRRD and four digits");
  }
  text.plain.erase(text.plain.begin());
  check_fields(path, text);
  NrrdHeader out;
  out.header.component = component_of(path, text.value("type"));
  set_grid(path, text, checked_sizes(path, text.value("dimension"), text.value("sizes")), out);
  set_encoding(path, text, out);
  set_data(path, text, out);
  if (guarded(Guard::kNrrdClaims)) out.header.most_bytes = most_bytes(out);
  return out;
}

}  // namespace larch::io
