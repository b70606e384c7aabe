// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/compiled_model.h"

#include <algorithm>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<std::shared_ptr<const WalkPlan>(const PlanJob&, const Context&)> kPlan{
    "pbt::plan", cpu::plan, LARCH_CUDA_FN(cuda::plan)};

tree::EvaluationRule rule_of(const EvaluateConfig& config) {
  return {config.e1 > 0 ? config.e1 : -1, config.hard, config.e2.value_or(-1)};
}

CompiledTree with_taps(tree::FlatTree flat, const Model& model,
                       std::span<const image::IntegralLayout> layouts) {
  CompiledTree tree{std::move(flat), {}, {}};
  for (const tree::FlatWeak& weak : tree.weaks) {
    const std::vector<features::Tap> taps = features::corner_taps(model.features[weak.feature]);
    if (!features::within_padding(taps, layouts)) {
      throw UsageError("pbt::compile: feature " + std::to_string(weak.feature) +
                       " reads another channel than the image has, or beyond its padding");
    }
    tree.ranges.push_back({static_cast<uint32_t>(tree.taps.size()),
                           static_cast<uint32_t>(taps.size()),
                           int32_t{model.features[weak.feature].channel}});
    tree.taps.insert(tree.taps.end(), taps.begin(), taps.end());
  }
  return tree;
}

}  // namespace

Walk chosen_walk(Walk wanted, int depth, double share, const Device& device) {
  if (wanted != Walk::kAuto) return wanted;
  constexpr double kSparse = 0.1;
  const bool queue = device.is_cuda() && (depth > kTileLevels || share < kSparse);
  return queue ? Walk::kQueue : Walk::kTile;
}

CompiledModel compile(const Model& model, const image::IntegralSet& set,
                      const EvaluateConfig& config, const Context& context, double share) {
  CompiledModel compiled;
  compiled.walk = chosen_walk(config.walk, model.depth(), share, context.device);
  for (tree::FlatTree& flat : tree::flatten(model, rule_of(config))) {
    compiled.trees.push_back(with_taps(std::move(flat), model, set.layouts));
  }
  if (compiled.trees.empty()) throw UsageError("pbt::compile: the model has no tree");
  compiled.plan =
      kPlan(context.device, PlanJob{compiled.trees, set.layouts, compiled.walk}, context);
  return compiled;
}

}  // namespace larch::pbt
