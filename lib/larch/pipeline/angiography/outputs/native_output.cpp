// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/native_output.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "larch/core/error.h"
#include "larch/dsa/dsa_config.h"
#include "larch/io/sequence/sequence_writer.h"

namespace larch::pipeline {
namespace {

constexpr int64_t kBatchBytes = int64_t{1} << 24;

/// One item for each frame, because each has a shift of its own.
std::vector<MaskItem> items_of(const MaskPlan& plan, const std::vector<FrameRecord>& records) {
  std::map<int, const MaskGroup*> group_of;
  for (const MaskGroup& group : plan.groups) {
    for (const int frame : group.frames) group_of[frame] = &group;
  }
  std::vector<MaskItem> items;
  for (const FrameRecord& record : records) {
    const MaskGroup& group = *group_of.at(record.frame);
    MaskItem item;
    item.operation = MaskOperation::kAverage;
    item.ranges = {{record.frame, record.frame}};
    item.mask_frames = group.mask_frames;
    item.contrast_averaging = group.averaging;
    // Vectors pull: the mask is moved the other way.
    item.shift_px = record.shift.cast<double>() * -std::ldexp(1, -dsa::kVectorBits);
    items.push_back(item);
  }
  return items;
}

XaHeader header_of(const OpenAngiogram& open, const std::vector<FrameRecord>& records,
                   const std::string& identity) {
  const Angiogram& about = open.reader.about();
  XaHeader header = derived_xa_header(
      about, identity + " native",
      "Pixels of the source, with a mask operation for each frame: its best shift as a whole by "
      "histograms of differences",
      about.intensity == PixelIntensity::kLog);
  header.series_description =
      "With shifts" + (about.series_description.empty() ? "" : ": " + about.series_description);
  header.bits = about.bits;
  header.intensity = about.intensity;
  header.intensity_sign = about.intensity_sign;
  header.is_monochrome1 = about.is_monochrome1;
  header.rescaling = rescaling_of(about);
  header.masks = items_of(open.plan, records);
  return header;
}

}  // namespace

void check_native(const Angiogram& about, const std::string& path) {
  if (path.empty()) return;
  require_sequence_path(path, about.grid, about.frames);
  if (rescaling_of(about)) return;
  throw InputError("'" + about.path +
                   "': its Modality LUT is no straight line, which --native cannot keep; leave "
                   "--native out");
}

void write_native(const std::string& path, const std::vector<FrameRecord>& records,
                  const std::string& identity, OpenAngiogram& open, const Context& context) {
  const Angiogram& about = open.reader.about();
  SequenceHeader header{about.grid, about.frames, about.times_ms,
                        header_of(open, records, identity)};
  SequenceWriter writer(path, header, context.threads);
  const int64_t pixels = open.reader.frame_pixels();
  const int64_t most = std::max<int64_t>(1, kBatchBytes / (2 * pixels));
  std::vector<uint16_t> batch;
  for (int64_t first = 0; first < about.frames; first += most) {
    if (context.stop_requested()) {
      throw Stopped("stopped while frames were copied; no output was written",
                    static_cast<ExitCode>(context.stop->load()));
    }
    const int64_t count = std::min(most, about.frames - first);
    batch.resize(static_cast<size_t>(count * pixels));
    open.reader.read(first, count, batch);
    writer.write(std::span<const uint16_t>(batch));
  }
  writer.finish();
}

}  // namespace larch::pipeline
