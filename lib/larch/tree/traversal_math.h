// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/learning/weak_math.h"
#include "larch/tree/tree_math.h"

// An item (a voxel, a pose, a row of a table) on its way through a tree. Three things are apart:
// what is visited (the caller's loop over items), the node test, which says how a node splits the
// weight of an item, and the leaf, which takes what ends. All are inlined functors.
namespace larch::tree {

/// A node as traversals read it. What its children stand for is written here, so that no leaf but
/// the root is ever visited. That one has no votes, and its own probability on both sides: however
/// the weight of an item is split, all of it ends with that probability.
struct FlatNode {
  int32_t first = 0;                 ///< its first weak classifier, for the node test
  int32_t n_weak = 0;                ///< 0: a leaf
  int32_t left = -1, right = -1;     ///< -1: a leaf
  uint32_t q_left = 0, q_right = 0;  ///< empirical probabilities of the children, Q30
  int32_t alpha_sum = 0;             ///< A: H = strong_value(sum(alpha of the votes +1), A)
  int32_t unused = 0;
};

/// A weak classifier as traversals read it.
struct FlatWeak {
  learning::CodeMap codes;
  learning::BinMap bins;
  int32_t alpha = 0;  ///< Q20
  uint64_t mask = 0;
  uint32_t feature = 0;
  int32_t rest = 0;  ///< sum of the alphas that follow it in its node
};

/// A flattened tree; the pointers are of one device.
struct TreeView {
  const FlatNode* nodes = nullptr;
  const FlatWeak* weaks = nullptr;
  const uint32_t* logistic = nullptr;
  Thresholds thresholds;
  /// The weak classifiers as lanes of a CPU read them, where a response has votes(tree, node) for
  /// the sum of a node's alphas, each with the sign of its vote; otherwise null.
  const int32_t* columns = nullptr;
  int64_t column_length = 0;
};

/// Holds what of the weight of an item goes on to the inner children of a node, and what ends at
/// its children; the four add up to the weight.
struct Shares {
  uint32_t left = 0, right = 0;
  uint32_t ended_left = 0, ended_right = 0;
};

/// Weight that descends to a leaf ends there.
LARCH_HD Shares shares_of(const FlatNode& node, const Split& split) {
  Shares shares{split.descend_left, split.descend_right, split.stop_left, split.stop_right};
  if (node.left < 0) {
    shares.ended_left += shares.left;
    shares.left = 0;
  }
  if (node.right < 0) {
    shares.ended_right += shares.right;
    shares.right = 0;
  }
  return shares;
}

/// One thread evaluates an item. On a GPU several lanes of a warp may do it together: each takes
/// every kCount-th weak classifier of a node, and all get the sum of the votes, which are integers.
struct OneLane {
  static constexpr int32_t kCount = 1;
  LARCH_HD int32_t index() const { return 0; }
  LARCH_HD int32_t sum(int32_t votes) const { return votes; }
};

/// The node test of boosting trees: a strong classifier and Algorithm 1 of Birkbeck, Sofka, Zhou
/// 2011. `value(w)` gives the feature value of weak classifier w, an int32_t. One lane stops
/// when the outcome is certain, which does not change it.
template <class Value, class Lanes>
struct StrongTest {
  const TreeView& tree;
  const Value& value;
  const Lanes& lanes;

  LARCH_HD Split operator()(const FlatNode& node, uint32_t weight) const {
    if constexpr (Lanes::kCount == 1 && requires { value.response.votes(tree, node); }) {
      if (tree.columns != nullptr) {
        return split_weight(weight, value.response.votes(tree, node), tree.thresholds,
                            tree.logistic);
      }
    }
    int32_t h = 0;
    for (int32_t w = node.first + lanes.index(); w < node.first + node.n_weak; w += Lanes::kCount) {
      const FlatWeak& weak = tree.weaks[w];
      h += learning::weak_vote(weak.codes, weak.bins, weak.mask, value(w)) ? weak.alpha
                                                                           : -weak.alpha;
      if (Lanes::kCount == 1 && is_certain(h, weak.rest, tree.thresholds)) {
        h = certain_value(h, weak.rest, tree.thresholds);
        break;
      }
    }
    return split_weight(weight, lanes.sum(h), tree.thresholds, tree.logistic);
  }
};

/// The leaf of a posterior: the empirical probabilities of where an item's weight ends, mixed by
/// that weight.
struct ProbabilityLeaf {
  uint64_t total = 0;  ///< Q60

  LARCH_HD void operator()(const FlatNode& node, const Shares& shares) {
    total += mixed(node, shares);
  }
  LARCH_HD static uint64_t mixed(const FlatNode& node, const Shares& shares) {
    return static_cast<uint64_t>(shares.ended_left) * node.q_left +
           static_cast<uint64_t>(shares.ended_right) * node.q_right;
  }
};

/// Leads one item through a tree, left before right, with a stack of what waits: Birkbeck, Sofka,
/// Zhou 2011, Algorithm 2. `test(node, weight)` gives a Split, `leaf(node, shares)` takes what ends
/// at the children of a node.
template <class NodeTest, class Leaf>
LARCH_HD void traverse(const FlatNode* nodes, const NodeTest& test, Leaf& leaf) {
  int32_t waiting[kMaximumDepth + 2];
  uint32_t weights[kMaximumDepth + 2];
  int height = 0;
  int32_t index = 0;
  uint32_t weight = kOneQ30;
  while (true) {
    const FlatNode node = nodes[index];
    const Shares shares = shares_of(node, test(node, weight));
    leaf(node, shares);
    if (shares.right > 0) {
      waiting[height] = node.right;
      weights[height++] = shares.right;
    }
    if (shares.left > 0) {
      index = node.left;
      weight = shares.left;
      continue;
    }
    if (height == 0) return;
    index = waiting[--height];
    weight = weights[height];
  }
}

/// Returns the posterior of an item, Q60. `value(w)`: the feature value of weak classifier w.
template <class Value, class Lanes = OneLane>
LARCH_HD uint64_t tree_posterior(const TreeView& tree, const Value& value,
                                 const Lanes& lanes = {}) {
  ProbabilityLeaf leaf;
  traverse(tree.nodes, StrongTest<Value, Lanes>{tree, value, lanes}, leaf);
  return leaf.total;
}

/// The values of an item for the weak classifiers of a tree, from a response functor.
template <class Response>
struct ItemValue {
  const FlatWeak* weaks;
  const Response& response;
  size_t item;

  LARCH_HD int32_t operator()(int32_t w) const { return response(weaks[w].feature, item); }
};

/// The posterior of an item, the mean of the trees, Q60. `response(feature, item)`: the value of a
/// feature of the weak classifiers.
template <class Response, class Lanes = OneLane>
LARCH_HD uint64_t ensemble_posterior(const TreeView* trees, size_t count, const Response& response,
                                     size_t item, const Lanes& lanes = {}) {
  const auto of = [&](const TreeView& tree) {
    return tree_posterior(tree, ItemValue<Response>{tree.weaks, response, item}, lanes);
  };
  if (count <= 1) return of(trees[0]);
  uint64_t sum = 0;
  for (size_t t = 0; t < count; ++t) sum += ensemble_term(of(trees[t]));
  return ensemble_mean_q60(sum, count);
}

}  // namespace larch::tree
