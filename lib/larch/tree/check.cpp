// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/check.h"

#include <algorithm>
#include <string>

#include "larch/core/error.h"
#include "larch/core/random_math.h"

namespace larch::tree {

void refuse_model(const std::string& what) {
  throw InputError("the model is damaged or was not written by Larch: " + what);
}

namespace {

[[noreturn]] void refuse(const std::string& what) {
  refuse_model(what);
}

/// `end`: one past the last node of its tree.
void check_node(const Ensemble& trees, size_t index, size_t end) {
  const Node& node = trees.nodes[index];
  const auto count = static_cast<int32_t>(end);
  const std::string where = "node " + std::to_string(index) + " ";
  if ((node.left < 0) != (node.right < 0)) refuse(where + "has one child");
  if (node.depth < 0 || node.depth > kMaximumDepth) refuse(where + "has depth beyond 32");
  for (const int32_t child : {node.left, node.right}) {
    if (child < 0) continue;
    if (child <= static_cast<int32_t>(index) || child >= count) {
      refuse(where + "has a child out of range");
    }
    const Node& below = trees.nodes[static_cast<size_t>(child)];
    if (below.depth != node.depth + 1) refuse(where + "and its child disagree on their depth");
    const uint64_t heap_index = 2 * node.heap_index + (child == node.right ? 1 : 0);
    if (below.heap_index != heap_index) refuse(where + "and its child disagree on their ids");
  }
  if (node.left >= 0 && node.left == node.right) refuse(where + "has one child twice");
  if (uint64_t{node.first_weak} + node.n_weak > trees.weaks.size()) {
    refuse(where + "has weak classifiers out of range");
  }
  if (!node.is_leaf() && node.n_weak == 0) refuse(where + "has children and no classifier");
  if (node.n_weak > learning::kMaximumWeaks) {
    refuse(where + "has more than " + std::to_string(learning::kMaximumWeaks) +
           " weak classifiers");
  }
  int64_t alpha_sum = 0;
  for (uint32_t t = 0; t < node.n_weak; ++t)
    alpha_sum += trees.weaks[node.first_weak + t].alpha_q20;
  if (alpha_sum > INT32_MAX) refuse(where + "has alphas beyond 32 bits");
}

/// Every node but the root is the child of exactly one node of its tree.
void check_tree(const Ensemble& trees, size_t tree) {
  const size_t root = trees.roots[tree], end = trees.end_of_tree(tree);
  std::vector<uint8_t> has_parent(end - root, 0);
  has_parent[0] = 1;
  for (size_t i = root; i < end; ++i) {
    check_node(trees, i, end);
    for (const int32_t child : {trees.nodes[i].left, trees.nodes[i].right}) {
      if (child < 0) continue;
      uint8_t& known = has_parent[static_cast<size_t>(child) - root];
      if (known != 0) refuse("node " + std::to_string(child) + " is the child of two nodes");
      known = 1;
    }
  }
  const auto orphan = std::find(has_parent.begin(), has_parent.end(), uint8_t{0});
  if (orphan != has_parent.end()) {
    const size_t node = root + static_cast<size_t>(orphan - has_parent.begin());
    refuse("node " + std::to_string(node) + " is the child of none");
  }
}

void check_history(const Ensemble& trees) {
  for (const NodeHistory& entry : trees.history) {
    if (entry.node < 0 || static_cast<size_t>(entry.node) >= trees.nodes.size()) {
      refuse("it has the history of a node that is not there");
    }
    const bool shares = std::all_of(entry.errors.begin(), entry.errors.end(),
                                    [](double error) { return error >= 0 && error <= 1; });
    if (!shares || entry.errors.size() > size_t{learning::kMaximumWeaks}) {
      refuse("the history of node " + std::to_string(entry.node) + " is not one of errors");
    }
  }
}

void check_roots(const Ensemble& trees) {
  if (trees.nodes.empty()) refuse("it has no node");
  if (trees.nodes.size() > INT32_MAX) refuse("it has more than 2^31 nodes");
  if (trees.roots.empty() || trees.roots[0] != 0) refuse("its first node is not a root");
  if (trees.trees() > kMaximumTrees)
    refuse("it has more than " + std::to_string(kMaximumTrees) + " trees");
  for (size_t tree = 0; tree < trees.trees(); ++tree) {
    const size_t root = trees.roots[tree];
    if (root >= trees.nodes.size() || (tree > 0 && root <= trees.roots[tree - 1])) {
      refuse("tree " + std::to_string(tree) + " begins at a node out of order");
    }
    if (trees.nodes[root].depth != 0 || trees.nodes[root].heap_index != 1) {
      refuse("the first node of tree " + std::to_string(tree) + " is not a root");
    }
  }
}

}  // namespace

void check_ensemble(const Ensemble& trees, size_t features) {
  check_roots(trees);
  if (trees.logistic.size() != kLogisticSteps + 1) refuse("its logistic table has a wrong length");
  if (!std::is_sorted(trees.logistic.begin(), trees.logistic.end()) ||
      trees.logistic.back() > kOneQ30) {
    refuse("its logistic table is not a probability");
  }
  if (!(trees.e1 > 0 && trees.e1 <= 0.5) || !(trees.e2 >= 0 && trees.e2 <= 1)) {
    refuse("its thresholds e1, e2 are out of range");
  }
  if (!(trees.smoothing >= 0 && trees.smoothing < 1e9)) refuse("its smoothing is out of range");
  if (!(trees.prior_value > 0 && trees.prior_value < 1)) refuse("its prior is out of range");
  for (const auto& weak : trees.weaks) {
    if (weak.feature >= features) refuse("a weak classifier's feature is out of range");
    if (weak.codes.hi < weak.codes.lo || weak.bins.shift > 2) refuse("a weak classifier's bins");
    if (weak.codes.multiplier != learning::make_code_map(weak.codes.lo, weak.codes.hi).multiplier) {
      refuse("a weak classifier's code map does not fit its range");
    }
    if (weak.alpha_q20 < 0 || weak.alpha_q20 > kMaximumAlphaQ20) {
      refuse("a weak classifier's alpha is out of range");
    }
  }
  for (size_t tree = 0; tree < trees.trees(); ++tree) check_tree(trees, tree);
  check_history(trees);
}

namespace {
constexpr uint64_t kStream = 0x73656c66;  // "self"
}  // namespace

std::vector<SelfTest> make_self_tests(const Ensemble& trees, size_t features, uint64_t seed,
                                      size_t count) {
  std::vector<learning::CodeMap> range(features);
  for (const WeakClassifier& weak : trees.weaks) range[weak.feature] = weak.codes;
  const std::vector<uint32_t> q = node_probabilities(trees);
  std::vector<SelfTest> tests(count);
  for (size_t t = 0; t < count; ++t) {
    for (size_t f = 0; f < range.size(); ++f) {
      const uint32_t span = static_cast<uint32_t>(range[f].hi) - static_cast<uint32_t>(range[f].lo);
      const uint32_t step = hash_below(seed, kStream, t * range.size() + f, span);
      tests[t].responses.push_back(static_cast<int32_t>(static_cast<uint32_t>(range[f].lo) + step));
    }
    tests[t].probability_q32 = probability_q32(posterior_q60(trees, {}, q, tests[t].responses));
  }
  return tests;
}

void run_self_tests(const Ensemble& trees, size_t features) {
  const std::vector<uint32_t> q = node_probabilities(trees);
  for (size_t t = 0; t < trees.self_tests.size(); ++t) {
    const SelfTest& test = trees.self_tests[t];
    if (test.responses.size() != features) {
      throw InputError("self-test vector " + std::to_string(t) + " has a wrong length");
    }
    const uint32_t p = probability_q32(posterior_q60(trees, {}, q, test.responses));
    if (p != test.probability_q32) {
      throw InputError("self-test vector " + std::to_string(t) + " gives " + std::to_string(p) +
                       " instead of " + std::to_string(test.probability_q32) +
                       ": the model file is damaged or this build computes wrongly");
    }
  }
}

}  // namespace larch::tree
