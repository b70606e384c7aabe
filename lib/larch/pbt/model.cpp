// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/model.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"

namespace larch::pbt {

const char* to_string(NodeReason reason) {
  switch (reason) {
    case NodeReason::kGrown:
      return "grown";
    case NodeReason::kMaxDepth:
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

int Model::depth() const {
  int deepest = 0;
  for (const Node& node : nodes) deepest = std::max(deepest, node.depth);
  return deepest;
}

int Model::reach() const {
  int farthest = 0;
  for (const auto& feature : features) farthest = std::max(farthest, features::reach(feature));
  return farthest;
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

namespace {

/// Factors that turn the masses of both classes into those of the prior that the model refers to.
struct PriorScale {
  double positive = 1, negative = 1;
};

PriorScale prior_scale(const Model& model, const Node& root) {
  const auto positive = static_cast<double>(root.mass_positive);
  const auto negative = static_cast<double>(root.mass_negative);
  if (model.prior == PriorKind::kTrain || positive <= 0 || negative <= 0) return {};
  // pi / rho and (1 - pi) / (1 - rho), without 1 - rho, which cancels when one class is rare.
  const double pi = model.prior == PriorKind::kHalf ? 0.5 : model.prior_value;
  return {pi * (positive + negative) / positive, (1 - pi) * (positive + negative) / negative};
}

}  // namespace

std::vector<uint32_t> node_probabilities(const Model& model) {
  PriorScale scale;
  const double k = model.smoothing * static_cast<double>(model.mean_mass);
  std::vector<double> q(model.nodes.size(), 0.5);
  std::vector<double> of_parent(model.nodes.size(), 0.5);
  std::vector<uint32_t> fixed(model.nodes.size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const Node& node = model.nodes[i];
    if (std::binary_search(model.roots.begin(), model.roots.end(), i)) {
      scale = prior_scale(model, node);
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

TreeView CompiledTree::view() const {
  TreeView v;
  v.nodes = nodes.data();
  v.weaks = weaks.data();
  v.taps = taps.data();
  v.logistic = logistic.data();
  v.rest = rest.data();
  v.thresholds = thresholds;
  v.node_count = static_cast<int32_t>(nodes.size());
  v.depth = depth;
  v.early_rejection = early_rejection ? 1 : 0;
  return v;
}

namespace {

WeakRecord compile_weak(const WeakClassifier& weak, const features::HaarFeature& feature,
                        const image::IntegralLayout& layout,
                        std::vector<features::LinearTap>& taps) {
  WeakRecord record;
  record.first_tap = static_cast<int32_t>(taps.size());
  record.channel = feature.channel;
  for (const features::Tap& tap : features::corner_taps(feature)) {
    const int64_t offset = layout.linear_offset(tap.dx, tap.dy, tap.dz);
    if (std::abs(offset) > INT32_MAX) {
      throw MemoryError("a slice of the integral volume is too large for 32-bit offsets");
    }
    taps.push_back({static_cast<int32_t>(offset), tap.weight});
  }
  record.n_tap = static_cast<uint16_t>(taps.size() - static_cast<size_t>(record.first_tap));
  record.codes = weak.codes;
  record.bins = weak.bins;
  record.mask = weak.mask;
  record.alpha = weak.alpha_q20;
  return record;
}

CompiledTree compile_tree(const Model& model, size_t which, std::span<const uint32_t> q,
                          std::span<const image::IntegralLayout> layouts,
                          const EvaluationRule& rule) {
  CompiledTree tree;
  tree.thresholds = make_thresholds(rule.e1 < 0 ? model.e1 : rule.e1, model.e2, rule.hard);
  tree.logistic = model.logistic;
  tree.early_rejection = rule.early_rejection;
  const auto root = static_cast<int32_t>(model.roots[which]);
  for (size_t i = model.roots[which]; i < model.end_of_tree(which); ++i) {
    const Node& node = model.nodes[i];
    tree.depth = std::max(tree.depth, node.depth);
    NodeRecord record;
    if (!node.is_leaf()) {
      record.left = node.left - root;
      record.right = node.right - root;
    }
    record.first_weak = static_cast<int32_t>(tree.weaks.size());
    record.n_weak = node.is_leaf() ? 0 : static_cast<int32_t>(node.n_weak);
    record.q = q[i];
    for (uint32_t t = 0; t < static_cast<uint32_t>(record.n_weak); ++t) {
      const WeakClassifier& weak = model.weaks[node.first_weak + t];
      const auto& feature = model.features[weak.feature];
      tree.weaks.push_back(compile_weak(weak, feature, layouts[feature.channel], tree.taps));
      record.alpha_sum += weak.alpha_q20;
    }
    int32_t rest = record.alpha_sum;
    for (int32_t t = 0; t < record.n_weak; ++t) {
      rest -= tree.weaks[static_cast<size_t>(record.first_weak) + static_cast<size_t>(t)].alpha;
      tree.rest.push_back(rest);
    }
    tree.nodes.push_back(record);
  }
  return tree;
}

/// posterior_q60 of the tree that begins at node `root`.
uint64_t tree_posterior_q60(const Model& model, int32_t root, const Thresholds& t,
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
    const Node& node = model.nodes[static_cast<size_t>(entry.node)];
    if (node.is_leaf()) {
      total += static_cast<uint64_t>(entry.weight) * q_q30[static_cast<size_t>(entry.node)];
      continue;
    }
    int32_t h = 0;
    for (uint32_t w = node.first_weak; w < node.first_weak + node.n_weak; ++w) {
      const WeakClassifier& weak = model.weaks[w];
      const bool vote = weak_vote(weak.codes, weak.bins, weak.mask, responses[weak.feature]);
      h += vote ? weak.alpha_q20 : -weak.alpha_q20;
    }
    const Split s = split_weight(entry.weight, h, t, model.logistic.data());
    total += static_cast<uint64_t>(s.stop_left) * q_q30[static_cast<size_t>(node.left)] +
             static_cast<uint64_t>(s.stop_right) * q_q30[static_cast<size_t>(node.right)];
    if (s.descend_right > 0) stack.push_back({node.right, s.descend_right});
    if (s.descend_left > 0) stack.push_back({node.left, s.descend_left});
  }
  return total;
}

}  // namespace

int CompiledModel::depth() const {
  int deepest = 0;
  for (const CompiledTree& tree : trees) deepest = std::max(deepest, tree.depth);
  return deepest;
}

CompiledModel compile(const Model& model, std::span<const image::IntegralLayout> layouts,
                      const EvaluationRule& rule) {
  const std::vector<uint32_t> q = node_probabilities(model);
  CompiledModel compiled;
  compiled.layouts.assign(layouts.begin(), layouts.end());
  for (size_t tree = 0; tree < model.trees(); ++tree) {
    compiled.trees.push_back(compile_tree(model, tree, q, layouts, rule));
  }
  return compiled;
}

uint64_t posterior_q60(const Model& model, const EvaluationRule& rule,
                       std::span<const uint32_t> q_q30, std::span<const int32_t> responses) {
  const Thresholds t = make_thresholds(rule.e1 < 0 ? model.e1 : rule.e1, model.e2, rule.hard);
  if (model.trees() == 1) return tree_posterior_q60(model, 0, t, q_q30, responses);
  uint64_t sum = 0;
  for (const uint32_t root : model.roots) {
    sum +=
        ensemble_term(tree_posterior_q60(model, static_cast<int32_t>(root), t, q_q30, responses));
  }
  return ensemble_mean_q60(sum, model.trees());
}

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InputError("the model is damaged or was not written by Larch: " + what);
}

/// `end`: one past the last node of its tree.
void check_node(const Model& model, size_t index, size_t end) {
  const Node& node = model.nodes[index];
  const auto count = static_cast<int32_t>(end);
  const std::string where = "node " + std::to_string(index) + " ";
  if ((node.left < 0) != (node.right < 0)) refuse(where + "has one child");
  if (node.depth < 0 || node.depth > kMaxDepth) refuse(where + "has depth beyond 32");
  for (const int32_t child : {node.left, node.right}) {
    if (child < 0) continue;
    if (child <= static_cast<int32_t>(index) || child >= count) {
      refuse(where + "has a child out of range");
    }
    const Node& below = model.nodes[static_cast<size_t>(child)];
    if (below.depth != node.depth + 1) refuse(where + "and its child disagree on their depth");
    const uint64_t heap_index = 2 * node.heap_index + (child == node.right ? 1 : 0);
    if (below.heap_index != heap_index) refuse(where + "and its child disagree on their ids");
  }
  if (node.left >= 0 && node.left == node.right) refuse(where + "has one child twice");
  if (uint64_t{node.first_weak} + node.n_weak > model.weaks.size()) {
    refuse(where + "has weak classifiers out of range");
  }
  if (!node.is_leaf() && node.n_weak == 0) refuse(where + "has children and no classifier");
  if (node.n_weak > 256) refuse(where + "has more than 256 weak classifiers");
  int64_t alpha_sum = 0;
  for (uint32_t t = 0; t < node.n_weak; ++t)
    alpha_sum += model.weaks[node.first_weak + t].alpha_q20;
  if (alpha_sum > INT32_MAX) refuse(where + "has alphas beyond 32 bits");
}

void check_space(const image::ModelSpace& space) {
  for (int axis = 0; axis < 3; ++axis) {
    if (!(space.spacing_mm[axis] > 0 && space.spacing_mm[axis] < 1e6)) {
      refuse("its spacing is not a positive number of millimetres");
    }
  }
  const image::IntensityRule& rule = space.intensity;
  if (rule.steps < 1 || rule.steps > 16383 || !(rule.headroom >= 0 && rule.headroom <= 0.5) ||
      !(rule.low_percentile >= 0 && rule.low_percentile <= 100) ||
      !(rule.high_percentile >= 0 && rule.high_percentile <= 100) ||
      !std::isfinite(rule.window_low) || !std::isfinite(rule.window_high)) {
    refuse("its intensity rule is out of range");
  }
}

void check_feature(const Model& model, const features::HaarFeature& feature) {
  if (feature.channel >= model.channels.size()) refuse("a feature's channel is out of range");
  if (feature.cuboid_count < 1 || feature.cuboid_count > 4) refuse("a feature has no cuboid");
  for (int c = 0; c < feature.cuboid_count; ++c) {
    const auto& box = feature.cuboids[static_cast<size_t>(c)];
    for (int axis = 0; axis < 3; ++axis) {
      if (box.lo[axis] < -128 || box.hi[axis] > 128 || box.lo[axis] >= box.hi[axis]) {
        refuse("a feature's cuboid is empty or too far away");
      }
    }
    if (box.weight < -127 || box.weight > 127) refuse("a feature's weight is beyond 8 bits");
  }
  const auto range = image::value_range(model.space.intensity);
  const int64_t largest =
      image::channel_bound(model.channels[feature.channel].kind, range[0], range[1]);
  if (features::value_bound(feature, largest) >= int64_t{1} << 31) {
    refuse("a feature's value does not fit 32 bits");
  }
}

/// Every node but the root is the child of exactly one node of its tree.
void check_tree(const Model& model, size_t tree) {
  const size_t root = model.roots[tree], end = model.end_of_tree(tree);
  std::vector<uint8_t> has_parent(end - root, 0);
  has_parent[0] = 1;
  for (size_t i = root; i < end; ++i) {
    check_node(model, i, end);
    for (const int32_t child : {model.nodes[i].left, model.nodes[i].right}) {
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

void check_roots(const Model& model) {
  if (model.nodes.empty()) refuse("it has no node");
  if (model.nodes.size() > INT32_MAX) refuse("it has more than 2^31 nodes");
  if (model.roots.empty() || model.roots[0] != 0) refuse("its first node is not a root");
  if (model.trees() > kMaxTrees) refuse("it has more than " + std::to_string(kMaxTrees) + " trees");
  for (size_t tree = 0; tree < model.trees(); ++tree) {
    const size_t root = model.roots[tree];
    if (root >= model.nodes.size() || (tree > 0 && root <= model.roots[tree - 1])) {
      refuse("tree " + std::to_string(tree) + " begins at a node out of order");
    }
    if (model.nodes[root].depth != 0 || model.nodes[root].heap_index != 1) {
      refuse("the first node of tree " + std::to_string(tree) + " is not a root");
    }
  }
}

}  // namespace

void check_model(const Model& model) {
  check_roots(model);
  if (model.logistic.size() != kLogisticSteps + 1) refuse("its logistic table has a wrong length");
  if (!std::is_sorted(model.logistic.begin(), model.logistic.end()) ||
      model.logistic.back() > kOneQ30) {
    refuse("its logistic table is not a probability");
  }
  if (!(model.e1 > 0 && model.e1 <= 0.5) || !(model.e2 >= 0 && model.e2 <= 1)) {
    refuse("its thresholds e1, e2 are out of range");
  }
  if (!(model.smoothing >= 0 && model.smoothing < 1e9)) refuse("its smoothing is out of range");
  if (!(model.prior_value > 0 && model.prior_value < 1)) refuse("its prior is out of range");
  check_space(model.space);
  if (model.channels.empty() || model.channels.size() > 64) refuse("it has no channel");
  for (const auto& channel : model.channels) {
    if (channel.level < 0 || channel.level > 8) refuse("a channel's level is out of range");
    if (static_cast<int>(channel.kind) > static_cast<int>(image::ChannelKind::kDerivativeZ)) {
      refuse("a channel is of an unknown kind");
    }
  }
  for (const auto& feature : model.features) check_feature(model, feature);
  for (const auto& weak : model.weaks) {
    if (weak.feature >= model.features.size())
      refuse("a weak classifier's feature is out of range");
    if (weak.codes.hi < weak.codes.lo || weak.bins.shift > 2) refuse("a weak classifier's bins");
    if (weak.codes.multiplier != make_code_map(weak.codes.lo, weak.codes.hi).multiplier) {
      refuse("a weak classifier's code map does not fit its range");
    }
    if (weak.alpha_q20 < 0 || weak.alpha_q20 > kMaxAlphaQ20) {
      refuse("a weak classifier's alpha is out of range");
    }
  }
  for (size_t tree = 0; tree < model.trees(); ++tree) check_tree(model, tree);
}

}  // namespace larch::pbt
