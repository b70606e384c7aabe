// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "larch/levelset/brick_layout.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/step/step_lanes.h"

// What the trackers of the CPU share.

namespace larch::levelset::cpu {

// Which rows of a brick a step has to compute: those with a voxel whose stencil holds one that
// changed in the step before. It is the rule of the active set, applied to rows of eight voxels, so
// that the many rows of an active brick at which nothing happens cost nothing on the CPU.

/// Holds what changed in a brick in step `step`; nothing in other steps.
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

/// The current phi of the fields of a job, in a step.
struct JobPhi {
  explicit JobPhi(EvolveJob& job);

  std::vector<const float*> before{};  ///< by field
  std::vector<float*> after{};
  std::vector<std::vector<const float*>> others{};  ///< of each field
};

/// Where the voxels around a brick lie.
BrickHalo brick_halo(const BrickLayout& layout, int64_t brick);

/// Computes `rows` of brick `brick` of field `k`; adds to `change`.
void step_rows(const EvolveJob& job, const JobPhi& phi, size_t k, int64_t brick, RowMask rows,
               BrickChange& change);

/// Tells whether a brick belongs to the active sets when these are found anew (EvolveJob::active).
bool can_change(const BrickLayout& layout, const JobPhi& phi, int64_t brick);

/// Finds quickly most of the bricks for which can_change is false: those that are the same number
/// everywhere and in both buffers, as all bricks around them are.
class EvenBricks {
 public:
  EvenBricks(const BrickLayout& layout, const JobPhi& phi, int threads);

  /// True only where can_change is false.
  bool are_around(int64_t brick) const;

 private:
  bool have_value(const std::vector<float>& values, int64_t brick) const;

  const BrickLayout& layout_;
  std::vector<std::vector<float>> values_{};  ///< by field and brick; not a number: it is not even
};

/// Counts the voxels inside of each field.
void count_inside(EvolveJob& job, int threads);

/// Ends a job before its first step if EvolveJob::active is empty or all steps are made.
void stop_before_steps(EvolveJob& job);

/// Counts of a step that several threads add to.
struct SharedCount {
  std::atomic<uint32_t> changed{0}, flipped{0};
  std::atomic<int32_t> grown{0};

  void add(const BrickChange& change);
  /// The counts so far, which become 0.
  StepCount take(uint32_t active);
};

/// Ends a step: updates the progress, and appends the counts, one per field, to the histories.
void finish_step(EvolveJob& job, const std::vector<StepCount>& counts);

}  // namespace larch::levelset::cpu
