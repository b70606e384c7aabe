// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/clamped_bits.cuh"
#include "cuda/levelset/staged_brick.cuh"

namespace larch::levelset::cuda {

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
