// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match.h"

#include <algorithm>
#include <string>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/warp_math.h"
#include "larch/dsa/literal.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const MatchJob&, const Context&)> kMatchBlocks{
    "dsa::match_blocks", cpu::match_blocks, LARCH_CUDA_FN(cuda::match_blocks)};
constexpr Dispatch<void(const BinShiftJob&, const Context&)> kBinShifts{
    "dsa::bin_shifts", cpu::bin_shifts, LARCH_CUDA_FN(cuda::bin_shifts)};

constexpr int32_t kMaximumDifference = 65535;

/// Pixels by contrast - mask + kMaximumDifference.
std::vector<uint32_t> count_differences(const BinShiftJob& job, int64_t frame) {
  std::vector<uint32_t> counts(2 * kMaximumDifference + 1, 0);
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
        const int32_t place = int32_t{here[x]} - int32_t{there[x]} + kMaximumDifference;
        ++counts[static_cast<size_t>(place)];
      }
    }
  }
  return counts;
}

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  const int64_t pixels =
      static_cast<int64_t>(job.grid->block.x) * job.grid->block.y * job.grid->block.z;
  if (pixels > kMaximumBlockPixels) {
    throw UsageError("blocks of " + std::to_string(pixels) + " pixels: at most " +
                     std::to_string(kMaximumBlockPixels) + " are supported");
  }
  if (job.config->literal) return match_literally(job, context);
  kMatchBlocks(context.device, job, context);
}

Buffer<int32_t> bin_shifts(const SampleFrames& contrast, const uint16_t* mask_at_zero,
                           const Vec3i* centre, const SampleTable& table, const DsaConfig& config,
                           const Context& context) {
  if (config.literal) {
    const std::vector<int32_t> all(static_cast<size_t>(contrast.count), table.fraction_bits);
    return Buffer<int32_t>(context.device, all);
  }
  Buffer<int32_t> shifts(context.device, static_cast<size_t>(contrast.count));
  BinShiftJob job;
  job.mask_at_zero = mask_at_zero;
  job.contrast = contrast.values.data();
  job.size = contrast.size;
  job.frames = contrast.count;
  job.centre = centre;
  job.least_shift = table.bits <= 8 && !table.is_log ? 0 : table.fraction_bits;
  job.shifts = shifts.data();
  kBinShifts(context.device, job, context);
  return shifts;
}

void cpu::bin_shifts(const BinShiftJob& job, const Context& context) {
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const std::vector<uint32_t> counts = count_differences(job, f);
      const Spread spread = spread_of(counts.data(), static_cast<int32_t>(counts.size()));
      job.shifts[f] = bin_shift_of(spread.deviation, job.least_shift);
    }
  });
}

}  // namespace larch::dsa
