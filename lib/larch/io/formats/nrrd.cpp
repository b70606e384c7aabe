// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>

#include "larch/core/guard.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/segments.h"
#include "larch/io/formats/text_header.h"

namespace larch::io {
namespace {
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

void check_fields(const TextHeader& text) {
  constexpr std::string_view kKnown =
      "|number|type|block size|blocksize|dimension|space|sizes|space dimension|spacings|"
      "thicknesses|axis mins|axismins|axis maxs|axismaxs|space directions|centers|centerings|"
      "kinds|labels|units|min|max|old min|oldmin|old max|oldmax|endian|encoding|line skip|"
      "lineskip|byte skip|byteskip|content|sample units|sampleunits|space units|space origin|"
      "measurement frame|data file|datafile|";
  for (const auto& [field, value] : text.values) {
    if (!holds(kKnown, field)) {
      bad(text.path, "the header has a field " + shown(field) + ", which NRRD does not know");
    }
  }
}

int64_t integer_field(const TextHeader& text, const char* field, int64_t least) {
  const std::string word = field_value(text, field);
  if (word.empty()) return 0;
  const auto value = number_of_word(word);
  if (!value || !(*value >= static_cast<double>(least) && *value <= 1e15) ||
      *value != std::floor(*value)) {
    text.bad_line(field);
  }
  return static_cast<int64_t>(*value);
}

/// Returns a number for each axis, NaN where the file says so; empty if the field is absent.
std::vector<double> axis_numbers(const TextHeader& text, const char* field, size_t axes) {
  std::vector<double> all;
  for (const std::string& word : words_of(field_value(text, field))) {
    const auto value = number_of_word(word);
    if (!value) text.bad_line(field);
    all.push_back(*value);
  }
  if (!all.empty() && all.size() != axes) text.bad_line(field);
  return all;
}

using Vector = std::optional<Vec3d>;  ///< nothing for "none"

/// Vectors "(1,2,3)" of `length` numbers, of which the first three count.
std::vector<Vector> vectors_of(const TextHeader& text, const char* field, size_t length) {
  std::vector<Vector> all;
  const std::string line = text.value(field);
  for (const char* at = line.c_str(); *at != '\0';) {
    if (*at == ' ' || *at == '\t') {
      ++at;
    } else if (std::string_view(at).starts_with("none")) {
      all.emplace_back();
      at += 4;
    } else {
      if (*at++ != '(') text.bad_line(field);
      Vec3d vector{0, 0, 0};
      for (size_t i = 0; i < length; ++i) {
        char* end = nullptr;
        const double value = parsed_number(at, &end);
        if (end == at) text.bad_line(field);
        while (*end == ' ') ++end;
        if (*end != (i + 1 < length ? ',' : ')')) text.bad_line(field);
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

Component nrrd_component(const TextHeader& text) {
  const std::string type = text.value("type");
  constexpr std::string_view kNames[] = {
      "|uchar|unsigned char|uint8|uint8_t|",
      "|signed char|int8|int8_t|",
      "|ushort|unsigned short|unsigned short int|uint16|uint16_t|",
      "|short|short int|signed short|signed short int|int16|int16_t|",
      "|uint|unsigned int|uint32|uint32_t|",
      "|int|signed int|int32|int32_t|",
      "|ulonglong|unsigned long long|unsigned long long int|uint64|uint64_t|",
      "|longlong|long long|long long int|signed long long|signed long long int|int64|int64_t|",
      "|float|",
      "|double|"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (holds(kNames[i], lower_case(type))) return static_cast<Component>(i);
  }
  bad(text.path, "the type " + shown(type) + " is not supported or damaged");
}

/// Holds what the header says of its world: how many numbers a position has, which of them change
/// their sign on the way to LPS, and how many millimetres a unit is.
struct Space {
  size_t dimension = 0;  ///< 0: no space, spacings at most
  Vec3d sign{1, 1, 1};
  Vec3d mm{1, 1, 1};
};

Space space_of(const TextHeader& text) {
  struct Row {
    std::string_view names;
    Space space;
  };
  constexpr Row kRows[] = {
      {"|right-anterior-superior|ras|", {3, {-1, -1, 1}}},
      {"|left-anterior-superior|las|", {3, {1, -1, 1}}},
      {"|left-posterior-superior|lps|scanner-xyz|3d-right-handed|3d-left-handed|", {3}},
      {"|right-anterior-superior-time|rast|", {4, {-1, -1, 1}}},
      {"|left-anterior-superior-time|last|", {4, {1, -1, 1}}},
      {"|left-posterior-superior-time|lpst|scanner-xyz-time|3d-right-handed-time|"
       "3d-left-handed-time|",
       {4}}};
  Space space;
  const std::string name = lower_case(text.value("space"));
  if (!name.empty()) {
    const auto* row =
        std::ranges::find_if(kRows, [&](const Row& r) { return holds(r.names, name); });
    if (row == std::end(kRows)) text.bad_line("space");
    space = row->space;
  }
  const int64_t dimension = integer_field(text, "space dimension", 1);
  if (dimension > 8 || (dimension != 0 && !name.empty())) text.bad_line("space dimension");
  if (dimension != 0) space.dimension = static_cast<size_t>(dimension);
  return space;
}

double mm_of_unit(const TextHeader& text, const std::string& unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"||mm|millimeter|millimeters|millimetre|???|none|voxel|voxels|pixel|pixels|", 1},
      {"|cm|", 10},
      {"|m|", 1000},
      {"|um|µm|micron|microns|", 1e-3},
      {"|nm|", 1e-6}};
  for (const auto& [names, mm] : kUnits)
    if (holds(names, unit)) return mm;
  bad(text.path, "lengths in " + shown(unit) + " are not supported; write them in mm");
}

/// The axes of the array: those of the image, at most one of time, and at most one of the values at
/// a point.
struct Axes {
  std::vector<size_t> domain;  ///< of space; a fourth one counts frames, whatever it is
  std::optional<size_t> time;  ///< the slowest of all but the range
  std::optional<size_t> range;
  std::string range_kind;
};

bool is_domain(const TextHeader& text, const std::string& kind) {
  constexpr std::string_view kRange =
      "|list|point|vector|covariant-vector|normal|stub|scalar|complex|2-vector|3-color|"
      "rgb-color|hsv-color|xyz-color|4-color|rgba-color|3-vector|3-gradient|3-normal|4-vector|"
      "quaternion|2d-symmetric-matrix|2d-masked-symmetric-matrix|2d-matrix|2d-masked-matrix|"
      "3d-symmetric-matrix|3d-masked-symmetric-matrix|3d-matrix|3d-masked-matrix|";
  if (holds("|domain|space|time|???|none||", kind)) return true;
  if (!holds(kRange, kind)) text.bad_line("kinds");
  return false;
}

Axes axes_of(const TextHeader& text, const std::vector<double>& sizes) {
  std::vector<std::string> kinds = words_of(lower_case(text.value("kinds")));
  if (!kinds.empty() && kinds.size() != sizes.size()) text.bad_line("kinds");
  kinds.resize(sizes.size());
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (kinds[i] == "time") {
      if (axes.time) bad(text.path, "two axes of time (kinds); write one of them alone");
      axes.time = i;
    } else if (is_domain(text, kinds[i])) {
      if (axes.time)
        bad(text.path, "the axis of time (kinds) comes before one of space; write it last");
      axes.domain.push_back(i);
    } else if (sizes[i] > 1) {
      if (axes.range) bad(text.path, "two axes of components (kinds); write one of them alone");
      axes.range = i;
      axes.range_kind = kinds[i];
    }
  }
  if (axes.domain.empty()) bad(text.path, "no axis of the image is one of space (kinds)");
  return axes;
}

void set_channels(const TextHeader& text, const Axes& axes, const std::vector<double>& sizes,
                  StoredHeader& out) {
  if (!axes.range) return;
  const double channels = sizes[*axes.range];
  if (channels > 65535) text.bad_line("sizes");
  out.header.channels = static_cast<int>(channels);
  const std::string& kind = axes.range_kind;
  out.header.colour = ((kind == "rgb-color" || kind == "3-color") && channels == 3) ||
                      ((kind == "rgba-color" || kind == "4-color") && channels == 4);
  for (size_t i = 0; i < *axes.range; ++i)
    out.place.values_between *= static_cast<int64_t>(sizes[i]);
}

/// Positions by the directions of a space.
void place_by_directions(const TextHeader& text, const Axes& axes, const Space& space,
                         size_t array_axes, Grid& grid) {
  const auto directions = vectors_of(text, "space directions", space.dimension);
  if (space.dimension == 0 || directions.size() != array_axes) text.bad_line("space directions");
  const int n = static_cast<int>(std::min<size_t>(axes.domain.size(), 3));
  for (int axis = 0; axis < n; ++axis) {
    const Vector& along = directions[axes.domain[static_cast<size_t>(axis)]];
    if (!along) bad(text.path, "an axis of the image has no direction in space; repair the header");
    Vec3d step;
    for (int row = 0; row < 3; ++row) step[row] = (*along)[row] * space.sign[row] * space.mm[row];
    grid.spacing_mm[axis] = norm(step);
    for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = step[row] / norm(step) + 0.0;
  }
  if (n == 2 && space.dimension > 2) {  // a slice in space: its normal
    const Vec3d normal = cross(grid.direction.column(0), grid.direction.column(1));
    for (int row = 0; row < 3; ++row) grid.direction.m[row][2] = normal[row] / norm(normal) + 0.0;
  }
}

/// Positions along the axes of the array, without a space.
void place_by_spacings(const TextHeader& text, const Axes& axes, size_t array_axes, Grid& grid) {
  const auto spacings = axis_numbers(text, "spacings", array_axes);
  const auto mins = axis_numbers(text, "axis mins", array_axes);
  const auto maxs = axis_numbers(text, "axis maxs", array_axes);
  auto centers = words_of(lower_case(text.value("centers") + text.value("centerings")));
  if (!centers.empty() && centers.size() != array_axes) text.bad_line("centers");
  centers.resize(array_axes);
  auto units = quoted_words(text.value("units"));
  if (text.values.contains("units") && units.size() != array_axes) text.bad_line("units");
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
    const double mm = mm_of_unit(text, units[i]);
    grid.spacing_mm[axis] *= mm;
    grid.origin_mm[axis] *= mm;
  }
}

/// Returns the spacing of an axis of time; 0 if there is none, or in no unit of time.
double ms_between(const TextHeader& text, size_t axis, size_t array_axes) {
  const auto spacings = axis_numbers(text, "spacings", array_axes);
  const auto units = quoted_words(text.value("units"));
  if (spacings.empty() || units.size() != array_axes) return 0;
  if (!(spacings[axis] > 0) || !std::isfinite(spacings[axis])) return 0;
  const std::string& unit = units[axis];
  return spacings[axis] * (unit == "s" || unit == "sec"     ? 1e3
                           : unit == "ms" || unit == "msec" ? 1
                           : unit == "us"                   ? 1e-3
                                                            : 0);
}

void set_grid(const TextHeader& text, const std::vector<double>& sizes, StoredHeader& out) {
  const Axes axes = axes_of(text, sizes);
  set_channels(text, axes, sizes, out);
  Grid& grid = out.header.grid;
  grid.size = {1, 1, 1};
  double frames = axes.time ? sizes[*axes.time] : 1;
  for (size_t d = 0; d < axes.domain.size(); ++d) {
    const double n = sizes[axes.domain[d]];
    if (d < 3) grid.size[static_cast<int>(d)] = static_cast<int32_t>(n);
    if (d >= 3) frames *= n;
  }
  out.header.frames = static_cast<int>(std::min(frames, 2147483647.0));
  const auto spacings = axis_numbers(text, "spacings", sizes.size());
  if (!spacings.empty() && (axes.time || axes.domain.size() > 3)) {
    const double fourth = spacings[axes.time ? *axes.time : axes.domain[3]];
    if (std::isfinite(fourth)) out.header.fourth_spacing = fourth;
  }
  if (axes.time && axes.domain.size() <= 3) {
    // Frames along two axes have no one distance in time.
    out.header.times = {ms_between(text, *axes.time, sizes.size()), 0, 1};
  }
  Space space = space_of(text);
  if (space.sign == Vec3d{1, 1, 1}) {
    vectors_of(text, "measurement frame", std::max<size_t>(space.dimension, 3));
  }
  const auto units = quoted_words(text.value("space units"));
  if (text.values.contains("space units") &&
      (space.dimension == 0 || units.size() != space.dimension)) {
    text.bad_line("space units");
  }
  for (size_t i = 0; i < std::min<size_t>(units.size(), 3); ++i) {
    space.mm[static_cast<int>(i)] = mm_of_unit(text, units[i]);
  }
  if (text.values.contains("space directions")) {
    place_by_directions(text, axes, space, sizes.size(), grid);
  } else if (space.dimension != 0) {
    bad(text.path,
        "the header names a space and no directions of the axes in it; repair the header");
  } else {
    place_by_spacings(text, axes, sizes.size(), grid);
  }
  if (text.values.contains("space origin")) {
    const auto origin = vectors_of(text, "space origin", space.dimension);
    if (space.dimension == 0 || origin.size() != 1) text.bad_line("space origin");
    for (int row = 0; row < 3 && origin[0]; ++row) {
      grid.origin_mm[row] = (*origin[0])[row] * space.sign[row] * space.mm[row] + 0.0;
    }
  }
  check_geometry(grid, text.path);
}

void set_encoding(const TextHeader& text, StoredHeader& out) {
  const std::string encoding = lower_case(text.value("encoding"));
  if (encoding == "gz" || encoding == "gzip") {
    out.place.packing = Packing::kGzip;
  } else if (encoding != "raw") {
    bad(text.path, "the encoding " + shown(encoding) +
                       " is not supported or damaged; convert it with 'unu save -e gzip' of Teem");
  }
  const std::string endian = lower_case(text.value("endian"));
  if (!endian.empty() && endian != "little" && endian != "big") text.bad_line("endian");
  const bool has_order = bytes_of(out.header.component) > 1;
  if (has_order && endian.empty())
    bad(text.path, "the header does not say in which order bytes are (endian)");
  out.place.swapped = has_order && endian == "big";
}

void set_file(const TextHeader& text, VoxelPlace& place) {
  const std::string name = field_value(text, "data file");
  place.path = text.path;
  place.byte = text.bytes;
  if (name.empty()) return;
  if (name.starts_with("LIST") || name.find('%') != std::string::npos) {
    bad(text.path,
        "its voxels stand in several files, which is not supported; convert it with 'unu save -e "
        "gzip' of Teem");
  }
  // Messages show the name, and no terminal should obey it.
  const auto is_control = [](unsigned char c) { return std::iscntrl(c) != 0; };
  if (std::any_of(name.begin(), name.end(), is_control)) text.bad_line("data file");
  place.path = voxel_file(text.path, name, "'data file'");
  place.byte = 0;
}

/// Passes over the lines and bytes before the voxels; those that end the file begin so far from it.
void set_start(const TextHeader& text, StoredHeader& out) {
  VoxelPlace& place = out.place;
  const bool packed = place.packing == Packing::kGzip;
  const int64_t lines = integer_field(text, "line skip", 0);
  const int64_t bytes = integer_field(text, "byte skip", -1);
  if (bytes == -1 && packed) text.bad_line("byte skip");
  const int64_t size = file_bytes(place.path), header_end = place.byte;
  std::ifstream in;
  if (lines > 0 && bytes >= 0) {
    in.open(place.path, std::ios::binary);
    in.seekg(place.byte);
  }
  for (int64_t left = bytes < 0 ? 0 : lines; left > 0; ++place.byte) {
    const int c = in.get();
    if (c == std::char_traits<char>::eof()) bad_voxels(place);
    if (c == '\n') --left;
  }
  (packed ? place.skipped : place.byte) += std::max<int64_t>(bytes, 0);
  if (place.byte > size) bad_voxels(place);
  if (guarded(Guard::kNrrdClaims)) {
    out.header.most_bytes = (size - place.byte) * (packed ? kMaximumDeflate : 1);
  }
  if (bytes < 0) place.byte = size - checked_bytes(out.header, text.path) * out.header.frames;
  if (place.byte < header_end) bad_voxels(place);
}

std::string nrrd_text(const Grid& grid, const Pixels& pixels, const char* encoding) {
  const bool vectors = pixels.channels > 1, layered = vectors && !pixels.segments.empty();
  std::string text =
      "NRRD0004\n" + (pixels.description.empty() ? "" : "content: " + pixels.description + "\n") +
      "type: " +
      (pixels.component == Component::kFloat32   ? "float"
       : pixels.component == Component::kFloat64 ? "double"
                                                 : name_of(pixels.component)) +
      "\ndimension: " + (vectors ? "4" : "3") + "\nspace: left-posterior-superior\nsizes: " +
      (vectors ? std::to_string(pixels.channels) + " " : "") + std::to_string(grid.size.x) + " " +
      std::to_string(grid.size.y) + " " + std::to_string(grid.size.z) +
      "\nspace directions:" + (vectors ? " none" : "");
  for (int axis = 0; axis < 3; ++axis) {
    text += vector_text(grid.direction.column(axis) * grid.spacing_mm[axis], " (", ",", ")");
  }
  text += std::string("\nkinds:") +
          (pixels.colour ? " RGB-color"
           : layered     ? " list"
           : vectors     ? " vector"
                         : "") +
          " domain domain domain\nendian: little\nencoding: " + encoding +
          "\nspace origin: " + vector_text(grid.origin_mm, "(", ",", ")") + "\n" +
          segments_text(pixels) + "\n";
  return text;
}

}  // namespace

StoredHeader read_nrrd_header(const std::string& path) {
  const TextHeader text = read_text_header(path, ':', "");
  const std::string magic = text.plain.empty() ? "" : text.plain[0];
  if (magic.size() != 8 || magic.rfind("NRRD", 0) != 0) {
    bad(path, "not an NRRD file: it does not start with NRRD and four digits");
  }
  check_fields(text);
  StoredHeader out;
  out.header.component = nrrd_component(text);
  set_grid(text, checked_sizes(text, "dimension", "sizes"), out);
  set_segments(text, out);
  set_encoding(text, out);
  set_file(text, out.place);
  set_start(text, out);
  out.path = path;
  return out;
}

std::string nrrd_header(const std::string& path, const Pixels& pixels) {
  return nrrd_text(grid_of_frames(path, pixels), pixels, "raw");
}

void write_nrrd(const std::string& path, const Pixels& pixels) {
  write_file(path, nrrd_text(grid_of_frames(path, pixels), pixels, "gzip") +
                       packed_voxels(path, pixels, Packing::kGzip));
}

}  // namespace larch::io
