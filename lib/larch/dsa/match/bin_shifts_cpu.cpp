// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa::cpu {
namespace {

constexpr int32_t kMostDifference = 65535;

/// Pixels by contrast - mask + kMostDifference.
std::vector<uint32_t> count_differences(const BinShiftJob& job, int64_t frame) {
  std::vector<uint32_t> counts(2 * kMostDifference + 1, 0);
  const Vec3i& size = job.size;
  const Vec3i centre = job.centre == nullptr ? Vec3i{} : job.centre[frame];
  const uint16_t* contrast = job.contrast + frame * static_cast<int64_t>(size.x) * size.y * size.z;
  for (int32_t z = std::max(0, -centre.z); z < std::min(size.z, size.z - centre.z); ++z) {
    for (int32_t y = std::max(0, -centre.y); y < std::min(size.y, size.y - centre.y); ++y) {
      const auto row_of = [&](int32_t k, int32_t j) {
        return (static_cast<int64_t>(k) * size.y + j) * size.x;
      };
      const uint16_t* here = contrast + row_of(z, y);
      const uint16_t* there = job.mask_at_zero + row_of(z + centre.z, y + centre.y) + centre.x;
      for (int32_t x = std::max(0, -centre.x); x < std::min(size.x, size.x - centre.x); ++x) {
        if (here[x] == kNoSample || there[x] == kNoSample) continue;
        const int32_t place = int32_t{here[x]} - int32_t{there[x]} + kMostDifference;
        ++counts[static_cast<size_t>(place)];
      }
    }
  }
  return counts;
}

/// The lower median of absolute deviations from the lower median; 0 where nothing is counted.
int64_t median_absolute_deviation(const std::vector<uint32_t>& counts) {
  uint64_t total = 0;
  for (const uint32_t c : counts) total += c;
  if (total == 0) return 0;
  const uint64_t wanted = (total + 1) / 2;
  size_t median = 0;
  for (uint64_t below = counts[0]; below < wanted; below += counts[median]) ++median;
  uint64_t within = counts[median];
  size_t deviation = 0;
  while (within < wanted) {
    ++deviation;
    if (deviation <= median) within += counts[median - deviation];
    if (median + deviation < counts.size()) within += counts[median + deviation];
  }
  return static_cast<int64_t>(deviation);
}

}  // namespace

void bin_shifts(const BinShiftJob& job, const Context& context) {
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const int64_t mad = median_absolute_deviation(count_differences(job, f));
      job.shifts[f] = bin_shift_of(mad, job.least_shift);
    }
  });
}

}  // namespace larch::dsa::cpu
