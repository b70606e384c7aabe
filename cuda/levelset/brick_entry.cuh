// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/field_view.cuh"

namespace larch::levelset::cuda {

/// Fields that a BrickEntry can number.
constexpr uint32_t kMaximumNumbered = 0x7fff;

/// A brick of a field.
struct BrickEntry {
  static constexpr uint32_t kInner = 1U << 31;
  uint32_t number = 0;   ///< of the brick in its field
  uint32_t x_y = 0;      ///< its place: x, and y in the upper half
  uint32_t z_field = 0;  ///< z, then the field, and kInner

  __device__ int32_t x() const { return static_cast<int32_t>(x_y & 0xffffU); }
  __device__ int32_t y() const { return static_cast<int32_t>(x_y >> 16); }
  __device__ int32_t z() const { return static_cast<int32_t>(z_field & 0xffffU); }
  __device__ int32_t field() const {
    return static_cast<int32_t>(z_field >> 16 & kMaximumNumbered);
  }
  /// Are all bricks around it in the image, and near enough in memory for 32 bits?
  __device__ bool is_inner() const { return (z_field & kInner) != 0; }
  __device__ int64_t first_voxel() const { return int64_t{number} * kBrickVoxels; }
};

/// BrickEntry::is_inner as far as y and z go.
__device__ inline bool is_inner_row(const BrickLayout& layout, const Vec3i& at) {
  const Vec3i& count = layout.count;
  return at.y > 0 && at.z > 0 && at.y + 1 < count.y && at.z + 1 < count.z &&
         int64_t{count.x} * count.y < (1 << 20);
}
__device__ inline BrickEntry brick_entry(const BrickLayout& layout, const Vec3i& at,
                                         int32_t field) {
  const bool is_inner = at.x > 0 && at.x + 1 < layout.count.x && is_inner_row(layout, at);
  return {static_cast<uint32_t>(layout.brick_of(at)),
          static_cast<uint32_t>(at.x) | static_cast<uint32_t>(at.y) << 16,
          static_cast<uint32_t>(at.z) | static_cast<uint32_t>(field) << 16 |
              (is_inner ? BrickEntry::kInner : 0)};
}

/// Returns the place of a voxel in its brick.
__device__ inline Vec3i place_in_brick(uint32_t voxel) {
  return {static_cast<int32_t>(voxel % kBrick), static_cast<int32_t>(voxel / kBrick % kBrick),
          static_cast<int32_t>(voxel / (kBrick * kBrick))};
}
__device__ inline bool is_in_image(const Vec3i& size, const BrickEntry& e, uint32_t voxel) {
  const Vec3i at = Vec3i{e.x(), e.y(), e.z()} * kBrick + place_in_brick(voxel);
  return at.x < size.x && at.y < size.y && at.z < size.z;
}

/// Returns the same value, held in a register: without the shuffle the assembler would compute it
/// again at each use from the special register of the thread's number, which is slow to read.
/// Called by whole warps.
__device__ inline uint32_t in_register(uint32_t value) {
  return __shfl_sync(kAllLanes, value, static_cast<int>(threadIdx.x % 32));
}

}  // namespace larch::levelset::cuda
