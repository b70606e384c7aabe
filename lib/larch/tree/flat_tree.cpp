// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/flat_tree.h"

#include <algorithm>
#include <span>

namespace larch::tree {
namespace {

void add_weaks(const Ensemble& trees, const Node& node, FlatTree& flat, FlatNode& out) {
  out.first = static_cast<int32_t>(flat.weaks.size());
  out.n_weak = static_cast<int32_t>(node.n_weak);
  for (uint32_t t = 0; t < node.n_weak; ++t) {
    const WeakClassifier& weak = trees.weaks[node.first_weak + t];
    flat.weaks.push_back({weak.codes, weak.bins, weak.alpha_q20, weak.mask, weak.feature, 0});
    out.alpha_sum += weak.alpha_q20;
  }
  int32_t rest = out.alpha_sum;
  for (uint32_t t = 0; t < node.n_weak; ++t) {
    FlatWeak& weak = flat.weaks[static_cast<size_t>(out.first) + t];
    weak.rest = rest -= weak.alpha;
  }
}

FlatTree flatten_tree(const Ensemble& trees, size_t which, std::span<const uint32_t> q,
                      const EvaluationRule& rule) {
  FlatTree flat;
  flat.thresholds = thresholds_of(trees, rule);
  flat.logistic = trees.logistic;
  const size_t root = trees.roots[which];
  for (size_t i = root; i < trees.end_of_tree(which); ++i) {
    const Node& node = trees.nodes[i];
    flat.depth = std::max(flat.depth, node.depth);
    FlatNode out;
    out.q_left = out.q_right = q[i];
    if (!node.is_leaf()) {
      const auto left = static_cast<size_t>(node.left), right = static_cast<size_t>(node.right);
      out.left = trees.nodes[left].is_leaf() ? -1 : static_cast<int32_t>(left - root);
      out.right = trees.nodes[right].is_leaf() ? -1 : static_cast<int32_t>(right - root);
      out.q_left = q[left];
      out.q_right = q[right];
      add_weaks(trees, node, flat, out);
    }
    flat.nodes.push_back(out);
  }
  return flat;
}

}  // namespace

TreeView FlatTree::view() const {
  TreeView v;
  v.nodes = nodes.data();
  v.weaks = weaks.data();
  v.logistic = logistic.data();
  v.thresholds = thresholds;
  return v;
}

std::vector<FlatTree> flatten(const Ensemble& trees, const EvaluationRule& rule) {
  const std::vector<uint32_t> q = node_probabilities(trees);
  std::vector<FlatTree> flat;
  for (size_t t = 0; t < trees.trees(); ++t) flat.push_back(flatten_tree(trees, t, q, rule));
  return flat;
}

ResidentTrees make_resident(const std::vector<FlatTree>& trees, const Device& device) {
  ResidentTrees resident;
  std::vector<TreeView> views;
  for (const FlatTree& tree : trees) {
    resident.nodes.emplace_back(device, tree.nodes);
    resident.weaks.emplace_back(device, tree.weaks);
    resident.logistic.emplace_back(device, tree.logistic);
    TreeView view = tree.view();
    view.nodes = resident.nodes.back().data();
    view.weaks = resident.weaks.back().data();
    view.logistic = resident.logistic.back().data();
    views.push_back(view);
  }
  resident.views = {device, views};
  return resident;
}

}  // namespace larch::tree
