// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/features/box.h"
#include "larch/features/haar.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/learning/weak_math.h"
#include "larch/tree/ensemble.h"
#include "larch/voxels/model.h"
#include "larch/voxels/train_config.h"

namespace larch::pbt {

// The words of voxels, of the learner and of the tree that everything about a voxel's boosting tree
// uses.
using namespace voxels;
using learning::BinMap;
using learning::CodeMap;
using learning::WeakClassifier;
using tree::EvaluationRule;
using tree::kAlphaBits;
using tree::kLogisticSteps;
using tree::kMaximumAlphaQ20;
using tree::kMaximumDepth;
using tree::kMaximumTrees;
using tree::kOneQ30;
using tree::Node;
using tree::NodeHistory;
using tree::NodeReason;
using tree::PriorKind;
using tree::SelfTest;
using tree::Split;
using tree::Thresholds;

/// Boosting trees on Haar features of the channels of a volume, with all that evaluation needs.
struct Model : tree::Ensemble, ImageModel {
  std::vector<features::HaarFeature> features;  ///< that the weak classifiers refer to

  /// Farthest reach of its features in voxels of their levels.
  int reach() const;
  /// Returns the same along each axis: the padding that its channels need.
  Vec3i reach_along() const;
};

/// Checks every invariant that evaluation relies on: children after parents and in range, weak
/// classifiers and features in range, depth, alpha sums, channel indices, table length; and that a
/// label map can tell the class from the rest, by a threshold that is a probability. Throws
/// InputError that says which one failed.
void check_model(const Model& model);

/// Appends the only tree of `tree` to the trees of `ensemble`. What does not belong to a tree
/// (space, thresholds, table) is taken from the first one. Features and weak classifiers that no
/// node uses are left out, and so are the self-tests, which are those of a whole model.
void append_tree(Model& ensemble, const Model& tree);

/// Tree number `which` of an ensemble as a model of its own, with the features in the order of
/// their first use. append_tree puts it back as it was.
Model extract_tree(const Model& ensemble, size_t which);

/// Returns a grown tree, whose features are columns of `pool`, as a model: `start` says all but the
/// trees. The features are in the order of their first use.
Model model_of(const tree::Ensemble& grown, const Model& start,
               const std::vector<features::HaarFeature>& pool);

/// The trees of a model with columns of the pool for features, as they grow.
tree::Ensemble grown_of(const Model& model);

}  // namespace larch::pbt
