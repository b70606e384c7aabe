// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/step/step_lanes.h"

// What the trackers of the CPU share.
namespace larch::levelset::cpu {

/// The current phi of the fields of a group, in a step.
struct GroupPhi {
  GroupPhi(const EvolveJob& job, const FieldRange& group);

  std::vector<const float*> before{};  ///< by field of the group
  std::vector<float*> after{};
  std::vector<std::vector<const float*>> others{};  ///< of each field
};

/// Where the voxels around a brick lie.
BrickHalo brick_halo(const BrickLayout& layout, int64_t brick);

/// Computes `rows` of brick `brick` of field group.first + k; adds to `change`.
void step_rows(const EvolveJob& job, const FieldRange& group, const GroupPhi& phi, size_t k,
               int64_t brick, RowMask rows, BrickChange& change);

/// Whether a brick belongs to the active set of its group when that is found anew (ActiveSet).
bool can_change(const BrickLayout& layout, const GroupPhi& phi, int64_t brick);

/// Finds quickly most of the bricks for which can_change is false: those that are the same number
/// everywhere and in both buffers, as all bricks around them are.
class EvenBricks {
 public:
  EvenBricks(const BrickLayout& layout, const GroupPhi& phi, int threads);

  /// True only where can_change is false.
  bool are_around(int64_t brick) const;

 private:
  bool have_value(const std::vector<float>& values, int64_t brick) const;

  const BrickLayout& layout_;
  std::vector<std::vector<float>> values_{};  ///< by field and brick; not a number: it is not even
};

/// Whether the active sets of all fields of a group are known.
bool is_known(const EvolveJob& job, const FieldRange& group);

/// Counts the voxels inside of the fields of a group whose active set is not known.
void count_inside(EvolveJob& job, const FieldRange& group, int threads);

/// Moves a group with the threads of a context.
using GroupEvolution = std::function<void(const FieldRange& group, const Context& context)>;
/// Calls it for every group that has not stopped, for several at a time: small ones are moved
/// faster side by side, by one thread each, than one after the other by all.
void for_moving_groups(EvolveJob& job, const Context& context, const GroupEvolution& evolve_group);

/// Counts of a step that several threads add to.
struct SharedCount {
  std::atomic<uint32_t> changed{0}, flipped{0};
  std::atomic<int32_t> grown{0};

  void add(const BrickChange& change);
  /// The counts so far, which become 0.
  StepCount take(uint32_t active);
};

}  // namespace larch::levelset::cpu
