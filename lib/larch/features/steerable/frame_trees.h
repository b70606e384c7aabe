// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/features/steerable/steerable_math.h"
#include "larch/tree/flat_tree.h"

namespace larch::features {

// The columns of tree::TreeView for features of the set base9: PatternPoint, its level, the type,
// the direction that gradients are projected on (axes of the image, then of the box), and
// learning::FastVote with alpha.
constexpr int kPointX = 0, kPointY = 1, kPointZ = 2, kShrink = 3, kLevel = 4, kType = 5;
constexpr int kDirection = 6, kLowest = 7, kMultiplier = 8, kRemainder = 9, kShift = 10;
constexpr int kLowMask = 11, kHighMask = 12, kAlpha = 13;
constexpr int kWeakLanes = 8;

/// The features of a classifier at a box.
struct FrameResponse {
  const SteerableFeature* features;
  const SteerableImages& images;
  SteerableFrame frame;

  LARCH_HD int32_t operator()(uint32_t feature, size_t) const {
    return steerable_value(features[feature], frame, images);
  }
  /// See tree::TreeView::columns; kWeakLanes weak classifiers side by side. For the CPU.
  int32_t votes(const tree::TreeView& tree, const tree::FlatNode& node) const;
};

/// Returns trees of these features on a device; with columns on a CPU that has AVX2.
tree::ResidentTrees resident_trees(std::span<const SteerableFeature> features,
                                   const std::vector<tree::FlatTree>& trees, const Device& device);

}  // namespace larch::features
