// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/levelset/evolve/brick_steps.h"
#include "larch/levelset/evolve/evolve.h"

namespace larch::levelset::cpu {
namespace {

/// Whether nothing of a group can change.
bool is_empty(const EvolveJob& job, const FieldRange& group) {
  const BrickLayout& layout = job.fields[group.first]->layout;
  const GroupPhi phi(job, group);
  for (int64_t brick = 0; brick < layout.bricks(); ++brick) {
    if (can_change(layout, phi, brick)) return false;
  }
  return true;
}

void evolve_group(EvolveJob& job, const FieldRange& group, int64_t steps, const Context& context) {
  const BrickLayout layout = job.fields[group.first]->layout;
  const bool known = is_known(job, group);
  if (!known) count_inside(job, group, context.threads);
  const Stop stop =
      stop_before(job.progress[group.first], !known && is_empty(job, group), job.stops);
  stop_group(job, group, stop);
  for (size_t f = group.first; f < group.last; ++f) job.active[f] = {{}, true};
  const int64_t bricks = layout.bricks();
  const auto voxels = static_cast<uint32_t>(
      std::min<int64_t>(int64_t{layout.size.x} * layout.size.y * layout.size.z,
                        std::numeric_limits<uint32_t>::max()));
  std::vector<SharedCount> shared(group.last - group.first);
  std::vector<StepCount> counts(shared.size());
  for (int64_t t = 0; t < steps && job.progress[group.first].stop == Stop::kNone; ++t) {
    if (context.stop_requested()) return;
    const GroupPhi phi(job, group);
    for (size_t k = 0; k < shared.size(); ++k) {
      parallel_for(context.threads, bricks, fair_grain(context.threads, bricks, 64),
                   [&](int64_t begin, int64_t end) {
                     BrickChange change;
                     for (int64_t brick = begin; brick < end; ++brick) {
                       step_rows(job, group, phi, k, brick, kAllRows, change);
                     }
                     shared[k].add(change);
                   });
      counts[k] = shared[k].take(voxels);
    }
    finish_step(job, group, counts);
  }
}

}  // namespace

void evolve_dense(EvolveJob& job, int64_t steps, const Context& context) {
  for_moving_groups(job, context, [&](const FieldRange& group, const Context& of_one) {
    evolve_group(job, group, steps, of_one);
  });
}

}  // namespace larch::levelset::cpu
