// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/cpu_plan.h"

#include <algorithm>

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

}  // namespace larch::pbt::cpu
