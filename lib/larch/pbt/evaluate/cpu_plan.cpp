// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/cpu_plan.h"

#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"

// Visits of one voxel after the other: all of a volume, or those of a region of interest.

namespace larch::pbt::cpu {

TreePlan::TreePlan(const CpuTrees& all, size_t t, const EvaluateJob& job,
                   std::span<const size_t> channel_level)
    : compiled(all.trees[t]), view(compiled.view()), rules(all.rules[t]) {
  view.thresholds = job.thresholds;
  taps.reserve(compiled.taps.size());
  for (const features::Tap& tap : compiled.taps) {
    taps.push_back(features::linear_tap(tap, job.layouts));
  }
  for (size_t w = 0; w < rules.size(); ++w) {
    const TapRange& range = compiled.ranges[w];
    const auto channel = static_cast<size_t>(range.channel);
    rules[w].taps = taps.data() + range.first;
    rules[w].integral = job.integral + job.layouts[channel].offset;
    channels.push_back(range.channel);
    levels.push_back(static_cast<int32_t>(channel_level[channel]));
  }
}

namespace {

/// Returns a weak classifier without its taps, which depend on the image. They are sorted by
/// weight.
features::cpu::VoteRule rule_of(const tree::FlatWeak& weak, std::span<features::Tap> taps) {
  std::ranges::stable_sort(taps, {}, &features::Tap::weight);
  bool is_odd = true;
  for (size_t t = 0; t < taps.size(); ++t) {
    is_odd = is_odd && taps[t].weight == -taps[taps.size() - 1 - t].weight;
  }
  features::cpu::VoteRule rule{nullptr,
                               static_cast<int32_t>(taps.size()),
                               2 * static_cast<uint32_t>(weak.alpha),
                               weak.codes,
                               weak.bins,
                               weak.mask,
                               is_odd};
  find_step(rule);
  return rule;
}

}  // namespace

std::shared_ptr<const WalkPlan> plan(const Model& /*model*/, std::vector<CompiledTree> trees,
                                     const Device& /*device*/) {
  auto made = std::make_shared<CpuTrees>();
  made->trees = std::move(trees);
  for (CompiledTree& tree : made->trees) {
    std::vector<features::cpu::VoteRule>& rules = made->rules.emplace_back();
    for (size_t w = 0; w < tree.weaks.size(); ++w) {
      const TapRange& range = tree.ranges[w];
      rules.push_back(
          rule_of(tree.weaks[w], std::span(tree.taps).subspan(range.first, range.count)));
    }
  }
  return made;
}

CpuPlan::CpuPlan(const EvaluateJob& job) {
  for (const image::IntegralLayout& layout : job.layouts) {
    const auto at = std::find(levels.begin(), levels.end(), layout.level);
    channel_level.push_back(static_cast<size_t>(at - levels.begin()));
    if (at == levels.end()) levels.push_back(layout.level);
  }
  const auto& all = static_cast<const CpuTrees&>(*job.plan);
  for (size_t t = 0; t < all.trees.size(); ++t) trees.emplace_back(all, t, job, channel_level);
}

void evaluate(const EvaluateJob& job, const Context& context) {
  (job.walk == Walk::kStack ? stack_walk : tile_walk)(CpuPlan(job), job, context);
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
    return tree::tree_posterior(tree.view, [&](int32_t weak) {
      return tree.response(static_cast<size_t>(weak), integral_, element);
    });
  }

  const CpuPlan& plan_;
  std::span<const image::IntegralLayout> layouts_;
  const uint32_t* integral_;
  std::vector<int64_t> elements_;  // of the voxel, by channel
};

}  // namespace

void stack_walk(const CpuPlan& plan, const EvaluateJob& job, const Context& context) {
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
