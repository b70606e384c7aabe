// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/vec.h"

namespace larch::levelset {

/// Side of a brick in voxels, and its voxels.
constexpr int32_t kBrick = 8;
constexpr int32_t kBrickVoxels = kBrick * kBrick * kBrick;
/// A brick with the voxels that touch it through faces and edges.
constexpr int32_t kHalo = kBrick + 2;
constexpr int32_t kHaloVoxels = kHalo * kHalo * kHalo;

/// An image cut into bricks of 8^3 voxels, which lie one after the other: x is the fastest axis of
/// bricks and of the voxels in a brick. The bricks at the far borders are filled up; what fills
/// them is never read.
struct BrickLayout {
  Vec3i size{};   ///< of the image, voxels
  Vec3i count{};  ///< bricks along each axis

  LARCH_HD int64_t bricks() const { return static_cast<int64_t>(count.x) * count.y * count.z; }
  /// Voxels with what fills the bricks at the borders.
  LARCH_HD int64_t stored_voxels() const { return bricks() * kBrickVoxels; }
  /// In 32 bits, which divide faster: 2^32 bricks would be 2^41 voxels.
  LARCH_HD Vec3i brick_at(int64_t brick) const {
    const auto i = static_cast<uint32_t>(brick), nx = static_cast<uint32_t>(count.x);
    const auto ny = static_cast<uint32_t>(count.y);
    const uint32_t row = i / nx, z = row / ny;
    return {static_cast<int32_t>(i - row * nx), static_cast<int32_t>(row - z * ny),
            static_cast<int32_t>(z)};
  }
  LARCH_HD int64_t brick_of(const Vec3i& at) const {
    return at.x + static_cast<int64_t>(count.x) * (at.y + static_cast<int64_t>(count.y) * at.z);
  }
  /// Where voxel `at` of the image lies.
  LARCH_HD int64_t offset(const Vec3i& at) const {
    const Vec3i brick{at.x / kBrick, at.y / kBrick, at.z / kBrick};
    return brick_of(brick) * kBrickVoxels +
           offset_in_brick(at.x % kBrick, at.y % kBrick, at.z % kBrick);
  }
  LARCH_HD static int32_t offset_in_brick(int32_t x, int32_t y, int32_t z) {
    return (z * kBrick + y) * kBrick + x;
  }
};

LARCH_HD BrickLayout make_brick_layout(const Vec3i& size) {
  return {size,
          {(size.x + kBrick - 1) / kBrick, (size.y + kBrick - 1) / kBrick,
           (size.z + kBrick - 1) / kBrick}};
}

}  // namespace larch::levelset
