// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/column_trees.h"

#include <cmath>

#include "larch/core/random_math.h"
#include "larch/learning/stored_codes.h"
#include "larch/tree/check.h"
#include "larch/tree/train/samples.h"

namespace larch::tree {
namespace {

constexpr uint64_t kFoldStream = 0x666f6c64;
/// Models on stored columns have many classifiers, with a feature for each weak one. With more
/// vectors these would be most of their files.
constexpr size_t kSelfTests = 8;

void append_tree(ColumnTrees& out, Ensemble grown, std::span<const learning::CodeMap> maps) {
  Ensemble& all = out.trees;
  const auto nodes = static_cast<int32_t>(all.nodes.size());
  const auto weaks = static_cast<uint32_t>(all.weaks.size());
  for (WeakClassifier& weak : grown.weaks) {
    weak.codes = maps[weak.feature];
    const uint32_t column = weak.feature;
    weak.feature = static_cast<uint32_t>(out.columns.size());
    out.columns.push_back(column);
  }
  for (Node& node : grown.nodes) {
    if (!node.is_leaf()) {
      node.left += nodes;
      node.right += nodes;
    }
    if (node.n_weak > 0) node.first_weak += weaks;
  }
  if (nodes == 0) {
    all = std::move(grown);
    all.history.clear();
    return;
  }
  all.roots.push_back(static_cast<uint32_t>(nodes));
  all.weaks.insert(all.weaks.end(), grown.weaks.begin(), grown.weaks.end());
  all.nodes.insert(all.nodes.end(), grown.nodes.begin(), grown.nodes.end());
}

}  // namespace

ColumnTrees grow_on_columns(const ColumnTask& task, const std::vector<uint32_t>& times,
                            const Context& context) {
  ColumnTrees out;
  const Ensemble start = start_tree(task.config, task.samples);
  const std::vector<learning::CodeMap> of_codes = learning::maps_of_codes(task.maps);
  const Samples none;
  Context quiet = context;
  quiet.progress_sink = {};
  for (int t = 0; t < task.trees; ++t) {
    GrowTask grow{
        task.config, task.validation, {task.codes, task.samples}, {task.codes, none}, of_codes};
    grow.seed = hash64(context.seed, kFoldStream, static_cast<uint64_t>(t));
    grow.times = times;
    grow.samples_at_once = task.samples_at_once;
    if (task.trees > 1 || task.feature_share < 1) {
      const double wanted = std::ceil(task.feature_share * static_cast<double>(task.maps.size()));
      grow.columns = draw_columns({}, task.maps.size(), static_cast<size_t>(wanted), grow.seed, 0);
    }
    append_tree(out, tree::grow(start, grow, quiet).tree, task.maps);
  }
  out.trees.self_tests = make_self_tests(out.trees, out.columns.size(), context.seed, kSelfTests);
  return out;
}

}  // namespace larch::tree
