// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/core/async_copy.cuh"
#include "cuda/levelset/brick_entry.cuh"

namespace larch::levelset::cuda {

/// Warps that have one brick together, and the number of one of them.
struct Share {
  uint32_t parts, part;
};

/// The first voxel of a row of the halo, from the first voxel of an inner brick.
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

}  // namespace larch::levelset::cuda
