// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/model.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/tree/check.h"

namespace larch::pbt {

int Model::reach() const {
  int farthest = 0;
  for (const auto& feature : features) farthest = std::max(farthest, features::reach(feature));
  return farthest;
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
  tree.thresholds = tree::make_thresholds(rule.e1 < 0 ? model.e1 : rule.e1, model.e2, rule.hard);
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

namespace {

void check_space(const image::ModelSpace& space) {
  for (int axis = 0; axis < 3; ++axis) {
    if (!(space.spacing_mm[axis] > 0 && space.spacing_mm[axis] < 1e6)) {
      tree::refuse_model("its spacing is not a positive number of millimetres");
    }
  }
  const image::IntensityRule& rule = space.intensity;
  if (rule.steps < 1 || rule.steps > 16383 || !(rule.headroom >= 0 && rule.headroom <= 0.5) ||
      !(rule.low_percentile >= 0 && rule.low_percentile <= 100) ||
      !(rule.high_percentile >= 0 && rule.high_percentile <= 100) ||
      !std::isfinite(rule.window_low) || !std::isfinite(rule.window_high)) {
    tree::refuse_model("its intensity rule is out of range");
  }
}

void check_feature(const Model& model, const features::HaarFeature& feature) {
  if (feature.channel >= model.channels.size())
    tree::refuse_model("a feature's channel is out of range");
  if (feature.cuboid_count < 1 || feature.cuboid_count > 4)
    tree::refuse_model("a feature has no cuboid");
  for (int c = 0; c < feature.cuboid_count; ++c) {
    const auto& box = feature.cuboids[static_cast<size_t>(c)];
    for (int axis = 0; axis < 3; ++axis) {
      if (box.lo[axis] < -128 || box.hi[axis] > 128 || box.lo[axis] >= box.hi[axis]) {
        tree::refuse_model("a feature's cuboid is empty or too far away");
      }
    }
    if (box.weight < -127 || box.weight > 127)
      tree::refuse_model("a feature's weight is beyond 8 bits");
  }
  const auto range = image::value_range(model.space.intensity);
  const int64_t largest =
      image::channel_bound(model.channels[feature.channel].kind, range[0], range[1]);
  if (features::value_bound(feature, largest) >= int64_t{1} << 31) {
    tree::refuse_model("a feature's value does not fit 32 bits");
  }
}

}  // namespace

void check_model(const Model& model) {
  check_space(model.space);
  if (model.channels.empty() || model.channels.size() > 64) tree::refuse_model("it has no channel");
  for (const auto& channel : model.channels) {
    if (channel.level < 0 || channel.level > 8)
      tree::refuse_model("a channel's level is out of range");
    if (static_cast<int>(channel.kind) > static_cast<int>(image::ChannelKind::kDerivativeZ)) {
      tree::refuse_model("a channel is of an unknown kind");
    }
  }
  for (const auto& feature : model.features) check_feature(model, feature);
  tree::check_ensemble(model, model.features.size());
}

}  // namespace larch::pbt
