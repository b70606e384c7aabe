// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/device_job.cuh"

// A step of listed voxels, one thread each. Lists hold BrickLayout::offset.
namespace larch::levelset::cuda {

constexpr int32_t kVoxelThreads = 256;
/// No voxel: fields of as many stored voxels are refused.
constexpr uint32_t kNoVoxel = 0xffffffffU;

/// Where the neighbours of a voxel lie: the sum of an offset per axis. 0: down, 1: here, 2: up.
struct VoxelPlace {
  uint32_t x[3], y[3], z[3];
  uint32_t inside;  ///< bits 0 to 5: down and up along x, y, z lie in the image

  __device__ VoxelPlace(const BrickLayout& layout, uint32_t at) {
    const uint32_t brick = at / kBrickVoxels, row = brick / static_cast<uint32_t>(layout.count.x);
    const auto bx = static_cast<int32_t>(brick % static_cast<uint32_t>(layout.count.x));
    const auto by = static_cast<int32_t>(row % static_cast<uint32_t>(layout.count.y));
    const auto bz = static_cast<int32_t>(row / static_cast<uint32_t>(layout.count.y));
    const uint32_t of_y = kBrickVoxels * static_cast<uint32_t>(layout.count.x);
    const uint32_t of_z = of_y * static_cast<uint32_t>(layout.count.y);
    const auto in_x = static_cast<int32_t>(at % 8), in_y = static_cast<int32_t>(at / 8 % 8),
               in_z = static_cast<int32_t>(at / 64 % 8);
    inside = axis(bx * kBrick + in_x, layout.size.x, kBrickVoxels, 1, x) |
             axis(by * kBrick + in_y, layout.size.y, of_y, 8, y) << 2 |
             axis(bz * kBrick + in_z, layout.size.z, of_z, 64, z) << 4;
  }
  __device__ uint32_t at(int32_t dx, int32_t dy, int32_t dz) const { return x[dx] + y[dy] + z[dz]; }

 private:
  __device__ static uint32_t axis(int32_t here, int32_t size, uint32_t per_brick,
                                  uint32_t per_voxel, uint32_t (&out)[3]) {
    const int32_t along[3] = {max(here - 1, 0), here, min(here + 1, size - 1)};
#pragma unroll
    for (int32_t i = 0; i < 3; ++i) {
      out[i] = static_cast<uint32_t>(along[i] / kBrick) * per_brick +
               static_cast<uint32_t>(along[i] % kBrick) * per_voxel;
    }
    return static_cast<uint32_t>(here > 0) | static_cast<uint32_t>(here + 1 < size) << 1;
  }
};

__device__ inline Stencil<float> stencil_of(const float* phi, const VoxelPlace& p) {
  const auto at = [&](int32_t x, int32_t y, int32_t z) { return __ldcg(phi + p.at(x, y, z)); };
  return {at(1, 1, 1), at(0, 1, 1), at(2, 1, 1), at(1, 0, 1), at(1, 2, 1), at(1, 1, 0), at(1, 1, 2),
          at(0, 0, 1), at(2, 0, 1), at(0, 2, 1), at(2, 2, 1), at(0, 1, 0), at(2, 1, 0), at(0, 1, 2),
          at(2, 1, 2), at(1, 0, 0), at(1, 2, 0), at(1, 0, 2), at(1, 2, 2)};
}

/// Offset `i` of a stencil as digits 0 to 2 per axis, the seven of the six neighbours and the voxel
/// itself first. Call with constants only.
struct VoxelOffset {
  int32_t x, y, z;
};
__device__ constexpr VoxelOffset stencil_offset(int32_t i) {
  constexpr VoxelOffset kAll[19] = {{1, 1, 1}, {0, 1, 1}, {2, 1, 1}, {1, 0, 1}, {1, 2, 1},
                                    {1, 1, 0}, {1, 1, 2}, {0, 0, 1}, {2, 0, 1}, {0, 2, 1},
                                    {2, 2, 1}, {0, 1, 0}, {2, 1, 0}, {0, 1, 2}, {2, 1, 2},
                                    {1, 0, 0}, {1, 2, 0}, {1, 0, 2}, {1, 2, 2}};
  return kAll[i];
}
/// The bits of VoxelPlace::inside that the voxel at offset `i` needs.
__device__ constexpr uint32_t needed_inside(int32_t i) {
  const VoxelOffset o = stencil_offset(i);
  uint32_t needed = 0;
  if (o.x != 1) needed |= o.x == 0 ? 1U : 2U;
  if (o.y != 1) needed |= o.y == 0 ? 4U : 8U;
  if (o.z != 1) needed |= o.z == 0 ? 16U : 32U;
  return needed;
}

/// Computes a voxel and writes it; `at` is kNoVoxel for threads without one. Adds to `count`. Did
/// it change?
__device__ inline bool step_voxel(const FieldView* views, int32_t field, int32_t side, uint32_t at,
                                  LaneCount& count) {
  if (at == kNoVoxel) return false;
  const FieldView& view = views[field];
  const int16_t speed = view.speeds.speed[at];
  const Stencil<float> p = stencil_of(view.phi[side], VoxelPlace(view.layout, at));
  const float after = next_value<false>(view, views, field, side, at, p, speed);
  view.phi[1 - side][at] = after;
  if (__float_as_uint(p.centre) == __float_as_uint(after)) return false;
  count.add(p.centre, after);
  return true;
}

/// Appends what the threads of a block have, up to `wanted` each, with one addition to the length
/// for all of them. Returns where this thread's go. All threads of the block call it; `sums` is
/// shared, of one more than the warps of a block.
__device__ inline uint32_t append_of_block(uint32_t wanted, uint32_t* length, uint32_t* sums) {
  constexpr uint32_t kWarps = kVoxelThreads / 32;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t before = sum_up_to_lane(wanted, lane);
  if (lane == 31) sums[warp] = before;
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t all = 0;
    for (uint32_t w = 0; w < kWarps; ++w) {
      const uint32_t own = sums[w];
      sums[w] = all;
      all += own;
    }
    sums[kWarps] = all == 0 ? 0 : atomicAdd(length, all);
  }
  __syncthreads();
  const uint32_t at = sums[kWarps] + sums[warp] + before - wanted;
  __syncthreads();
  return at;
}

