// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/evolve/brick_steps.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/evolve/voxel_lists.h"
#include "larch/levelset/evolve/voxel_math.h"

namespace larch::levelset::cpu {
namespace {

/// A group while it moves.
struct GroupVoxels {
  EvolveJob& job;
  const FieldRange group;
  const BrickLayout layout;
  const int threads;
  std::vector<std::vector<uint32_t>> lists{};    ///< active voxels by field of the group
  std::vector<std::vector<uint32_t>> changed{};  ///< of them, those that changed
  std::vector<VoxelSpeeds> speeds{};
  std::deque<SharedCount> counts{};
};

VoxelSpeeds speeds_of(const LevelsetField& field) {
  VoxelSpeeds speeds;
  speeds.speed = field.speed.data();
  if (!field.edge_stop.empty()) speeds.edge_stop = field.edge_stop.data();
  for (int axis = 0; axis < 3; ++axis) {
    if (!field.advection[axis].empty()) speeds.advection[axis] = field.advection[axis].data();
  }
  return speeds;
}

/// The smallest phi of a field's group without it; null where it is alone.
const float* least_other(const std::vector<const float*>& others, int64_t offset, float& least) {
  if (others.empty()) return nullptr;
  least = others[0][offset];
  for (const float* other : others) least = smaller(least, other[offset]);
  return &least;
}

/// Whether a voxel belongs to the active set of its group when that is found anew (ActiveSet).
bool is_active(const BrickLayout& layout, const GroupPhi& phi, const Vec3i& at) {
  const int64_t offset = layout.offset(at);
  for (size_t k = 0; k < phi.before.size(); ++k) {
    const Stencil<float> p = read_stencil(layout, phi.before[k], at);
    float other = 0;
    const float* least = least_other(phi.others[k], offset, other);
    if (!is_constant(p) || phi.after[k][offset] != p.centre ||
        (least != nullptr && overlap(p.centre, *least))) {
      return true;
    }
  }
  return false;
}

/// The lists of a group's fields from where an earlier call ended, or found anew.
void begin(GroupVoxels& g) {
  if (is_known(g.job, g.group)) {
    for (size_t k = 0; k < g.lists.size(); ++k) {
      g.lists[k] = g.job.active[g.group.first + k].items;
    }
    return;
  }
  count_inside(g.job, g.group, g.threads);
  const GroupPhi phi(g.job, g.group);
  std::vector<uint32_t> found;
  std::mutex lock;
  parallel_for(g.threads, g.layout.bricks(), 64, [&](int64_t first, int64_t last) {
    std::vector<uint32_t> here;
    for (int64_t offset = first * kBrickVoxels; offset < last * kBrickVoxels; ++offset) {
      const Vec3i at = voxel_at(g.layout, offset);
      if (contains(g.layout, at) && is_active(g.layout, phi, at)) {
        here.push_back(static_cast<uint32_t>(offset));
      }
    }
    const std::lock_guard guard(lock);
    found.insert(found.end(), here.begin(), here.end());
  });
  std::fill(g.lists.begin(), g.lists.end(), found);
}

/// Computes the active voxels of field `k` and lists those that change.
StepCount step_field(GroupVoxels& g, const GroupPhi& phi, size_t k) {
  const std::vector<uint32_t>& list = g.lists[k];
  const Step step = g.job.fields[g.group.first + k]->step;
  const auto count = static_cast<int64_t>(list.size());
  std::vector<uint32_t>& changed = g.changed[k];
  changed.assign(list.size(), kNoVoxel);
  parallel_for(g.threads, count, fair_grain(g.threads, count, 4096),
               [&](int64_t first, int64_t last) {
                 BrickChange sum;
                 for (int64_t i = first; i < last; ++i) {
                   const uint32_t offset = list[static_cast<size_t>(i)];
                   const Stencil<float> p =
                       read_stencil(g.layout, phi.before[k], voxel_at(g.layout, offset));
                   float other = 0;
                   const float* least = least_other(phi.others[k], offset, other);
                   const float after = voxel_after(p, g.speeds[k], offset, least, step);
                   phi.after[k][offset] = after;
                   if (after == p.centre) continue;
                   changed[static_cast<size_t>(i)] = offset;
                   ++sum.changed;
                   if ((after < 0) != (p.centre < 0)) {
                     ++sum.flipped;
                     sum.grown += after < 0 ? 1 : -1;
                   }
                   sum.squares += squared_change(p.centre, after);
                 }
                 g.counts[k].add(sum);
               });
  return g.counts[k].take(static_cast<uint32_t>(count));
}

void evolve_group(EvolveJob& job, const FieldRange& group, int64_t steps, const Context& context) {
  const BrickLayout layout = job.fields[group.first]->layout;
  if (layout.stored_voxels() >= kNoVoxel) {
    throw UsageError("levelset.tracker voxel: an image of " +
                     std::to_string(layout.stored_voxels()) +
                     " voxels, and lists can have 4294967294; take levelset.tracker brick");
  }
  const size_t fields = group.last - group.first;
  GroupVoxels g{job, group, layout, context.threads};
  g.lists.resize(fields);
  g.changed.resize(fields);
  g.counts.resize(fields);
  for (size_t k = 0; k < fields; ++k) g.speeds.push_back(speeds_of(*job.fields[group.first + k]));
  begin(g);
  const bool is_empty = std::all_of(g.lists.begin(), g.lists.end(),
                                    [](const std::vector<uint32_t>& list) { return list.empty(); });
  const FieldProgress& progress = job.progress[group.first];
  stop_group(job, group, stop_before(progress, is_empty, job.stops));
  VoxelLists next(layout, job.config->duplicates, context.threads);
  std::vector<StepCount> counts(fields);
  for (int64_t t = 0; t < steps && progress.stop == Stop::kNone && !context.stop_requested(); ++t) {
    const GroupPhi phi(job, group);
    for (size_t k = 0; k < fields; ++k) counts[k] = step_field(g, phi, k);
    for (size_t k = 0; k < fields; ++k) next.generate(g.changed, k, g.lists[k]);
    finish_step(job, group, counts);
  }
  const bool goes_on = progress.stop == Stop::kNone;
  for (size_t k = 0; k < fields; ++k) {
    std::sort(g.lists[k].begin(), g.lists[k].end());
    job.active[group.first + k] = goes_on ? ActiveSet{std::move(g.lists[k]), true} : ActiveSet{};
  }
}

}  // namespace

void evolve_voxels(EvolveJob& job, int64_t steps, const Context& context) {
  for_moving_groups(job, context, [&](const FieldRange& group, const Context& of_one) {
    evolve_group(job, group, steps, of_one);
  });
}

}  // namespace larch::levelset::cpu
