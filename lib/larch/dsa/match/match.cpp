// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const MatchJob&, const Context&)> kMatchBlocks{
    "dsa::match_blocks", cpu::match_blocks, LARCH_CUDA_FN(cuda::match_blocks)};
constexpr Dispatch<void(const MatchJob&, const Context&)> kMatchVolume{
    "dsa::match_volume", cpu::match_volume, LARCH_CUDA_FN(cuda::match_volume)};
constexpr Dispatch<void(const BinShiftJob&, const Context&)> kBinShifts{
    "dsa::bin_shifts", cpu::bin_shifts, LARCH_CUDA_FN(cuda::bin_shifts)};

/// The largest shift whose bins are at most `width` steps of a sample wide.
int32_t shift_below(double width) {
  int32_t shift = 0;
  while (shift < kMostShift && std::ldexp(1.0, shift + 1) <= width) ++shift;
  return shift;
}

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  const int64_t pixels =
      static_cast<int64_t>(job.grid->block.x) * job.grid->block.y * job.grid->block.z;
  if (pixels > kMostBlockPixels) {
    throw UsageError("blocks of " + std::to_string(pixels) + " pixels: at most " +
                     std::to_string(kMostBlockPixels) + " are supported");
  }
  const auto& match = job.grid->image.z > 1 ? kMatchVolume : kMatchBlocks;
  match(context.device, job, context);
}

Buffer<int32_t> bin_shifts(const SampleFrames& contrast, const uint16_t* mask_at_zero,
                           const Vec3i* centre, const SampleTable& table, const DsaConfig& config,
                           const Context& context) {
  if (config.bin_width > 0) {
    const int32_t shift = shift_below(std::ldexp(config.bin_width, table.fraction_bits));
    const std::vector<int32_t> all(static_cast<size_t>(contrast.count), shift);
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

}  // namespace larch::dsa