/// What a launch for voxels gets. Steps read and append to FieldView::lists in turn.
struct VoxelRun {
  const FieldView* views;
  FieldProgress* progress;
  int32_t fields;
  int32_t steps;
  int32_t first_list;
  uint32_t* lengths;  ///< by step and field
  uint32_t epoch;     ///< stamp of what step 0 appends
  StepCount* counts;  ///< by step and field
  StopRules rules;
  uint32_t* auxiliary[8];  ///< Duplicates::kBuffers: the seven buffers, and the list between rounds
  uint32_t* changed;       ///< by field, one after the other: what changed in the step, or kNoVoxel
  int64_t changed_each;    ///< voxels of a field in `changed`
  uint32_t* between;       ///< length of auxiliary[7], by step and field
};

/// Blocks of threads that stay for all steps and know how far each field is.
class VoxelBlock {
 public:
  __device__ VoxelBlock(const VoxelRun& run, char* shared)
      : run_(run),
        views_(reinterpret_cast<FieldView*>(shared)),
        progress_(reinterpret_cast<FieldProgress*>(views_ + run.fields)) {
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run.fields; f += kVoxelThreads) {
      views_[f] = run.views[f];
      progress_[f] = run.progress[f];
    }
    __syncthreads();
  }
  static size_t bytes(size_t fields) {
    return fields * (sizeof(FieldView) + sizeof(FieldProgress));
  }

  __device__ const FieldView* views() const { return views_; }
  __device__ bool is_running(int32_t field) const { return progress_[field].stop == Stop::kNone; }
  __device__ int32_t side(int32_t field) const { return side_of(progress_[field].iterations); }
  __device__ uint32_t* list(int32_t field, int32_t step) const {
    return views_[field].lists[(run_.first_list + step) & 1];
  }
  __device__ uint32_t* length(int32_t field, int32_t step) const {
    return run_.lengths + int64_t{step} * run_.fields + field;
  }
  __device__ StepCount* counts(int32_t step) const {
    return run_.counts + int64_t{step} * run_.fields;
  }
  /// Decides on the ends, after all blocks have met. Does a field go on?
  __device__ bool advance(int32_t step) const {
    __syncthreads();
    bool is_on = false;
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run_.fields; f += kVoxelThreads) {
      if (views_[f].group_first != f) continue;
      is_on = advance_group(progress_, counts(step), views_[f], run_.rules) || is_on;
    }
    return __syncthreads_or(is_on) != 0;
  }
  __device__ void finish() const {
    if (blockIdx.x != 0) return;
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run_.fields; f += kVoxelThreads) {
      run_.progress[f] = progress_[f];
    }
  }

 private:
  const VoxelRun& run_;
  FieldView* views_;
  FieldProgress* progress_;
};

/// Adds the counts of a block's warps to those of a step. All threads call it; `sum` is shared.
__device__ inline void add_block(StepCount* total, const StepCount& of_warp, StepCount& sum) {
  if (threadIdx.x == 0) sum = {};
  __syncthreads();
  if (threadIdx.x % 32 == 0) add_to(&sum, of_warp);
  __syncthreads();
  if (threadIdx.x == 0) add_to(total, sum);
  __syncthreads();
}

/// All steps of a launch, with the seven buffers of the supplement.
const void* voxel_buffers_kernel();

}  // namespace larch::levelset::cuda
