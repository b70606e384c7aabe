// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/levelset/clamped_bits.cuh"
#include "cuda/levelset/device_job.cuh"

namespace larch::levelset::cuda {
namespace {

constexpr uint32_t kThreads = 256;

/// A warp per brick, one after the other. The bits of both buffers are made from one of them: where
/// they differ, unequal has it listed, and the step writes them.
__global__ void __launch_bounds__(kThreads)
    find_clamped_kernel(const FieldViews views, int32_t field, int32_t side) {
  const FieldView& view = views[field];
  const uint32_t lane = threadIdx.x % 32;
  const int64_t warps = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t brick = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
       brick < view.layout.bricks(); brick += warps) {
    const BrickEntry entry = brick_entry(view.layout, view.layout.brick_at(brick), field);
    uint32_t own = 0, unequal = 0;
    for (uint32_t word = 0; word < kVoxelWords; ++word) {
      const uint32_t voxel = word * 32 + lane;
      const int64_t at = brick * kBrickVoxels + voxel;
      const bool is_there = is_in_image(view.layout.size, entry, voxel);
      const float phi = is_there ? view.phi[side][at] : 0,
                  other = is_there ? view.phi[1 - side][at] : 0;
      const uint32_t high = __ballot_sync(kAllLanes, !is_there || phi == kClamp);
      const uint32_t low = __ballot_sync(kAllLanes, !is_there || phi == -kClamp);
      const uint32_t differs =
          __ballot_sync(kAllLanes, __float_as_uint(phi) != __float_as_uint(other));
      if (lane == word) own = high, unequal = differs;
      if (lane == kVoxelWords + word) own = low;
    }
    for (uint32_t* bits : view.clamped) bits[brick * kClampedWords + lane] = own;
    if (lane < kVoxelWords) view.unequal[brick * kVoxelWords + lane] = unequal;
  }
}

}  // namespace

void find_clamped(DeviceJob& job) {
  constexpr int64_t kMaximumBlocks = 1 << 12;
  for (int32_t f = 0; f < job.fields(); ++f) {
    const int64_t bricks = job.view(f).layout.bricks();
    const auto blocks = static_cast<uint32_t>(
        std::min((bricks + kThreads / 32 - 1) / (kThreads / 32), kMaximumBlocks));
    find_clamped_kernel<<<blocks, kThreads, 0, larch::cuda::stream_of(job.context().device)>>>(
        job.views(), f, side_of(job.job().progress.iterations));
    larch::cuda::check_launch("levelset find_clamped_kernel");
  }
}

}  // namespace larch::levelset::cuda
