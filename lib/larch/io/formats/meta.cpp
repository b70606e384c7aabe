// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/text_header.h"

namespace larch::io {
namespace {

bool is_true(const std::string& value) {
  return !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

// In the order of Component.
constexpr const char* kMetaTypes[] = {"MET_UCHAR", "MET_CHAR",  "MET_USHORT",     "MET_SHORT",
                                      "MET_UINT",  "MET_INT",   "MET_ULONG_LONG", "MET_LONG_LONG",
                                      "MET_FLOAT", "MET_DOUBLE"};

Component meta_component(const TextHeader& text) {
  const std::string type = text.value("elementtype");
  if (type == "MET_ULONG") return Component::kUint32;
  if (type == "MET_LONG") return Component::kInt32;
  const auto found = std::ranges::find(kMetaTypes, type);
  if (found != std::end(kMetaTypes)) return static_cast<Component>(found - kMetaTypes);
  bad(text.path, "the ElementType '" + type + "' is not supported or damaged");
}

// The numbers of the first of `keys` that is there; an error unless there are `count`, all finite.
std::vector<double> numbers_for(const TextHeader& text, size_t count,
                                std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!text.values.contains(key)) continue;
    std::vector<double> all = numbers_of(text.value(key));
    if (all.size() != count ||
        !std::ranges::all_of(all, [](double v) { return std::isfinite(v); })) {
      text.bad_line(key);
    }
    return all;
  }
  return {};
}

// Directions with few digits are meant to be unit vectors; others are for check_geometry to refuse.
void take_rounding_off(Grid& grid) {
  for (int axis = 0; axis < 3; ++axis) {
    const double length = norm(grid.direction.column(axis));
    if (!(std::abs(length - 1) > 1e-6 && std::abs(length - 1) <= kRoundedAxis)) continue;
    for (auto& row : grid.direction.m) row[axis] /= length;
  }
}

void set_grid(const TextHeader& text, StoredHeader& out) {
  const std::vector<double> sizes = checked_sizes(text, "ndims", "dimsize");
  const size_t n = sizes.size();
  const auto spacing = numbers_for(text, n, {"elementspacing", "elementsize"});
  const auto origin = numbers_for(text, n, {"offset", "position", "origin"});
  const auto matrix = numbers_for(text, n * n, {"transformmatrix", "orientation", "rotation"});
  Grid& grid = out.header.grid;
  grid.size = {1, 1, 1};
  for (size_t i = 0; i < n; ++i) {
    if (i >= 3) {
      out.header.frames = static_cast<int>(std::min(out.header.frames * sizes[i], 2147483647.0));
      if (i == 3 && !spacing.empty()) out.header.fourth_spacing = spacing[i];
      continue;
    }
    const int axis = static_cast<int>(i);
    grid.size[axis] = static_cast<int32_t>(sizes[i]);
    if (!spacing.empty()) grid.spacing_mm[axis] = spacing[i];
    if (!origin.empty()) grid.origin_mm[axis] = origin[i];
    for (size_t row = 0; row < std::min<size_t>(n, 3) && !matrix.empty(); ++row) {
      grid.direction.m[row][i] = matrix[i * n + row];
    }
  }
  if (!matrix.empty()) take_rounding_off(grid);
  check_geometry(grid, text.path);
}

/// Sets where the voxels stand; a byte of -1: they end the file.
void set_data(const TextHeader& text, VoxelPlace& place) {
  const std::string file = text.value("elementdatafile");
  if (file.empty()) bad(text.path, "not a MetaImage: the header has no line 'ElementDataFile'");
  if (is_true(text.value("compresseddata"))) place.packing = Packing::kZlib;
  place.swapped =
      is_true(text.value("binarydatabyteordermsb")) || is_true(text.value("elementbyteordermsb"));
  const std::string binary = text.value("binarydata");
  if (!binary.empty() && !is_true(binary)) {
    bad(text.path, "the voxels are stored as text (BinaryData = False); write them as binary data");
  }
  place.path = text.path;
  place.byte = text.bytes;
  if (file == "LOCAL" || file == "local" || file == "Local") return;
  if (file.rfind("LIST", 0) == 0 || file.find('%') != std::string::npos) {
    bad(text.path,
        "the voxels are spread over several files, which is not supported; write one .mha");
  }
  place.path = voxel_file(text.path, file, "ElementDataFile");
  const auto skip = numbers_for(text, 1, {"headersize"});
  place.byte = skip.empty() ? 0 : static_cast<int64_t>(std::clamp(skip[0], -1.0, 1e15));
}

std::string meta_text(const Grid& grid, const Pixels& pixels, size_t deflated_bytes) {
  std::string text =
      "ObjectType = Image\nNDims = 3\n" +
      (pixels.description.empty() ? "" : "Comment = " + pixels.description + "\n") +
      "BinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = " +
      (deflated_bytes == 0 ? "False"
                           : "True\nCompressedDataSize = " + std::to_string(deflated_bytes)) +
      "\nTransformMatrix =";
  for (int axis = 0; axis < 3; ++axis) {
    text += vector_text(grid.direction.column(axis), " ", " ", "");
  }
  text +=
      "\nOffset = " + vector_text(grid.origin_mm, "", " ", "") +
      "\nCenterOfRotation = 0 0 0\nElementSpacing = " + vector_text(grid.spacing_mm, "", " ", "") +
      "\nDimSize = " + std::to_string(grid.size.x) + " " + std::to_string(grid.size.y) + " " +
      std::to_string(grid.size.z) +
      (pixels.channels > 1 ? "\nElementNumberOfChannels = " + std::to_string(pixels.channels)
                           : "") +
      "\nElementType = " + kMetaTypes[static_cast<size_t>(pixels.component)] +
      "\nElementDataFile = LOCAL\n";
  return text;
}

}  // namespace

StoredHeader read_meta_header(const std::string& path) {
  const TextHeader text = read_text_header(path, '=', "elementdatafile");
  StoredHeader out;
  out.path = path;
  VoxelPlace& place = out.place;
  set_data(text, place);
  out.header.component = meta_component(text);
  const auto channels = numbers_for(text, 1, {"elementnumberofchannels"});
  if (!channels.empty()) {
    if (!(channels[0] >= 1 && channels[0] <= 4096)) {
      text.bad_line("ElementNumberOfChannels");
    }
    out.header.channels = static_cast<int>(channels[0]);
  }
  set_grid(text, out);
  const int64_t size = file_bytes(place.path), least = std::max<int64_t>(place.byte, 0);
  const bool packed = place.packing != Packing::kNone;
  out.header.most_bytes = packed ? size * kMaximumDeflate : size - least;
  if (least > size) bad(path, "the header places the voxels behind the end of the file");
  const int64_t bytes = checked_bytes(out.header, path) * out.header.frames;
  if (place.byte < 0) place.byte = packed ? 0 : size - bytes;
  return out;
}

std::string meta_header(const std::string& path, const Pixels& pixels) {
  return meta_text(grid_of_frames(path, pixels), pixels, 0);
}

void write_meta(const std::string& path, const Pixels& pixels) {
  const std::string voxels = packed_voxels(path, pixels, Packing::kZlib);
  write_file(path, meta_text(grid_of_frames(path, pixels), pixels, voxels.size()) + voxels);
}

}  // namespace larch::io
