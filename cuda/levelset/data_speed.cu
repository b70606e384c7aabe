// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/levelset/speed/data_speed.h"

namespace larch::levelset::cuda {
namespace {

constexpr int32_t kThreads = 256;

/// A block of threads per brick.
template <bool kGiven>
__global__ void __launch_bounds__(kThreads)
    data_speed_kernel(const __grid_constant__ DataSpeed parts, int16_t* stored) {
  const Vec3i first = parts.layout.brick_at(blockIdx.x) * kBrick, size = parts.layout.size;
  for (auto v = static_cast<int32_t>(threadIdx.x); v < kBrickVoxels; v += kThreads) {
    const Vec3i at = first + Vec3i{v % kBrick, v / kBrick % kBrick, v / (kBrick * kBrick)};
    const int64_t offset = int64_t{blockIdx.x} * kBrickVoxels + v;
    int16_t speed = 0;
    if (at.x < size.x && at.y < size.y && at.z < size.z) {
      const int64_t i = at.x + int64_t{size.x} * (at.y + int64_t{size.y} * at.z);
      speed = stored_data_speed<kGiven>(parts.rule, parts.values[i]);
      if (parts.pinned != nullptr && parts.pinned[i] != 0) speed = kFrozen;
    }
    stored[offset] = speed;
  }
}

}  // namespace

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  const auto kernel = parts.rule.is_given ? data_speed_kernel<true> : data_speed_kernel<false>;
  kernel<<<static_cast<uint32_t>(parts.layout.bricks()), kThreads, 0,
           larch::cuda::stream_for(context.device)>>>(parts, stored);
  larch::cuda::check_launch("levelset data_speed_kernel");
}

}  // namespace larch::levelset::cuda
