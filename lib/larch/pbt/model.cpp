// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "larch/core/error.h"
#include "larch/tree/check.h"

namespace larch::pbt {

Vec3i Model::reach_along() const {
  return features::reach_along(features);
}

int Model::reach() const {
  int farthest = 0;
  for (const auto& feature : features) farthest = std::max(farthest, features::reach(feature));
  return farthest;
}

void check_model(const Model& model) {
  check_images(model.space, model.channels, model.components);
  if (model.info.class_value < 1 || model.info.class_value > kMaximumClassValue) {
    tree::refuse_model("the label value of its class is not from 1 to " +
                       std::to_string(kMaximumClassValue));
  }
  check_threshold(model.info);
  const std::vector<int64_t> bounds = channel_bounds(model.space, model.channels);
  for (const auto& feature : model.features) {
    check_feature(features::boxes_of(feature), bounds);
  }
  tree::check_ensemble(model, model.features.size());
  experts::check_experts(model.experts, 1);
}

namespace {

/// Places of features in a model, by their place in the pool; features are added when they are met.
class FeatureTable {
 public:
  explicit FeatureTable(Model& model) : model_(model) {
    for (uint32_t f = 0; f < model.features.size(); ++f) place_[model.features[f].pool_index] = f;
  }

  uint32_t place(const features::HaarFeature& feature) {
    const auto added = static_cast<uint32_t>(model_.features.size());
    const auto [entry, is_new] = place_.emplace(feature.pool_index, added);
    if (is_new) model_.features.push_back(feature);
    return entry->second;
  }

 private:
  Model& model_;
  std::unordered_map<uint32_t, uint32_t> place_;
};

/// Appends the nodes [begin, end) of `from`, a whole tree, to those of `to`.
void append_nodes(Model& to, const Model& from, size_t begin, size_t end) {
  FeatureTable features(to);
  const auto shift = static_cast<int32_t>(to.nodes.size()) - static_cast<int32_t>(begin);
  for (size_t n = begin; n < end; ++n) {
    Node node = from.nodes[n];
    if (!node.is_leaf()) {
      node.left += shift;
      node.right += shift;
    }
    node.first_weak = node.n_weak > 0 ? static_cast<uint32_t>(to.weaks.size()) : 0;
    for (uint32_t w = 0; w < node.n_weak; ++w) {
      WeakClassifier weak = from.weaks[from.nodes[n].first_weak + w];
      weak.feature = features.place(from.features[weak.feature]);
      to.weaks.push_back(weak);
    }
    to.nodes.push_back(node);
  }
  for (NodeHistory entry : from.history) {
    const auto node = static_cast<size_t>(entry.node);
    if (node < begin || node >= end) continue;
    entry.node += shift;
    to.history.push_back(entry);
  }
}

/// Returns what all trees of a model share.
Model without_nodes(Model model) {
  model.features.clear();
  model.weaks.clear();
  model.nodes.clear();
  model.history.clear();
  model.self_tests.clear();
  model.roots = {0};
  return model;
}

}  // namespace

void append_tree(Model& ensemble, const Model& tree) {
  if (ensemble.nodes.empty()) {
    ensemble = without_nodes(tree);
  } else {
    ensemble.roots.push_back(static_cast<uint32_t>(ensemble.nodes.size()));
    ensemble.self_tests.clear();
  }
  append_nodes(ensemble, tree, 0, tree.nodes.size());
}

Model extract_tree(const Model& ensemble, size_t which) {
  Model tree = without_nodes(ensemble);
  append_nodes(tree, ensemble, ensemble.roots.at(which), ensemble.end_of_tree(which));
  return tree;
}

Model model_of(const tree::Ensemble& grown, const Model& start,
               const std::vector<features::HaarFeature>& pool) {
  Model model = start;
  static_cast<tree::Ensemble&>(model) = grown;
  FeatureTable features(model);
  for (WeakClassifier& weak : model.weaks) weak.feature = features.place(pool[weak.feature]);
  return model;
}

tree::Ensemble grown_of(const Model& model) {
  tree::Ensemble grown = model;
  for (WeakClassifier& weak : grown.weaks) weak.feature = model.features[weak.feature].pool_index;
  return grown;
}

}  // namespace larch::pbt
