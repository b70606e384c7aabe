// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/core/async_copy.cuh"
#include "cuda/levelset/brick_entry.cuh"
#include "cuda/levelset/clamped_bits.cuh"

namespace larch::levelset::cuda {

/// Warps that have one brick together, and the number of one of them.
struct Share {
  uint32_t parts, part;
};

/// Returns the first voxel of a row of the halo, from the first voxel of an inner brick.
__device__ inline int32_t row_of_halo(const BrickLayout& layout, uint32_t row) {
  const auto i = static_cast<int32_t>(row);
  const int32_t y = i % kHalo - 1, z = i / kHalo - 1;
  // Unsigned, since the product may wrap where planes are so large that bricks are not inner
  // (brick_entry), and this is not used.
  const uint32_t per_row = static_cast<uint32_t>(layout.count.x) * kBrickVoxels;
  const uint32_t per_plane = per_row * static_cast<uint32_t>(layout.count.y);
  return static_cast<int32_t>(static_cast<uint32_t>(y >> 3) * per_row +
                              static_cast<uint32_t>(z >> 3) * per_plane +
                              static_cast<uint32_t>(BrickLayout::offset_in_brick(0, y & 7, z & 7)));
}

/// phi of a brick with its halo, and its speed, in shared memory. The voxel right of a row stands
/// where the next row begins, and that to the left just before the row.
struct alignas(16) StagedBrick {
  static constexpr int32_t kFirst = 4, kRowPitch = kBrick + kFirst, kPlanePitch = kHalo * kRowPitch;
  static constexpr uint32_t kRows = kHalo * kHalo;

  float phi[kRows * kRowPitch + kFirst];
  int16_t speed[kBrickVoxels];

  /// Where phi of a voxel of the brick stands.
  __device__ const float* centre(uint32_t voxel) const {
    const Vec3i at = place_in_brick(voxel);
    return phi + (at.z + 1) * kPlanePitch + (at.y + 1) * kRowPitch + at.x + kFirst;
  }

  __device__ Stencil<float> stencil(uint32_t voxel) const {
    return stencil_at(centre(voxel), kRowPitch, kPlanePitch);
  }

  /// Starts to read a brick, with the warps of a share. It is there when each has waited for its
  /// copies and then for the others. row_at gives row_of_halo of a row.
  template <class RowAt>
  __device__ void fetch(const FieldView& view, const float* from, const BrickEntry& e,
                        const RowAt& row_at, const Share& share, uint32_t lane) {
    const uint32_t first = share.part * 32 + lane, step = share.parts * 32;
    constexpr uint32_t kEach = 8;
    const int16_t* from_speed = view.speeds.speed + e.first_voxel();
    for (uint32_t i = first; i < kBrickVoxels / kEach; i += step) {
      larch::cuda::copy_four_words(speed + i * kEach, from_speed + i * kEach);
    }
    if (!e.is_inner()) {
      fetch_border(view.layout, from, e, first, step);
      return;
    }
    // A lane reads half of a row, and what is beside that half.
    constexpr int32_t kHalf = kBrick / 2;
    const bool is_right = lane % 2 != 0;
    const int32_t half = is_right ? kHalf : 0;
    const int32_t beside = is_right ? kBrickVoxels : kBrick - 1 - kBrickVoxels;
    const float* brick = from + e.first_voxel();
#pragma unroll 2
    for (uint32_t i = first; i < 2 * kRows; i += step) {
      const float* row = brick + row_at(i / 2);
      float* to = phi + i / 2 * kRowPitch + kFirst;
      larch::cuda::copy_four_words(to + half, row + half);
      larch::cuda::copy_word(to + (is_right ? kBrick : -1), row + beside);
    }
  }

 private:
  /// A brick that is not inner, a voxel at a time; beyond the image is its border again.
  __device__ void fetch_border(const BrickLayout& layout, const float* from, const BrickEntry& e,
                               uint32_t first_voxel, uint32_t step) {
    const Vec3i first = Vec3i{e.x(), e.y(), e.z()} * kBrick, size = layout.size;
#pragma unroll 1
    for (auto h = static_cast<int32_t>(first_voxel); h < kHaloVoxels;
         h += static_cast<int32_t>(step)) {
      const Vec3i in_halo{h % kHalo, h / kHalo % kHalo, h / (kHalo * kHalo)};
      const Vec3i at = in_halo - Vec3i{1, 1, 1} + first;
      larch::cuda::copy_word(
          phi + in_halo.z * kPlanePitch + in_halo.y * kRowPitch + in_halo.x - 1 + kFirst,
          from + layout.offset({min(max(at.x, 0), size.x - 1), min(max(at.y, 0), size.y - 1),
                                min(max(at.z, 0), size.z - 1)}));
    }
  }
};

/// Bricks whose voxels a block of threads lists at a time; fewer where shared memory is short.
constexpr uint32_t kMaximumSlots = 64;
/// Where a block has so few bricks in a step, it reads them whole before it computes, if they fit;
/// where it has more, its many warps find most of what they need in L1.
constexpr uint32_t kMaximumStaged = 8;

/// A brick whose voxels are listed.
struct alignas(16) BrickSlot {
  BrickEntry entry;
  uint32_t faces;                   ///< faces_of the voxels that changed
  uint32_t clamped[kClampedWords];  ///< after the step; of listed voxels once they are computed
  uint32_t moving[kVoxelWords];     ///< which voxels the step may move
};

/// The voxels of several bricks that a step has to write, in shared memory: the number of the slot
/// and that of the voxel in its brick.
struct BrickVoxels {
  static constexpr uint32_t kNone = UINT16_MAX;  ///< fills up what a warp takes at a time
  static_assert(kMaximumSlots * kBrickVoxels <= kNone);

