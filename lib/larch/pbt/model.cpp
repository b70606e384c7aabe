// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/model.h"

#include <algorithm>
#include <cmath>

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
}

}  // namespace larch::pbt
