// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "larch/levelset/brick_layout.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset::cpu {

/// Rows of a brick, which lie along x: row (y, z) is bit z * 8 + y.
using RowMask = uint64_t;
constexpr RowMask kAllRows = ~RowMask{0};

/// Where the voxels around a brick lie in memory, relative to its first voxel; beyond the image,
/// those at its border.
struct BrickHalo {
  int64_t y[kHalo] = {};  ///< of rows y - 1, from -1 to 8
  int64_t z[kHalo] = {};
  int64_t left = 0;           ///< of the voxel before a row, relative to the row
  int64_t right = 0;          ///< of the voxel after the row's last one in the image
  int32_t width = kBrick;     ///< voxels of a row that lie in the image
  RowMask inside = kAllRows;  ///< rows that lie in the image
};

/// A brick in a step. Pointers are to its first voxel, unless they say something else.
struct BrickStep {
  const Step* step = nullptr;
  BrickHalo halo{};
  RowMask rows = 0;  ///< to compute, all of them in the image
  const float* before = nullptr;
  float* after = nullptr;
  const int16_t* speed = nullptr;
  const int16_t* advection[3] = {};      ///< null: 0 everywhere
  const float* const* others = nullptr;  ///< phi, from the image's first voxel, of the job's
                                         ///< other fields before the step
  int32_t other_count = 0;
  int64_t begin = 0;  ///< of the brick in the image
};

/// Holds what a step did to a brick, or to several.
struct BrickChange {
  RowMask rows = 0;   ///< with a voxel that changed
  RowMask first = 0;  ///< whose voxel at x = 0 changed
  RowMask last = 0;   ///< whose voxel at x = 7 changed
  uint32_t changed = 0, flipped = 0;
  int32_t grown = 0;
};

/// The step of a brick, eight voxels at a time, once for each instruction set; all give the same
/// bits.
struct StepLanes {
  const char* name;
  /// Computes the rows of a brick; adds to `change`.
  void (*step_brick)(const BrickStep& brick, BrickChange& change);
};

/// The fastest set that this machine runs.
const StepLanes& step_lanes();

/// Every set that this machine runs, the portable one first.
std::span<const StepLanes> all_step_lanes();

/// Implementations of step_lanes.
extern const StepLanes kPortableStepLanes;
extern const StepLanes kAvx2StepLanes;  ///< only where the compiler targets x86-64

}  // namespace larch::levelset::cpu
