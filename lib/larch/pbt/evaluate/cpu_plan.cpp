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

void stack_walk(const CpuPlan& plan, const EvaluateJob& job, const Context& context) {
  const Grid index{job.size, {}, {}, {}};
  const auto walk_rows = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> elements(job.layouts.size());  // of a voxel, by channel
    const auto posterior = [&](const TreePlan& tree) {
      return tree::tree_posterior(tree.view, [&](int32_t weak) {
        const auto w = static_cast<size_t>(weak);
        const int64_t element = elements[static_cast<size_t>(tree.channels[w])];
        return features::linear_response(tree.rules[w].taps, tree.rules[w].n_tap,
                                         job.integral + element);
      });
    };
    for (int64_t i = begin * job.size.x; i < end * job.size.x; ++i) {
      uint64_t q60 = 0;
      if (job.roi == nullptr || job.roi[i] != 0) {
        const Vec3i at = index.voxel(i);
        for (size_t c = 0; c < elements.size(); ++c) elements[c] = job.layouts[c].base(at);
        if (plan.trees.size() == 1) {
          q60 = posterior(plan.trees[0]);
        } else {
          for (const TreePlan& tree : plan.trees) q60 += tree::ensemble_term(posterior(tree));
          q60 = tree::ensemble_mean_q60(q60, plan.trees.size());
        }
      }
      job.out[i] = tree::probability_float(q60);
    }
  };
  parallel_for(context.threads, int64_t{job.size.y} * job.size.z, 4, walk_rows);
}

}  // namespace larch::pbt::cpu
