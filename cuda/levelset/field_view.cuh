// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/step/step_math.h"

// What kernels know of the fields of a job.
namespace larch::levelset::cuda {

constexpr uint32_t kAllLanes = 0xffffffffU;

/// One field of a job, as kernels see it.
struct FieldView {
  float* phi[2] = {nullptr, nullptr};
  VoxelSpeeds speeds{};
  BrickLayout layout{};
  Step step{};
  uint32_t first_word = 0;                    ///< of the bits of its bricks (active_bricks.cuh)
  uint32_t* stamps = nullptr;                 ///< by voxel: the tag of the last round that found it
  uint32_t* lists[2] = {nullptr, nullptr};    ///< of voxels
  uint32_t* clamped[2] = {nullptr, nullptr};  ///< of each phi: kClampedWords for each brick
  uint32_t* unequal = nullptr;  ///< kVoxelWords for each brick: what may differ in its two buffers
};

/// Returns the buffer that a step reads, after so many.
LARCH_HD int32_t side_of(int64_t iterations) {
  return static_cast<int32_t>(iterations & 1);
}

/// Returns the stencil of a voxel in shared memory, where rows and planes are so far apart.
__device__ inline Stencil<float> stencil_at(const float* at, int32_t row, int32_t plane) {
  return {at[0],
          at[-1],
          at[1],
          at[-row],
          at[row],
          at[-plane],
          at[plane],
          at[-row - 1],
          at[-row + 1],
          at[row - 1],
          at[row + 1],
          at[-plane - 1],
          at[-plane + 1],
          at[plane - 1],
          at[plane + 1],
          at[-plane - row],
          at[-plane + row],
          at[plane - row],
          at[plane + row]};
}

/// The fields of a job.
struct FieldViews {
  const FieldView* all;
  int32_t count;

  __device__ const FieldView& operator[](int32_t field) const { return all[field]; }
};

/// A job in a launch.
struct JobView {
  FieldViews views;
  Progress* progress;
  int64_t* inside;    ///< voxels by field
  StepCount* counts;  ///< by step and field
  StopRules rules;
  int32_t steps;  ///< at most
  int32_t side;   ///< of phi that step 0 reads

  /// Of phi that a step reads.
  __device__ int32_t side_in(int32_t step) const { return (side ^ step) & 1; }
};

/// phi after a step at the voxel that lies `at`. `view`: views[field]; kPlain: it has no edges and
/// is alone, and views is not read. `side`: the buffer that is read.
template <bool kPlain>
__device__ float next_value(const FieldView& view, const FieldViews& views, int32_t field,
                            int32_t side, int64_t at, const Stencil<float>& p,
                            int16_t stored_speed) {
  if (kPlain) return voxel_after(p, stored_speed, {}, at, nullptr, view.step);
  if (views.count == 1) {
    return voxel_after(p, stored_speed, view.speeds, at, nullptr, view.step);
  }
  float least = kClamp;
  for (int32_t k = 0; k < views.count; ++k) {
    if (k != field) least = smaller(__ldcg(views[k].phi[side] + at), least);
  }
  return voxel_after(p, stored_speed, view.speeds, at, &least, view.step);
}

/// Returns the sum over a warp's lanes up to this one, with it.
__device__ inline uint32_t sum_up_to_lane(uint32_t value, uint32_t lane) {
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t lower = __shfl_up_sync(kAllLanes, value, step);
    if (lane >= step) value += lower;
  }
  return value;
}

/// Takes so many places of a list for a warp, which calls it. `taken`: as the last lane has it;
/// `count`: of places that are taken. Gives every lane the first of them.
__device__ inline uint32_t take_places(uint32_t* count, uint32_t taken, uint32_t lane) {
  uint32_t first = 0;
  if (lane == 31) first = atomicAdd(count, taken);
  return __shfl_sync(kAllLanes, first, 31);
}

/// Returns the number of the lowest bit of bits that are not 0.
__device__ inline uint32_t first_bit(uint32_t bits) {
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
}

/// Holds what a thread's voxels did.
struct LaneCount {
  uint32_t changed = 0, flipped = 0;
  int32_t grown = 0;

  __device__ void add(float before, float after) {
    const bool was = before < 0, is = after < 0;
    changed += __float_as_uint(before) != __float_as_uint(after) ? 1 : 0;
    flipped += was != is ? 1 : 0;
    grown += static_cast<int32_t>(is) - static_cast<int32_t>(was);
  }
};

/// Returns the sum over the lanes of a warp, for every lane; `active` is left to the caller.
__device__ inline StepCount total_of(const LaneCount& own) {
  StepCount count;
  count.changed = __reduce_add_sync(kAllLanes, own.changed);
  count.flipped = __reduce_add_sync(kAllLanes, own.flipped);
  count.grown = __reduce_add_sync(kAllLanes, own.grown);
  return count;
}

/// Holds what the warps of a block counted of one field since the last move_to.
struct BlockCount {
  static constexpr uint32_t kValues = 4;
  uint32_t values[kValues];  ///< as in StepCount

  __device__ void add_active(uint32_t count) { atomicAdd(values, count); }
  /// Adds the counts of a warp, which calls it, but for what is active.
  __device__ void add(const StepCount& of_warp, uint32_t lane) {
    uint32_t value = 0;
    if (lane == 1) value = of_warp.changed;
    if (lane == 2) value = of_warp.flipped;
    if (lane == 3) value = static_cast<uint32_t>(of_warp.grown);
    if (value != 0) atomicAdd(values + lane, value);
  }
  /// Adds all of it to the counts of a step, and makes it 0. Called by one warp.
  __device__ void move_to(StepCount& total, uint32_t lane) {
    static_assert(offsetof(StepCount, changed) == 4 && offsetof(StepCount, flipped) == 8 &&
                  offsetof(StepCount, grown) == 12);
    if (lane >= kValues) return;
    const uint32_t value = atomicExch(values + lane, 0U);
    if (value != 0) atomicAdd(reinterpret_cast<uint32_t*>(&total) + lane, value);
  }
};

/// Returns what a step did to a field, but for what was active.
__device__ inline StepCount read_count(const StepCount* from) {
  StepCount count;
  count.changed = __ldcg(&from->changed);
  count.flipped = __ldcg(&from->flipped);
  count.grown = __ldcg(&from->grown);
  return count;
}

/// Adds what a step did to all fields, and updates `inside`. Every block of threads comes to the
/// same, from the same counts.
__device__ inline void add_fields(StepSum& sum, const StepCount* counts, int64_t* inside,
                                  int32_t fields) {
  for (int32_t k = 0; k < fields; ++k) sum.add(read_count(counts + k), inside[k]);
}

}  // namespace larch::levelset::cuda
