// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/frame_sequence.h"

#include <cmath>

#include "larch/core/error.h"
#include "larch/io/dicom/dicom.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/image/raw_image.h"

namespace larch {
namespace {

std::vector<double> regular_times(int64_t count, double first_ms, double step_ms) {
  std::vector<double> times;
  times.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) times.push_back(first_ms + static_cast<double>(i) * step_ms);
  return times;
}

/// The frames of an image that was read whole; its pictures are stacked along z.
Frames of_stack(const Volume<float>& stack, const Grid& grid) {
  Frames out;
  out.grid = grid;
  out.grid.size.z = 1;
  out.pixels.assign(stack.begin(), stack.end());
  return out;
}

Frames declared(const std::string& path, const ReadOptions& options) {
  const Volume<float> volume = read_volume<float>(path, options);
  Grid grid = volume.grid();
  const double step_ms = grid.spacing_mm.z;
  grid.spacing_mm.z = 1;
  Frames out = of_stack(volume, grid);
  out.times_ms = regular_times(volume.size().z, 0, step_ms);
  return out;
}

}  // namespace

Frames read_frames(const std::string& path, const ReadOptions& options, ThirdAxis third_axis) {
  if (options.frame) throw UsageError("all frames are read, so that none can be chosen");
  const bool dicom = io::goes_to_dicom(path);
  if (third_axis == ThirdAxis::kTime && !dicom) return declared(path, options);
  std::vector<double> times_ms;
  io::Selection selection;
  selection.all_frames = true;
  io::RawImage raw = dicom ? io::read_dicom_frames(path, options, times_ms)
                           : io::read_selected(path, options, selection);
  const Grid grid = raw.header.grid;
  if (grid.size.z != 1) {
    throw InputError("'" + path + "': its frames are volumes of " + std::to_string(grid.size.z) +
                     " slices, and pictures are needed here; write the slices of one place to a "
                     "file of their own");
  }
  const int64_t frame_bytes =
      grid.voxels() * raw.header.channels * io::bytes_of(raw.header.component);
  const int64_t count = static_cast<int64_t>(raw.voxels.size()) / frame_bytes;
  raw.header.grid.size.z = static_cast<int32_t>(count);
  Frames out = of_stack(io::convert<float>(raw, path, options), grid);
  out.times_ms = std::move(times_ms);
  if (!dicom && raw.header.frame_ms > 0) {
    out.times_ms = regular_times(count, raw.header.first_frame_ms, raw.header.frame_ms);
  }
  for (const double time : out.times_ms) {
    if (std::isfinite(time)) continue;
    throw InputError("'" + path + "': the times of its frames are not finite; repair the header");
  }
  return out;
}

}  // namespace larch
