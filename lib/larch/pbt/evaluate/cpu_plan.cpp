// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/cpu_plan.h"

#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"

// Visits of one voxel after the other: all of a volume, or those of a region of interest.

namespace larch::pbt::cpu {

TreePlan::TreePlan(const CompiledTree& compiled, std::span<const image::IntegralLayout> layouts,
                   std::span<const size_t> channel_level)
    : flat(compiled) {
  for (const features::Tap& tap : compiled.taps) {
    taps.push_back(features::linear_tap(tap, layouts));
  }
  for (size_t w = 0; w < compiled.weaks.size(); ++w) {
    const tree::FlatWeak& weak = compiled.weaks[w];
    const TapRange& range = compiled.ranges[w];
    channels.push_back(range.channel);
    levels.push_back(static_cast<int32_t>(channel_level[static_cast<size_t>(range.channel)]));
    rules.push_back({taps.data() + range.first, static_cast<int32_t>(range.count),
                     2 * static_cast<uint32_t>(weak.alpha), weak.codes, weak.bins, weak.mask});
  }
}

std::shared_ptr<const WalkPlan> plan(const PlanJob& job, const Context& /*context*/) {
  auto made = std::make_shared<CpuPlan>();
  made->walk = job.walk;
  for (const image::IntegralLayout& layout : job.layouts) {
    const auto at = std::find(made->levels.begin(), made->levels.end(), layout.level);
    made->channel_level.push_back(static_cast<size_t>(at - made->levels.begin()));
    if (at == made->levels.end()) made->levels.push_back(layout.level);
  }
  made->trees.reserve(job.trees.size());
  for (const CompiledTree& tree : job.trees)
    made->trees.emplace_back(tree, job.layouts, made->channel_level);
  return made;
}

void evaluate(const EvaluateJob& job, const Context& context) {
  if (plan_of(job.plan).walk == Walk::kStack) {
    stack_walk(job, context);
  } else {
    tile_walk(job, context);
  }
}

namespace {

/// A voxel that is led through the trees of a plan.
class VoxelVisit {
 public:
  VoxelVisit(const CpuPlan& plan, std::span<const image::IntegralLayout> layouts,
             const uint32_t* integral)
      : plan_(plan), layouts_(layouts), integral_(integral), elements_(layouts.size()) {}

  /// The mean of the trees, Q60.
  uint64_t posterior(const Vec3i& at) {
    for (size_t c = 0; c < layouts_.size(); ++c) elements_[c] = layouts_[c].base(at);
    if (plan_.trees.size() == 1) return posterior(plan_.trees[0]);
    uint64_t sum = 0;
    for (const TreePlan& tree : plan_.trees) sum += tree::ensemble_term(posterior(tree));
    return tree::ensemble_mean_q60(sum, plan_.trees.size());
  }

 private:
  uint64_t posterior(const TreePlan& tree) const {
    const auto element = [&](size_t channel) { return elements_[channel]; };
    return tree::tree_posterior(tree.flat.view(), [&](int32_t weak) {
      return tree.response(static_cast<size_t>(weak), integral_, element);
    });
  }

  const CpuPlan& plan_;
  std::span<const image::IntegralLayout> layouts_;
  const uint32_t* integral_;
  std::vector<int64_t> elements_;  // of the voxel, by channel
};

}  // namespace

void stack_walk(const EvaluateJob& job, const Context& context) {
  const CpuPlan& plan = plan_of(job.plan);
  const Grid index{job.size, {}, {}, {}};
  parallel_for(context.threads, static_cast<int64_t>(job.size.y) * job.size.z, 4,
               [&](int64_t begin, int64_t end) {
                 VoxelVisit visit(plan, job.layouts, job.integral);
                 for (int64_t i = begin * job.size.x; i < end * job.size.x; ++i) {
                   const bool wanted = job.roi == nullptr || job.roi[i] != 0;
                   const uint64_t q60 = wanted ? visit.posterior(index.voxel(i)) : 0;
                   job.out[i] = tree::probability_float(q60);
                 }
               });
}

}  // namespace larch::pbt::cpu
