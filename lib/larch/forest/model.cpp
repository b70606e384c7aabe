// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/forest/model.h"

#include <algorithm>

#include "larch/tree/check.h"

namespace larch::forest {

Vec3i Model::reach_along() const {
  return features::reach_along(features);
}

void check_model(const Model& model) {
  voxels::check_images(model.space, model.channels, model.components);
  voxels::check_threshold(model.info);
  const std::vector<int64_t> bounds = voxels::channel_bounds(model.space, model.channels);
  for (const features::BoxFeature& feature : model.features) {
    voxels::check_feature(feature, bounds);
  }
  tree::check_forest(model, model.features.size());
  if (model.class_table.size() != model.classes) {
    tree::refuse_model("its table has other classes than its leaves");
  }
  for (size_t c = 1; c < model.class_table.size(); ++c) {
    if (model.class_table[c].value <= model.class_table[c - 1].value) {
      tree::refuse_model("its classes are not in the order of their values");
    }
  }
  if (model.background < -1 || model.background >= static_cast<int32_t>(model.classes)) {
    tree::refuse_model("its background is none of its classes");
  }
  experts::check_experts(model.experts, model.background < 0 ? 0 : model.classes - 1);
}

std::vector<double> depth_accuracies(const voxels::ModelInfo& info) {
  std::vector<double> accuracies;
  while (const auto value =
             info.measured("depth " + std::to_string(accuracies.size()) + " accuracy")) {
    accuracies.push_back(*value);
  }
  return accuracies;
}

voxels::SlabNeeds needs_of(const Model& model) {
  constexpr int64_t kBytesPerNode = 320;  // a node and its taps, as opened and for an image
  voxels::SlabNeeds needs{model.channels, model.padding, model.reach_along(),
                          voxels::halo_of(model.features, model.channels)};
  needs.model_bytes = kBytesPerNode * static_cast<int64_t>(model.nodes.size()) +
                      8 * static_cast<int64_t>(model.counts.size());
  needs.gpu_voxel_bytes = 4 * static_cast<int64_t>(model.trees());
  needs.components = std::max<int64_t>(1, static_cast<int64_t>(model.components.size()));
  return needs;
}

}  // namespace larch::forest
