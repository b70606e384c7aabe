// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/samples.h"

namespace larch::dsa::cpu {
namespace {

/// Rows of a frame with room for whole lanes, and a sample before and after each.
struct RowBuffer {
  explicit RowBuffer(int32_t width)
      : padded((width + kLanes - 1) / kLanes * kLanes),
        values(static_cast<size_t>(padded) + 2 * kLanes, kNoSample) {}
  uint16_t* row() { return values.data() + kLanes; }
  int64_t padded;
  std::vector<uint16_t> values;
};

/// A row filtered along x.
void filter_row(const FilterJob& job, const uint16_t* row, RowBuffer& source, RowBuffer& out) {
  uint16_t* here = source.row();
  std::copy_n(row, job.size.x, here);
  here[-1] = here[job.size.x] = kNoSample;
  match_lanes().tap_row(job.taps, here - 1, here, here + 1, source.padded, out.row());
}

/// One plane filtered along x and y.
void filter_plane(const FilterJob& job, const uint16_t* plane, uint16_t* out) {
  const Vec3i& size = job.size;
  RowBuffer source(size.x), missing(size.x), result(size.x);
  std::vector<RowBuffer> filtered(3, RowBuffer(size.x));
  const auto row_at = [&](int32_t y) { return plane + static_cast<int64_t>(y) * size.x; };
  const auto slot = [&](int32_t y) -> RowBuffer& { return filtered[static_cast<size_t>(y % 3)]; };
  const auto pick = [&](int32_t y) { return y >= 0 && y < size.y ? slot(y).row() : missing.row(); };
  filter_row(job, row_at(0), source, slot(0));
  for (int32_t y = 0; y < size.y; ++y) {
    if (y + 1 < size.y) filter_row(job, row_at(y + 1), source, slot(y + 1));
    match_lanes().tap_row(job.taps, pick(y - 1), pick(y), pick(y + 1), source.padded, result.row());
    std::copy_n(result.row(), size.x, out + static_cast<int64_t>(y) * size.x);
  }
}

/// A row of a volume filtered along z; `planes` are filtered along x and y.
void filter_along_z(const FilterJob& job, const uint16_t* planes, int64_t row, uint16_t* out) {
  const int32_t z = static_cast<int32_t>(row / job.size.y);
  const int64_t plane = static_cast<int64_t>(job.size.x) * job.size.y;
  const uint16_t* here = planes + row * job.size.x;
  for (int32_t x = 0; x < job.size.x; ++x) {
    const uint16_t before = z > 0 ? here[x - plane] : kNoSample;
    const uint16_t after = z + 1 < job.size.z ? here[x + plane] : kNoSample;
    const bool counts = before != kNoSample && here[x] != kNoSample && after != kNoSample;
    out[row * job.size.x + x] = counts ? tap_sum(job.taps, before, here[x], after) : kNoSample;
  }
}

}  // namespace

void to_samples(const SampleJob& job, const Context& context) {
  const int64_t total = job.frame_pixels * job.frames;
  parallel_for(context.threads, total, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool is_in = job.region == nullptr || job.region[i % job.frame_pixels] != 0;
      job.samples[i] = sample_of(job, job.stored[i], is_in);
    }
  });
}

void filter_at_zero(const FilterJob& job, const Context& context) {
  const int64_t plane = static_cast<int64_t>(job.size.x) * job.size.y;
  const int64_t planes = job.frames * job.size.z;
  const bool is_volume = job.size.z > 1;
  std::vector<uint16_t> in_planes(is_volume ? static_cast<size_t>(plane * planes) : 0);
  uint16_t* flat = is_volume ? in_planes.data() : job.filtered;
  parallel_for(context.threads, planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      filter_plane(job, job.samples + p * plane, flat + p * plane);
    }
  });
  if (!is_volume) return;
  const int64_t rows = static_cast<int64_t>(job.size.y) * job.size.z;
  parallel_for(context.threads, job.frames * rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t frame = r / rows * rows * job.size.x;
      filter_along_z(job, flat + frame, r % rows, job.filtered + frame);
    }
  });
}

}  // namespace larch::dsa::cpu
