// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/levelset/active_bricks.cuh"
#include "cuda/levelset/brick_stencil.cuh"
#include "cuda/levelset/device_job.cuh"

namespace larch::levelset::cuda {
namespace {

/// Threads that share a brick.
constexpr uint32_t kBrickThreads = 128;

/// Holds what is found in a field.
struct FirstFound {
  unsigned long long inside = 0;
  uint32_t listed = 0;
};

/// Sets a brick for the first step, in all fields. Called by one thread.
__device__ void set_brick(const FieldViews& views, const Vec3i& brick, uint32_t* words,
                          FirstFound* found) {
  const uint32_t bit = 1U << brick.x % kWordBits;
  for (int32_t k = 0; k < views.count; ++k) {
    uint32_t* word = words + views[k].first_word + active_word(views[k].layout, brick);
    if ((atomicOr(word, bit) & bit) == 0) atomicAdd(&found[k].listed, 1U);
  }
}

__device__ void list_voxel(const FieldViews& views, int64_t at, FirstFound* found) {
  for (int32_t k = 0; k < views.count; ++k) {
    if (atomicExch(views[k].stamps + at, 1U) == 1U) continue;
    views[k].lists[0][atomicAdd(&found[k].listed, 1U)] = static_cast<uint32_t>(at);
  }
}

/// May a step change a voxel although phi is constant around it? Where the two buffers differ, or
/// where it overlaps with another field.
__device__ bool is_unsettled(const FieldViews& views, int32_t field, int32_t side, int64_t at,
                             float phi) {
  const FieldView& view = views[field];
  if (phi != view.phi[1 - side][at]) return true;
  for (int32_t k = 0; k < views.count; ++k) {
    if (k != field && overlap(phi, views[k].phi[side][at])) return true;
  }
  return false;
}

/// Blocks of threads that take one brick of a field after the other.
template <Listed kListed>
__global__ void __launch_bounds__(kBrickThreads)
    first_set_kernel(const FieldViews views, int32_t field, int32_t side, uint32_t* bricks,
                     FirstFound* found) {
  const FieldView& view = views[field];
  const BrickLayout& layout = view.layout;
  uint64_t inside = 0;
  for (int64_t brick = blockIdx.x; brick < layout.bricks(); brick += gridDim.x) {
    const Vec3i place = layout.brick_at(brick);
    const BrickEntry entry = brick_entry(layout, place, field);
    bool is_any = false;
    for (uint32_t voxel = threadIdx.x; voxel < kBrickVoxels; voxel += kBrickThreads) {
      const int64_t at = entry.first_voxel() + voxel;
      const bool is_inside = is_in_image(layout.size, entry, voxel);
      Stencil<float> stencil{};
      if (is_inside) stencil = stencil_of(layout, view.phi[side], entry, voxel);
      const bool is_active = is_inside && (!is_constant(stencil) ||
                                           is_unsettled(views, field, side, at, stencil.centre));
      inside += __popc(__ballot_sync(kAllLanes, is_inside && stencil.centre < 0));
      is_any = is_any || is_active;
      if (kListed == Listed::kVoxels && is_active) list_voxel(views, at, found);
    }
    const bool is_listed = __syncthreads_or(is_any) != 0;
    if (kListed == Listed::kBricks && threadIdx.x == 0 && is_listed) {
      set_brick(views, place, bricks, found);
    }
  }
  if (threadIdx.x % 32 == 0) atomicAdd(&found[field].inside, inside);
}

void find(DeviceJob& job, int32_t field, Listed listed, uint32_t* bricks, FirstFound* found) {
  const int32_t side = side_of(job.job().progress.iterations);
  const auto blocks =
      static_cast<uint32_t>(std::min<int64_t>(job.view(field).layout.bricks(), 1 << 12));
  const cudaStream_t stream = larch::cuda::stream_of(job.context().device);
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, kBrickThreads, 0, stream>>>(job.views(), field, side, bricks, found);
  };
  launch(listed == Listed::kBricks ? first_set_kernel<Listed::kBricks>
                                   : first_set_kernel<Listed::kVoxels>);
  larch::cuda::check_launch("levelset first_set_kernel");
}

}  // namespace

std::vector<uint32_t> first_set(DeviceJob& device_job, Listed listed, uint32_t* bricks) {
  EvolveJob& job = device_job.job();
  std::vector<uint32_t> sizes;
  if (job.is_active_known) {
    for (const std::vector<uint32_t>& items : job.active) {
      sizes.push_back(static_cast<uint32_t>(items.size()));
    }
  } else {
    Buffer<FirstFound> found(device_job.context().device, job.fields.size());
    found.set_zero();
    for (int32_t f = 0; f < device_job.fields(); ++f) {
      find(device_job, f, listed, bricks, found.data());
    }
    job.inside.clear();
    for (const FirstFound& own : found.to_vector()) {
      sizes.push_back(own.listed);
      job.inside.push_back(static_cast<int64_t>(own.inside));
    }
  }
  stop_before_steps(job,
                    std::all_of(sizes.begin(), sizes.end(), [](uint32_t n) { return n == 0; }));
  return sizes;
}

}  // namespace larch::levelset::cuda
