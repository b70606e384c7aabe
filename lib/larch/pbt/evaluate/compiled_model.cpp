// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/compiled_model.h"

#include <algorithm>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<std::shared_ptr<const WalkPlan>(const Model&, std::vector<CompiledTree>,
                                                   const Device&)>
    kPlan{"pbt::plan", cpu::plan, LARCH_CUDA_FN(cuda::plan)};

}  // namespace

Walk chosen_walk(Walk wanted, int depth, double share, const Device& device) {
  if (wanted != Walk::kAuto) return wanted;
  constexpr double kSparse = 0.1;
  const bool queue = device.is_cuda() && (depth > kTileLevels || share < kSparse);
  return queue ? Walk::kQueue : Walk::kTile;
}

std::vector<CompiledTree> compile(const Model& model) {
  std::vector<CompiledTree> trees;
  for (tree::FlatTree& flat : tree::flatten(model, {})) {
    CompiledTree& tree = trees.emplace_back(CompiledTree{std::move(flat), {}, {}});
    for (const tree::FlatWeak& weak : tree.weaks) {
      const std::vector<features::Tap> taps = features::corner_taps(model.features[weak.feature]);
      tree.ranges.push_back({static_cast<uint32_t>(tree.taps.size()),
                             static_cast<uint32_t>(taps.size()),
                             int32_t{model.features[weak.feature].channel}});
      tree.taps.insert(tree.taps.end(), taps.begin(), taps.end());
    }
  }
  return trees;
}

ResidentModel::ResidentModel(Model given, const Device& on) : model(std::move(given)), device(on) {
  std::vector<CompiledTree> trees = compile(model);
  if (trees.empty()) throw UsageError("pbt::ResidentModel: the model has no tree");
  for (const CompiledTree& tree : trees) features::widen(boxes, tree.taps);
  plan = kPlan(device, model, std::move(trees), device);
}

}  // namespace larch::pbt
