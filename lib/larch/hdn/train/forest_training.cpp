// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>

#include "larch/core/error.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pbt/train/ensemble.h"
#include "larch/tree/train/grow_forest.h"

namespace larch::hdn {
namespace {

/// Turns thresholds of codes into those of the values that `maps` make the codes of.
void decode_thresholds(tree::Forest& forest, std::span<const uint32_t> columns,
                       std::span<const learning::CodeMap> maps) {
  for (tree::ForestNode& node : forest.nodes) {
    if (node.is_leaf()) continue;
    const learning::CodeMap& map = maps[columns[node.feature]];
    node.low = tree::first_value(map, static_cast<uint32_t>(node.low));
    if (node.high == INT32_MAX) continue;
    node.high = tree::first_value(map, static_cast<uint32_t>(node.high) + 1) - 1;
  }
}

}  // namespace

StageForest grow_forest(const StageTask& task, const StageColumns& from, size_t fold,
                        const Context& context) {
  const tree::ForestConfig& config = task.shared.forest;
  const tree::Samples& samples = from.samples;
  const std::vector<uint16_t> label(samples.positive.begin(), samples.positive.end());
  std::vector<uint64_t> cases;                        // that are learned from and have samples
  std::vector<size_t> place(label.size(), SIZE_MAX);  // of each sample's case among them
  std::array<uint64_t, 2> counts{};
  for (size_t i = 0; i < label.size(); ++i) {
    const uint64_t c = samples.id[i] >> 40;
    if (!task.is_learned(c, fold)) continue;
    if (cases.empty() || cases.back() != c) cases.push_back(c);
    place[i] = cases.size() - 1;
    ++counts[label[i]];
  }
  if (cases.empty()) {
    throw InputError("structure '" + task.model.structures[task.structure].name +
                     "': the cases that a fold learns from give no sample; give more cases, or set "
                     "hdn/folds to 1");
  }
  const std::vector<uint32_t> weights = tree::class_weights(config, counts);
  const tree::RoundColumns all = tree::all_columns({std::shared_ptr<void>(), &from.source},
                                                   {from.maps.begin(), from.maps.end()});
  std::vector<tree::ForestTree> trees;
  for (size_t t = 0; t < static_cast<size_t>(config.trees); ++t) {
    const uint64_t seed = tree::tree_seed(context.seed, t);
    std::vector<uint32_t> drawn(cases.size(), 1), times;
    if (config.bootstrap.value_or(true)) drawn = tree::bootstrap_counts(cases.size(), seed);
    for (const size_t p : place) times.push_back(p < cases.size() ? drawn[p] : 0);
    tree::ForestTask grow{config, 2, label, times, weights, seed};
    grow.draw = [&](uint32_t round) {
      return tree::draw_round(all, config.round_features, seed, round);
    };
    trees.push_back(tree::grow_tree(grow, context).tree);
  }
  StageForest out;
  std::map<uint32_t, uint32_t> numbers;
  out.forest = tree::forest_of(trees, 2, weights, [&](size_t, const tree::PickedColumn& pick) {
    const auto [entry, is_new] =
        numbers.emplace(pick.column, static_cast<uint32_t>(out.columns.size()));
    if (is_new) out.columns.push_back(pick.column);
    return entry->second;
  });
  if (!from.codes_of.empty()) decode_thresholds(out.forest, out.columns, from.codes_of);
  out.forest.self_tests = tree::make_self_tests(out.forest, context.seed);
  return out;
}

}  // namespace larch::hdn
