// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/ensemble.h"

#include <algorithm>
#include <cmath>

namespace larch::tree {

const char* to_string(NodeReason reason) {
  switch (reason) {
    case NodeReason::kGrown:
      return "grown";
    case NodeReason::kMaximumDepth:
      return "maximum depth";
    case NodeReason::kPure:
      return "one class";
    case NodeReason::kFewSamples:
      return "few samples";
    case NodeReason::kFewOfOneClass:
      return "few samples of one class";
    case NodeReason::kNoWeakClassifier:
      return "no weak classifier";
    case NodeReason::kNothingSeparated:
      return "nothing separated";
    case NodeReason::kEmpty:
      return "no sample";
    case NodeReason::kPruned:
      return "pruned";
  }
  return "unknown";
}

int Ensemble::depth() const {
  int deepest = 0;
  for (const Node& node : nodes) deepest = std::max(deepest, node.depth);
  return deepest;
}

std::vector<uint32_t> make_logistic_table() {
  std::vector<uint32_t> table(kLogisticSteps + 1);
  for (int i = 0; i <= kLogisticSteps; ++i) {
    const double z = -16.0 + i / 128.0;
    table[static_cast<size_t>(i)] =
        static_cast<uint32_t>(std::llround(1073741824.0 / (1.0 + std::exp(-z))));
  }
  return table;
}

Thresholds make_thresholds(double e1, double e2, bool hard) {
  constexpr double kUnit = 1 << kAlphaBits;
  Thresholds t;
  t.hard = hard ? 1 : 0;
  t.t1 = static_cast<int32_t>(std::llround(0.5 * std::log((1 - e1) / e1) * kUnit));
  t.t2 = e2 >= 0.5
             ? INT32_MAX
             : static_cast<int32_t>(std::llround(0.5 * std::log((0.5 + e2) / (0.5 - e2)) * kUnit));
  return t;
}

Thresholds thresholds_of(const Ensemble& trees, const EvaluationRule& rule) {
  return make_thresholds(rule.e1 < 0 ? trees.e1 : rule.e1, rule.e2 < 0 ? trees.e2 : rule.e2,
                         rule.hard);
}

namespace {

/// Factors that turn the masses of both classes into those of the prior that the model refers to.
struct PriorScale {
  double positive = 1, negative = 1;
};

PriorScale prior_scale(const Ensemble& trees, const Node& root) {
  const auto positive = static_cast<double>(root.mass_positive);
  const auto negative = static_cast<double>(root.mass_negative);
  if (trees.prior == PriorKind::kTrain || positive <= 0 || negative <= 0) return {};
  // pi / rho and (1 - pi) / (1 - rho), without 1 - rho, which cancels when one class is rare.
  const double pi = trees.prior == PriorKind::kHalf ? 0.5 : trees.prior_value;
  return {pi * (positive + negative) / positive, (1 - pi) * (positive + negative) / negative};
}

}  // namespace

std::vector<uint32_t> node_probabilities(const Ensemble& trees) {
  PriorScale scale;
  const double k = trees.smoothing * static_cast<double>(trees.mean_mass);
  std::vector<double> q(trees.nodes.size(), 0.5);
  std::vector<double> of_parent(trees.nodes.size(), 0.5);
  std::vector<uint32_t> fixed(trees.nodes.size());
  for (size_t i = 0; i < trees.nodes.size(); ++i) {
    const Node& node = trees.nodes[i];
    if (std::binary_search(trees.roots.begin(), trees.roots.end(), i)) {
      scale = prior_scale(trees, node);
    }
    const double p = scale.positive * static_cast<double>(node.mass_positive);
    const double n = scale.negative * static_cast<double>(node.mass_negative);
    q[i] = p + n + k > 0 ? (p + k * of_parent[i]) / (p + n + k) : of_parent[i];
    fixed[i] = static_cast<uint32_t>(std::llround(q[i] * kOneQ30));
    for (const int32_t child : {node.left, node.right}) {
      if (child >= 0) of_parent[static_cast<size_t>(child)] = q[i];
    }
  }
  return fixed;
}

namespace {

/// posterior_q60 of the tree that begins at node `root`.
uint64_t tree_posterior_q60(const Ensemble& trees, int32_t root, const Thresholds& t,
                            std::span<const uint32_t> q_q30, std::span<const int32_t> responses) {
  struct Entry {
    int32_t node;
    uint32_t weight;
  };
  std::vector<Entry> stack{{root, kOneQ30}};
  uint64_t total = 0;
  while (!stack.empty()) {
    const Entry entry = stack.back();
    stack.pop_back();
    const Node& node = trees.nodes[static_cast<size_t>(entry.node)];
    if (node.is_leaf()) {
      total += static_cast<uint64_t>(entry.weight) * q_q30[static_cast<size_t>(entry.node)];
      continue;
    }
    int32_t h = 0;
    for (uint32_t w = node.first_weak; w < node.first_weak + node.n_weak; ++w) {
      const WeakClassifier& weak = trees.weaks[w];
      const bool vote = weak_vote(weak.codes, weak.bins, weak.mask, responses[weak.feature]);
      h += vote ? weak.alpha_q20 : -weak.alpha_q20;
    }
    const Split s = split_weight(entry.weight, h, t, trees.logistic.data());
    total += static_cast<uint64_t>(s.stop_left) * q_q30[static_cast<size_t>(node.left)] +
             static_cast<uint64_t>(s.stop_right) * q_q30[static_cast<size_t>(node.right)];
    if (s.descend_right > 0) stack.push_back({node.right, s.descend_right});
    if (s.descend_left > 0) stack.push_back({node.left, s.descend_left});
  }
  return total;
}

}  // namespace

uint64_t posterior_q60(const Ensemble& trees, const EvaluationRule& rule,
                       std::span<const uint32_t> q_q30, std::span<const int32_t> responses) {
  const Thresholds t = thresholds_of(trees, rule);
  if (trees.trees() == 1) return tree_posterior_q60(trees, 0, t, q_q30, responses);
  uint64_t sum = 0;
  for (const uint32_t root : trees.roots) {
    sum +=
        ensemble_term(tree_posterior_q60(trees, static_cast<int32_t>(root), t, q_q30, responses));
  }
  return ensemble_mean_q60(sum, trees.trees());
}

}  // namespace larch::tree
