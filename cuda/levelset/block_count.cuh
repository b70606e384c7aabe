// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cuda/levelset/field_view.cuh"

namespace larch::levelset::cuda {

/// What the warps of a block counted of one field since the last move_to. Squares are in pieces of
/// 16 bits, of which 65536 add up to 32.
struct BlockCount {
  static constexpr uint32_t kSquares = 4, kPieceBits = 16, kValues = kSquares + 64 / kPieceBits;
  uint32_t values[kValues];

  __device__ void add_brick() { atomicAdd(values, 1U); }
  /// Adds the counts of a warp, which calls it, but for its bricks.
  __device__ void add(const StepCount& of_warp, uint32_t lane) {
    uint32_t value = 0;
    if (lane == 1) value = of_warp.changed;
    if (lane == 2) value = of_warp.flipped;
    if (lane == 3) value = static_cast<uint32_t>(of_warp.grown);
    if (lane >= kSquares && lane < kValues) {
      value = static_cast<uint32_t>(of_warp.squares >> kPieceBits * (lane - kSquares)) &
              ((1U << kPieceBits) - 1);
    }
    if (value != 0) atomicAdd(values + lane, value);
  }
  /// Adds all of it to the counts of a step, and makes it 0. Called by one warp.
  __device__ void move_to(StepCount& total, uint32_t lane) {
    static_assert(offsetof(StepCount, changed) == 4 && offsetof(StepCount, flipped) == 8 &&
                  offsetof(StepCount, grown) == 12 && offsetof(StepCount, squares) == 16);
    if (lane >= kValues) return;
    const uint32_t value = atomicExch(values + lane, 0U);
    if (value == 0) return;
    if (lane >= kSquares) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&total.squares),
                static_cast<unsigned long long>(value) << kPieceBits * (lane - kSquares));
    } else {
      atomicAdd(reinterpret_cast<uint32_t*>(&total) + lane, value);
    }
  }
};

}  // namespace larch::levelset::cuda
