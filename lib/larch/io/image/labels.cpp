// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <limits>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/nifti.h"
#include "larch/io/image/image.h"
#include "larch/io/image/zstream.h"

namespace larch {
namespace {

template <class T>
void write_as(const std::string& path, const LabelVolume& labels, int threads) {
  const auto small = mapped<T>(labels, [](int32_t label) { return label; });
  io::write_pixels(path, {labels.grid(), io::component_of<T>(), small.data(), true, threads});
}

template <class T, class From>
void write_series_as(const std::string& path, std::span<const Volume<From>> frames,
                     const FrameTimes& times, int threads) {
  const Grid& grid = frames[0].grid();
  Volume<T> small(grid);
  const std::string header = io::nifti_header_bytes(
      path, {grid, io::component_of<T>(), small.data(), std::is_same_v<From, int32_t>},
      static_cast<int64_t>(frames.size()), times);
  io::ZWriter out(path, file_extension(path) == ".nii.gz", threads);
  out.write(header.data(), static_cast<int64_t>(header.size()));
  for (const Volume<From>& frame : frames) {
    std::transform(frame.begin(), frame.end(), small.begin(),
                   [](From value) { return static_cast<T>(value); });
    out.write(small.data(), small.voxels() * static_cast<int64_t>(sizeof(T)));
  }
  out.close();
}

template <class T>
bool holds(int32_t lowest, int32_t highest) {
  return lowest >= std::numeric_limits<T>::min() && highest <= std::numeric_limits<T>::max();
}

}  // namespace

void require_series_ending(const std::string& path) {
  const std::string ending = file_extension(path);
  if (ending == ".nii" || ending == ".nii.gz") return;
  throw UsageError("cannot write '" + path + "': the volumes of a series go to .nii or .nii.gz");
}

template <class T>
void write_volume_series(const std::string& path, std::span<const Volume<T>> frames, int threads) {
  require_series_ending(path);
  write_atomically(path, [&](const std::string& temporary) {
    write_series_as<T>(temporary, frames, {}, threads);
  });
}
template void write_volume_series(const std::string&, std::span<const Volume<uint8_t>>, int);
template void write_volume_series(const std::string&, std::span<const Volume<uint16_t>>, int);
template void write_volume_series(const std::string&, std::span<const Volume<float>>, int);

void write_labelmap(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                    int threads) {
  int32_t lowest = 0, highest = 0;
  for (const int32_t label : labels) {
    lowest = std::min(lowest, label);
    highest = std::max(highest, label);
  }
  // Labels of the table that happen to be absent count too: all cases of a study get one type.
  for (const LabelEntry& entry : table) {
    lowest = std::min(lowest, entry.value);
    highest = std::max(highest, entry.value);
  }
  if (holds<uint8_t>(lowest, highest)) return write_as<uint8_t>(path, labels, threads);
  if (holds<int16_t>(lowest, highest)) return write_as<int16_t>(path, labels, threads);
  if (holds<uint16_t>(lowest, highest)) return write_as<uint16_t>(path, labels, threads);
  write_as<int32_t>(path, labels, threads);
}

void write_labelmap_series(const std::string& path, std::span<const LabelVolume> frames,
                           const FrameTimes& times, int threads) {
  require_series_ending(path);
  int32_t lowest = 0, highest = 0;
  for (const LabelVolume& frame : frames) {
    for (const int32_t label : frame) {
      lowest = std::min(lowest, label), highest = std::max(highest, label);
    }
  }
  write_atomically(path, [&](const std::string& temporary) {
    if (holds<uint8_t>(lowest, highest))
      return write_series_as<uint8_t>(temporary, frames, times, threads);
    if (holds<uint16_t>(lowest, highest))
      return write_series_as<uint16_t>(temporary, frames, times, threads);
    write_series_as<int32_t>(temporary, frames, times, threads);
  });
}

void write_label_table(const std::string& tsv_path, const LabelTable& table) {
  std::string text = "index\tname\tcolor\n";
  for (const LabelEntry& entry : table) {
    char colour[8];
    std::snprintf(colour, sizeof colour, "#%02x%02x%02x", entry.rgb[0], entry.rgb[1], entry.rgb[2]);
    std::string name = entry.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    text += std::to_string(entry.value) + "\t" + name + "\t" + colour + "\n";
  }
  write_file(tsv_path, text);
}

}  // namespace larch
