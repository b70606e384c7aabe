// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/meta.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/text_header.h"
#include "larch/io/image/zstream.h"
#include "larch/io/sequence/inflater.h"

namespace larch::io {
namespace {
namespace fs = std::filesystem;

bool is_true(const std::string& value) {
  return !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

Component component_of(const std::string& path, const std::string& type) {
  constexpr std::pair<const char*, Component> kTypes[] = {
      {"MET_UCHAR", Component::kUint8},       {"MET_CHAR", Component::kInt8},
      {"MET_USHORT", Component::kUint16},     {"MET_SHORT", Component::kInt16},
      {"MET_UINT", Component::kUint32},       {"MET_INT", Component::kInt32},
      {"MET_ULONG_LONG", Component::kUint64}, {"MET_LONG_LONG", Component::kInt64},
      {"MET_FLOAT", Component::kFloat32},     {"MET_DOUBLE", Component::kFloat64},
      {"MET_ULONG", Component::kUint32},      {"MET_LONG", Component::kInt32}};
  for (const auto& [name, component] : kTypes)
    if (type == name) return component;
  bad(path, "the ElementType '" + type + "' is not supported or damaged");
}

// The numbers of the first of `keys` that is there; an error unless there are `count`, all finite.
std::vector<double> numbers_for(const std::string& path, const TextHeader& text, size_t count,
                                std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!text.values.contains(key)) continue;
    std::vector<double> all = numbers_of(text.value(key));
    const bool finite =
        std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v); });
    if (all.size() != count || !finite) {
      bad(path, std::string("the header line '") + key + "' is damaged");
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

void set_grid(const std::string& path, const TextHeader& text, MetaHeader& out) {
  const std::vector<double> sizes = checked_sizes(path, text.value("ndims"), text.value("dimsize"));
  const size_t n = sizes.size();
  const auto spacing = numbers_for(path, text, n, {"elementspacing", "elementsize"});
  const auto origin = numbers_for(path, text, n, {"offset", "position", "origin"});
  const auto matrix =
      numbers_for(path, text, n * n, {"transformmatrix", "orientation", "rotation"});
  Grid& grid = out.header.grid;
  grid.size = {1, 1, 1};
  for (size_t i = 0; i < n; ++i) {
    if (i >= 3) {
      out.frames = static_cast<int>(std::min(out.frames * sizes[i], 2147483647.0));
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
  check_geometry(grid, path);
}

void set_data(const std::string& path, const TextHeader& text, MetaHeader& out) {
  const std::string file = text.value("elementdatafile");
  if (file.empty()) bad(path, "not a MetaImage: the header has no line 'ElementDataFile'");
  out.compressed = is_true(text.value("compresseddata"));
  out.swapped =
      is_true(text.value("binarydatabyteordermsb")) || is_true(text.value("elementbyteordermsb"));
  const std::string binary = text.value("binarydata");
  if (!binary.empty() && !is_true(binary)) {
    bad(path, "the voxels are stored as text (BinaryData = False); write them as binary data");
  }
  out.data_path = path;
  out.data_offset = text.bytes;
  if (file == "LOCAL" || file == "local" || file == "Local") return;
  if (file.rfind("LIST", 0) == 0 || file.find('%') != std::string::npos) {
    bad(path, "the voxels are spread over several files, which is not supported; write one .mha");
  }
  out.data_path = (fs::path(path).parent_path() / file).string();
  if (!is_file(out.data_path)) {
    bad(path, "the voxels should stand in '" + out.data_path + "', which is missing");
  }
  std::error_code error;
  if (fs::equivalent(out.data_path, path, error)) {
    bad(path, "the header names itself as the file of the voxels; repair the line ElementDataFile");
  }
  const auto skip = numbers_for(path, text, 1, {"headersize"});
  out.data_offset = skip.empty() ? 0 : static_cast<int64_t>(std::clamp(skip[0], -1.0, 1e15));
}

void read_raw(const MetaHeader& meta, int64_t offset, std::vector<std::byte>& voxels) {
  std::ifstream in(meta.data_path, std::ios::binary);
  in.seekg(offset);
  in.read(reinterpret_cast<char*>(voxels.data()), static_cast<std::streamsize>(voxels.size()));
  if (in.gcount() != static_cast<std::streamsize>(voxels.size())) {
    bad(meta.data_path, "truncated: voxels are missing at the end; copy or export the file again");
  }
}

}  // namespace

MetaHeader read_meta_header(const std::string& path) {
  const TextHeader text = read_text_header(path, '=', "elementdatafile");
  MetaHeader out;
  set_data(path, text, out);
  out.header.component = component_of(path, text.value("elementtype"));
  const auto channels = numbers_for(path, text, 1, {"elementnumberofchannels"});
  if (!channels.empty()) {
    if (!(channels[0] >= 1 && channels[0] <= 4096)) {
      bad(path, "the header line 'ElementNumberOfChannels' is damaged");
    }
    out.header.channels = static_cast<int>(channels[0]);
  }
  set_grid(path, text, out);
  const int64_t size = file_bytes(out.data_path);
  out.header.most_bytes =
      out.compressed ? size * kMostDeflate : size - std::max<int64_t>(out.data_offset, 0);
  return out;
}

RawImage read_meta(const std::string& path, const Selection& selection) {
  const MetaHeader meta = read_meta_header(path);
  const FrameRange range = chosen_frames(path, meta.frames, selection);
  require_components(path, meta.header);
  RawImage raw{meta.header, {}};
  const int64_t size = file_bytes(meta.data_path);
  int64_t offset = meta.data_offset;
  const int64_t frame_bytes = checked_bytes(raw.header, path, meta.frames);
  const int64_t all_bytes = frame_bytes * meta.frames, skipped = frame_bytes * range.first;
  if (offset < 0) offset = meta.compressed ? 0 : size - all_bytes;
  if (offset > size) bad(path, "the header places the voxels behind the end of the file");
  raw.voxels = allocate_voxels(frame_bytes * range.count, path);
  const auto bytes = static_cast<int64_t>(raw.voxels.size());
  if (meta.compressed) {
    Inflater in(meta.data_path, offset);
    in.read(nullptr, skipped);
    in.read(raw.voxels.data(), bytes);
    in.finish(all_bytes - skipped - bytes);
  } else {
    read_raw(meta, offset + skipped, raw.voxels);
  }
  if (meta.swapped) swap_all(raw.voxels, bytes_of(raw.header.component));
  return raw;
}

}  // namespace larch::io
