// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/levelset/brick_layout.h"
#include "larch/levelset/step/step_lanes.h"

// Which rows of a brick a step has to compute: those with a voxel whose stencil holds one that
// changed in the step before. It is the rule of the active set, applied to rows of eight voxels, so
// that the many rows of an active brick at which nothing happens cost nothing on the CPU.
namespace larch::levelset::cpu {

/// What changed in a brick in step `step`; nothing in other steps.
struct RowChanges {
  RowMask rows = 0, first = 0, last = 0;  ///< as in BrickChange
  int64_t step = -1;
};

/// Rows of brick `brick` that have to be computed after step `step`.
RowMask rows_to_compute(const BrickLayout& layout, const std::vector<RowChanges>& changes,
                        int64_t step, int64_t brick);

/// Bricks around the one in which something changed that have to be active in the next step, as
/// bits (z * 3 + y) * 3 + x of their offsets from -1 to 1: bit 13 is the brick itself. A neighbour
/// across an edge is one where both faces have changed, which may be one too many.
uint32_t bricks_to_wake(const RowChanges& changes);

}  // namespace larch::levelset::cpu
