// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "larch/features/box.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/tree/forest.h"
#include "larch/voxels/model.h"
#include "larch/voxels/slabs.h"

namespace larch::forest {

/// A class: its value in label maps, any whole number, and its name.
struct ForestClass {
  int32_t value = 0;
  std::string name;
};

/// A decision forest on boxes of the channels of an image, with all that evaluation needs.
struct Model : tree::Forest, voxels::ImageModel {
  std::vector<ForestClass> class_table;  ///< ascending by value
  int32_t background = -1;               ///< index of the class around the structures; -1: none is
  std::vector<features::BoxFeature> features;  ///< that the nodes refer to

  /// Farthest reach of its features along each axis.
  Vec3i reach_along() const;
};

/// Checks every invariant that evaluation relies on. Throws InputError that says which one failed.
void check_model(const Model& model);

/// Returns the share of held-out voxels that the forest cut off at each depth labels right, from
/// depth 0 on.
std::vector<double> depth_accuracies(const voxels::ModelInfo& info);

/// Returns what the slabs of an evaluation depend on.
voxels::SlabNeeds needs_of(const Model& model);

}  // namespace larch::forest
