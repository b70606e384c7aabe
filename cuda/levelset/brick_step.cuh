// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/staged_brick.cuh"

// A step of one brick by a block of threads that reads all of it. Few of its voxels may move: those
// that are not c, or -c, together with their six neighbours. They are found by bits of rows,
// listed, and computed 32 at a time.
namespace larch::levelset::cuda {

/// Threads that share a brick.
constexpr uint32_t kBrickThreads = 128;
/// Voxels that are copied at a time.
constexpr int32_t kQuad = 4;

/// Which voxels of a brick move.
struct MovingVoxels {
  uint32_t rows[StagedBrick::kRows];  ///< of the halo: look_at_rows
  uint32_t count;                     ///< of list_moving; 0 before it
  uint16_t voxels[kBrickVoxels];      ///< BrickLayout::offset_in_brick
};

/// A thread of the block.
class BrickLane {
 public:
  __device__ BrickLane()
      : lane_(in_register(threadIdx.x % 32)), thread_(in_register(threadIdx.x / 32) * 32 + lane_) {}

  /// Starts to read a brick, with all threads. It is there when each has waited for its copies and
  /// then for the others. `rows`: row_of_halo of all rows.
  __device__ void fetch(const FieldView& view, const float* phi, const BrickEntry& e,
                        const int32_t* rows, StagedBrick& to) const {
    to.fetch(
        view, phi, e, [&](uint32_t row) { return rows[row]; }, {kBrickThreads / 32, thread_ / 32},
        lane_);
  }

  /// After that: looks which voxels of the halo are c, and which are -c.
  __device__ void look_at_rows(float clamp, const StagedBrick& brick, MovingVoxels& moving) const {
    if (thread_ >= StagedBrick::kRows) return;
    const float* row = brick.phi + thread_ * StagedBrick::kRowPitch + StagedBrick::kFirst;
    const float4 low = *reinterpret_cast<const float4*>(row);
    const float4 high = *reinterpret_cast<const float4*>(row + kQuad);
    const float values[kHalo] = {row[-1], low.x,  low.y,  low.z,  low.w,
                                 high.x,  high.y, high.z, high.w, row[kBrick]};
    uint32_t bits = 0;
#pragma unroll
    for (int32_t x = 0; x < kHalo; ++x) {
      if (values[x] == clamp) bits |= kIsHigh << x;
      if (values[x] == -clamp) bits |= kIsLow << x;
    }
    moving.rows[thread_] = bits;
  }

  /// Copies phi of the brick to `out`, where what moves is written later, after a barrier.
  __device__ void copy_brick(const FieldView& view, const BrickEntry& e, const StagedBrick& brick,
                             float* out) const {
    constexpr uint32_t kQuads = kBrickVoxels / kQuad;
    if (thread_ >= kQuads) return;
    const uint32_t voxel = thread_ * kQuad;
    const float* from = brick.centre(voxel);
    if (e.is_inner()) {
      *reinterpret_cast<float4*>(out + voxel) = *reinterpret_cast<const float4*>(from);
      return;
    }
    for (uint32_t i = 0; i < kQuad; ++i) {
      if (is_in_image(view.layout.size, e, voxel + i)) out[voxel + i] = from[i];
    }
  }

  /// After look_at_rows and a barrier: lists the voxels that move. A group of fields may push -c
  /// up, so that it must be computed: keeps_low is false there.
  __device__ void list_moving(const Vec3i& size, const BrickEntry& e, bool keeps_low,
                              MovingVoxels& moving) const {
    // A lane has a row of the brick.
    constexpr uint32_t kBrickRows = kBrick * kBrick;
    if (thread_ >= kBrickRows) return;
    const uint32_t row = thread_;
    uint32_t voxels = moving_in_row(moving.rows + row_in_halo(row), keeps_low);
    if (!e.is_inner()) voxels &= row_in_image(size, e, row);
    const auto own = static_cast<uint32_t>(__popc(voxels));
    const uint32_t upto = sum_up_to_lane(own, lane_);
    uint16_t* to = moving.voxels + take_places(&moving.count, upto, lane_) + upto - own;
    for (; voxels != 0; voxels &= voxels - 1) {
      *to++ = static_cast<uint16_t>(row * kBrick + first_bit(voxels));
    }
  }

  /// Computes this thread's voxels of those that are listed, and writes them to `out`. `view`:
  /// views[e.field()]; kPlain: it has no edges and is alone, and views is not read.
  template <bool kPlain>
  __device__ void step(const FieldView& view, const FieldView* views, const BrickEntry& e,
                       const MovingVoxels& moving, int32_t phi_side, const StagedBrick& brick,
                       float* out, LaneCount& count) const {
#pragma unroll 1
    for (uint32_t i = thread_; i < moving.count; i += kBrickThreads) {
      const uint32_t voxel = moving.voxels[i];
      const Stencil<float> stencil = brick.stencil(voxel);
      const float before = stencil.centre;
      const float after = next_value<kPlain>(view, views, e.field(), phi_side,
                                             e.first_voxel() + voxel, stencil, brick.speed[voxel]);
      out[voxel] = after;
      if (__float_as_uint(before) != __float_as_uint(after)) count.add(before, after);
    }
  }

 private:
  static constexpr uint32_t kIsHigh = 1, kIsLow = 1U << 16;  ///< of the first voxel of a row

  /// The voxels of a row of a brick that are in the image; bits.
  __device__ static uint32_t row_in_image(const Vec3i& size, const BrickEntry& e, uint32_t row) {
    if (!is_in_image(size, e, row * kBrick)) return 0;
    return (1U << min(size.x - e.x() * kBrick, kBrick)) - 1;
  }

  /// The number of a row of the brick among those of its halo.
  __device__ static uint32_t row_in_halo(uint32_t row) {
    return (row / kBrick + 1) * kHalo + row % kBrick + 1;
  }
  /// As moving_voxels of clamped_bits.cuh: the voxels of a row of the brick that are neither c nor
  /// -c together with their six neighbours across faces; bits. Where those hold one value the
  /// gradient is 0, and with it all that moves a voxel, whatever its neighbours across edges hold.
  /// `row`: the bits of the row among those of the halo.
  __device__ static uint32_t moving_in_row(const uint32_t* row, bool keeps_low) {
    constexpr int32_t kUp = kHalo;
    const uint32_t beside = row[-1] & row[1] & row[-kUp] & row[kUp];
    const uint32_t still = row[0] & (row[0] & beside) >> 1 & row[0] >> 2;
    const uint32_t low = keeps_low ? still / kIsLow : 0;
    return ~(still | low) & ((1U << kBrick) - 1);
  }

  uint32_t lane_, thread_;
};

}  // namespace larch::levelset::cuda
