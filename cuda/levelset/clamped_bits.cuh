// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/brick_entry.cuh"

// Which voxels of a brick a step has to write, from bits: those that may move, which are neither c
// nor -c together with their six neighbours, and those that may have moved in the last step, since
// it wrote them to one buffer alone. About a fifth of an active brick.
namespace larch::levelset::cuda {

/// Words of a bit per voxel of a brick, in the order of BrickLayout::offset_in_brick: a word holds
/// four rows, two words a plane.
constexpr uint32_t kVoxelWords = kBrickVoxels / 32;
/// FieldView::clamped, for each brick: first which voxels are c, then which are -c. What fills
/// bricks at the far borders is both, so that it keeps no voxel from being still.
constexpr uint32_t kClampedWords = 2 * kVoxelWords;
static_assert(kBrick == 8 && kClampedWords == 32, "a lane of a warp has a word");

/// Holds what a lane of a warp reads to learn which voxels of its word of a brick may move.
struct LaneBits {
  uint32_t own;          ///< of the brick's kClampedWords; those of other bricks follow
  uint32_t left, right;  ///< the same word
  uint32_t beside;       ///< the word whose rows go on along y
  uint32_t over;         ///< along z, for the planes at the ends; not used in others
};
/// Where the last two lie, in words from a lane's own.
struct LaneOffsets {
  int64_t beside, over;
};
__device__ inline bool is_upper_half(uint32_t lane) {
  return lane % 2 != 0;
}
__device__ inline uint32_t plane_of_word(uint32_t lane) {
  return lane / 2 % kBrick;
}
__device__ inline LaneOffsets lane_offsets(const BrickLayout& layout, uint32_t lane) {
  const int64_t row = int64_t{layout.count.x} * kClampedWords, plane = row * layout.count.y;
  constexpr int32_t kPlanes = static_cast<int32_t>(kVoxelWords) - 2;
  const bool is_first = plane_of_word(lane) == 0, is_last = plane_of_word(lane) == kBrick - 1;
  return {is_upper_half(lane) ? row - 1 : 1 - row, is_first  ? kPlanes - plane
                                                   : is_last ? plane - kPlanes
                                                             : 0};
}

/// Reads them. `clamped`: view.clamped of the buffer that is read; `offsets`: lane_offsets. Beyond
/// the image all are set.
__device__ inline LaneBits read_bits(const BrickLayout& layout, const LaneOffsets& offsets,
                                     const uint32_t* clamped, const BrickEntry& e, uint32_t lane) {
  constexpr int32_t kLanes = kClampedWords;
  const uint32_t* word = clamped + (int64_t{e.number} * kLanes + lane);
  if (e.is_inner()) {
    return {word[0], word[-kLanes], word[kLanes], word[offsets.beside], word[offsets.over]};
  }
  const Vec3i& count = layout.count;
  const bool is_first = plane_of_word(lane) == 0;
  LaneBits bits{word[0], kAllLanes, kAllLanes, kAllLanes, kAllLanes};
  if (e.x() > 0) bits.left = word[-kLanes];
  if (e.x() + 1 < count.x) bits.right = word[kLanes];
  if (is_upper_half(lane) ? e.y() + 1 < count.y : e.y() > 0) bits.beside = word[offsets.beside];
  if (is_first ? e.z() > 0 : e.z() + 1 < count.z) bits.over = word[offsets.over];
  return bits;
}

/// Returns the voxels of a lane's word that are c together with their six neighbours, or -c. Called
/// by one warp.
__device__ inline uint32_t still_voxels(const LaneBits& bits, uint32_t lane) {
  constexpr uint32_t kFirst = 0x01010101U, kLast = 0x80808080U;  // voxels of all rows
  const uint32_t own = bits.own, other = __shfl_xor_sync(kAllLanes, own, 1);
  const uint32_t down = __shfl_up_sync(kAllLanes, own, 2);
  const uint32_t up = __shfl_down_sync(kAllLanes, own, 2);
  const bool is_upper = is_upper_half(lane);
  const uint32_t plane = plane_of_word(lane);
  const uint32_t before = is_upper ? other : bits.beside, after = is_upper ? bits.beside : other;
  // A row is a byte: along x its bits move by one, along y the rows of a word by eight; what is
  // beyond comes from the words beside.
  uint32_t still = own & ((own << 1 & ~kFirst) | (bits.left >> 7 & kFirst));
  still &= (own >> 1 & ~kLast) | (bits.right << 7 & kLast);
  still &= __funnelshift_r(before, own, 32 - kBrick) & __funnelshift_r(own, after, kBrick);
  return still & (plane == 0 ? bits.over : down) & (plane == kBrick - 1 ? bits.over : up);
}

/// Word lane % kVoxelWords of the voxels of a brick that may move. Called by one warp. Other
/// fields may push -c up, so that it must be computed: keeps_low is false there. Elsewhere the
/// gradient of a still voxel is 0, and with it all that moves one, whatever its neighbours across
/// edges hold.
__device__ inline uint32_t moving_voxels(const LaneBits& bits, bool keeps_low, uint32_t lane) {
  uint32_t still = still_voxels(bits, lane);
  if (!keeps_low && lane >= kVoxelWords) still = 0;
  still |= __shfl_xor_sync(kAllLanes, still, kVoxelWords);
  // Of voxels that are c and -c there are none: they fill the brick.
  const uint32_t filling = bits.own & __shfl_xor_sync(kAllLanes, bits.own, kVoxelWords);
  return ~(still | filling);
}

}  // namespace larch::levelset::cuda
