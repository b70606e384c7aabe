// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/levelset/speed/data_speed.h"

namespace larch::levelset::cuda {
namespace {

constexpr int32_t kThreads = 256;

/// A block of threads per brick.
template <bool kGiven, bool kRegions>
__global__ void __launch_bounds__(kThreads)
    data_speed_kernel(const __grid_constant__ DataSpeed parts, int16_t* stored) {
  const Vec3i first = parts.layout.brick_at(blockIdx.x) * kBrick, size = parts.layout.size;
  for (auto v = static_cast<int32_t>(threadIdx.x); v < kBrickVoxels; v += kThreads) {
    const Vec3i at = first + Vec3i{v % kBrick, v / kBrick % kBrick, v / (kBrick * kBrick)};
    const int64_t offset = int64_t{blockIdx.x} * kBrickVoxels + v;
    int16_t speed = 0;
    if (at.x < size.x && at.y < size.y && at.z < size.z) {
      const int64_t i = at.x + int64_t{size.x} * (at.y + int64_t{size.y} * at.z);
      const float intensity = kRegions || !kGiven ? parts.images.intensities[i] : 0.0F;
      const float given = kGiven ? parts.images.given[i] : 0.0F;
      const double stop = parts.edge_stop != nullptr ? edge_stop_of(parts.edge_stop[offset]) : 1.0;
      speed = stored_data_speed<kGiven, kRegions>(parts.rule, intensity, given, stop);
      if (parts.images.pinned != nullptr && parts.images.pinned[i] != 0) speed = kFrozen;
    }
    stored[offset] = speed;
  }
}

/// The kernel for parts of a rule.
struct KernelOf {
  template <bool kGiven, bool kRegions>
  auto operator()() const {
    return data_speed_kernel<kGiven, kRegions>;
  }
};

}  // namespace

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const auto kernel = with_parts_of(parts.rule, KernelOf{});
  kernel<<<static_cast<uint32_t>(parts.layout.bricks()), kThreads, 0,
           larch::cuda::stream_of(context.device)>>>(parts, stored);
  larch::cuda::check_launch("levelset data_speed_kernel");
}

}  // namespace larch::levelset::cuda