  BrickSlot slots[kMaximumSlots];
  int32_t rows[StagedBrick::kRows];  ///< row_of_halo, where there is a BrickRun::only
  LaneOffsets offsets[32];           ///< lane_offsets, likewise
  uint32_t counts[2];                ///< of the voxels that follow; they take turns

  /// kBrickVoxels for each slot that is in use.
  __device__ uint16_t* voxels() { return reinterpret_cast<uint16_t*>(this + 1); }
  /// In the place of what follows the voxels of so many slots, since no other slots are in use.
  __device__ StagedBrick* staged() {
    static_assert(kMaximumStaged * kBrickVoxels * sizeof(uint16_t) % alignof(StagedBrick) == 0);
    return reinterpret_cast<StagedBrick*>(voxels() + kMaximumStaged * kBrickVoxels);
  }
  static constexpr size_t kSlotBytes = kBrickVoxels * sizeof(uint16_t);
  static size_t bytes(uint32_t slots) { return sizeof(BrickVoxels) + slots * kSlotBytes; }
  /// Bricks that can be staged: all or none.
  static uint32_t most_staged(uint32_t slots) {
    return slots * kSlotBytes >= kMaximumStaged * (kSlotBytes + sizeof(StagedBrick))
               ? kMaximumStaged
               : 0;
  }

  /// Called by all threads of a block. `only`: BrickRun::only where the block has no other field,
  /// or null.
  __device__ void begin(const FieldView* only) {
    if (only != nullptr) {
      for (uint32_t i = threadIdx.x; i < StagedBrick::kRows; i += blockDim.x) {
        rows[i] = row_of_halo(only->layout, i);
      }
      if (threadIdx.x < 32) offsets[threadIdx.x] = lane_offsets(only->layout, threadIdx.x);
    }
    if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  }

  /// Lists a warp's share of the voxels of a slot whose bits are set in `all`: a lane has word
  /// lane % kVoxelWords, as in LaneBits. The parts of a share divide the 16 voxels of a lane.
  /// kFill: a warp that takes 32 voxels of the list finds those of one brick alone. `turn`: of
  /// counts.
  template <bool kFill>
  __device__ void add(uint32_t all, uint32_t slot, const Share& share, uint32_t lane,
                      uint32_t turn) {
    // Each of the two lanes that have the same word lists half of it, or of the warp's share.
    constexpr uint32_t kHalf = 16, kAtATime = 4;
    const uint32_t each = kHalf / share.parts;
    const uint32_t from = (lane < kVoxelWords ? 0 : kHalf) + share.part * each;
    const uint32_t listed = all >> from & ((1U << each) - 1);
    const auto own = static_cast<uint32_t>(__popc(listed));
    const uint32_t upto = sum_up_to_lane(own, lane);
    const uint32_t taken = kFill ? (upto + 31) / 32 * 32 : upto;
    const uint32_t begin = take_places(counts + turn, taken, lane);
    uint16_t* out = voxels() + begin + upto - own;
    uint32_t voxel = slot * kBrickVoxels + lane % kVoxelWords * 32 + from;
#pragma unroll 1
    for (uint32_t left = listed, k = 0; k < each; k += kAtATime, left >>= kAtATime) {
#pragma unroll
      for (uint32_t bit = 0; bit < kAtATime; ++bit, ++voxel) {
        if ((left >> bit & 1) != 0) *out++ = static_cast<uint16_t>(voxel);
      }
    }
    if (kFill) {
      const uint32_t end = __shfl_sync(kAllLanes, begin + taken, 31);
      const uint32_t at = __shfl_sync(kAllLanes, begin + upto, 31) + lane;
      if (at < end) voxels()[at] = kNone;
    }
  }

  /// Adds what the lanes of a warp did to the slots of their bricks, of which it has few. `faces`:
  /// 0 where a lane did nothing.
  __device__ void add_faces(uint32_t slot, uint32_t faces, uint32_t lane) {
    for (uint32_t left = __ballot_sync(kAllLanes, faces != 0); left != 0;) {
      const uint32_t first = first_bit(left);
      const bool is_own = slot == __shfl_sync(kAllLanes, slot, static_cast<int>(first));
      const uint32_t all = __reduce_or_sync(kAllLanes, is_own ? faces : 0);
      if (lane == first) atomicOr(&slots[slot].faces, all);
      left &= ~__ballot_sync(kAllLanes, is_own);
    }
  }
};

}  // namespace larch::levelset::cuda
