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
constexpr Dispatch<void(const BinShiftJob&, const Context&)> kBinShifts{
    "dsa::bin_shifts", cpu::bin_shifts, LARCH_CUDA_FN(cuda::bin_shifts)};

/// The largest shift whose bins are at most `width` steps of a sample wide.
int32_t shift_below(double width) {
  int32_t shift = 0;
  while (shift < kMostShift && std::ldexp(1.0, shift + 1) <= width) ++shift;
  return shift;
}

template <class T>
Buffer<T> on_host(const Device& device, const T* data, int64_t count) {
  Buffer<T> host(Device::cpu(), data == nullptr ? 0 : static_cast<size_t>(count));
  if (data != nullptr) {
    memory::copy(Device::cpu(), host.data(), device, data, host.size() * sizeof(T));
  }
  return host;
}

/// Volumes, wherever they lie.
void match_volume(MatchJob job, const Context& context) {
  if (!context.device.is_cuda()) {
    cpu::match_volume(job, context);
    return;
  }
  const Vec3i& size = job.grid->image;
  const int64_t voxels = static_cast<int64_t>(size.x) * size.y * size.z;
  const int64_t blocks = job.frames * job.grid->blocks();
  const auto mask = on_host(context.device, job.mask, voxels);
  const auto mask_at_zero = on_host(context.device, job.mask_at_zero, voxels);
  const auto contrast = on_host(context.device, job.contrast, voxels * job.frames);
  const auto bin_shift = on_host(context.device, job.bin_shift, job.frames);
  const auto centre = on_host(context.device, job.centre, job.frames);
  const auto start = on_host(context.device, job.start, blocks);
  const int64_t base_blocks = job.base.grid == nullptr ? 0 : job.base.grid->blocks();
  const auto base = on_host(context.device, job.base.vectors, job.frames * base_blocks);
  Buffer<BlockMatch> out(Device::cpu(), static_cast<size_t>(blocks));
  BlockMatch* out_on_device = job.out;
  job.mask = mask.data();
  job.mask_at_zero = mask_at_zero.data();
  job.contrast = contrast.data();
  job.bin_shift = bin_shift.data();
  job.centre = centre.data();
  job.start = start.data();
  job.base.vectors = base.data();
  job.out = out.data();
  Context host = context;
  host.device = Device::cpu();
  cpu::match_volume(job, host);
  memory::copy(context.device, out_on_device, Device::cpu(), out.data(),
               out.size() * sizeof(BlockMatch));
}

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  const int64_t pixels =
      static_cast<int64_t>(job.grid->block.x) * job.grid->block.y * job.grid->block.z;
  if (pixels > 65535) {
    throw UsageError("blocks of " + std::to_string(pixels) +
                     " pixels: at most 65535 are supported");
  }
  if (job.grid->image.z > 1) {
    match_volume(job, context);
  } else {
    kMatchBlocks(context.device, job, context);
  }
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
