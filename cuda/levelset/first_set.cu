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

/// What is found in a field.
struct FirstFound {
  unsigned long long inside = 0;
  uint32_t listed = 0;
};

/// Sets a brick of a group for the first step, in all of its fields. Called by one thread.
__device__ void set_brick(const FieldView* views, int32_t field, const Vec3i& brick,
                          uint32_t* words, FirstFound* found) {
  const FieldView& view = views[field];
  const uint32_t bit = 1U << brick.x % kWordBits;
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
    uint32_t* word = words + views[k].first_word + active_word(view.layout, brick);
    if ((atomicOr(word, bit) & bit) == 0) atomicAdd(&found[k].listed, 1U);
  }
}

__device__ void list_voxel(const FieldView* views, int32_t field, int64_t at, FirstFound* found) {
  const FieldView& view = views[field];
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
    if (atomicExch(views[k].stamps + at, 1U) == 1U) continue;
    views[k].lists[0][atomicAdd(&found[k].listed, 1U)] = static_cast<uint32_t>(at);
  }
}

/// May a step change a voxel although phi is constant around it? Where the two buffers differ, or
/// where it overlaps with another field of the group.
__device__ bool is_unsettled(const FieldView* views, int32_t field, int32_t side, int64_t at,
                             float phi) {
  const FieldView& view = views[field];
  if (phi != view.phi[1 - side][at]) return true;
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
    if (k != field && overlap(phi, views[k].phi[side][at])) return true;
  }
  return false;
}

/// Blocks of threads that take one brick of a field after the other.
template <Listed kListed>
__global__ void __launch_bounds__(kBrickThreads)
    first_set_kernel(const FieldView* views, int32_t field, int32_t side, uint32_t* bricks,
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
      if (kListed == Listed::kVoxels && is_active) list_voxel(views, field, at, found);
    }
    const bool is_listed = __syncthreads_or(is_any) != 0;
    if (kListed == Listed::kBricks && threadIdx.x == 0 && is_listed) {
      set_brick(views, field, place, bricks, found);
    }
  }
  if (threadIdx.x % 32 == 0) atomicAdd(&found[field].inside, inside);
}

void find(DeviceJob& job, int32_t field, Listed listed, uint32_t* bricks, FirstFound* found) {
  const int32_t side = side_of(job.progress(field).iterations);
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

std::vector<uint32_t> first_set(DeviceJob& job, Listed listed, uint32_t* bricks) {
  Buffer<FirstFound> found(job.context().device, static_cast<size_t>(job.fields()));
  found.set_zero();
  const auto is_group_known = [&](int32_t field) {
    const FieldView& view = job.view(field);
    bool is_known = true;
    for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
      is_known = is_known && job.active(k).is_known;
    }
    return is_known;
  };
  std::vector<bool> is_known;
  for (int32_t f = 0; f < job.fields(); ++f) {
    is_known.push_back(job.progress(f).stop != Stop::kNone || is_group_known(f));
    if (!is_known.back()) find(job, f, listed, bricks, found.data());
  }
  const std::vector<FirstFound> counted = found.to_vector();
  std::vector<uint32_t> sizes;
  for (int32_t f = 0; f < job.fields(); ++f) {
    const FirstFound& own = counted[static_cast<size_t>(f)];
    ActiveSet& active = job.active(f);
    if (is_known[static_cast<size_t>(f)]) {
      sizes.push_back(static_cast<uint32_t>(active.items.size()));
      continue;
    }
    if (!active.is_known) job.progress(f).inside = static_cast<int64_t>(own.inside);
    active = {{}, true};
    sizes.push_back(own.listed);
  }
  return sizes;
}

}  // namespace larch::levelset::cuda
