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
#include "larch/learning/weak_classifier.h"
#include "larch/pbt/train_config.h"
#include "larch/tree/ensemble.h"

namespace larch::pbt {

// The words of the learner and of the tree that everything about a voxel's boosting tree uses.
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

/// What the model says about itself; no paths, devices, threads or times, so that the file depends
/// on the data and the settings alone.
struct ModelInfo {
  std::string tool_version;
  std::string class_name = "foreground";
  int32_t class_value = 1;           ///< label value written for the class, 1 to kMaximumClassValue
  std::string training_config_json;  ///< the effective configuration
  std::vector<std::string> volume_digests;
  uint64_t seed = 0;
  /// Measurements on held-out volumes by name: volumes (that were held out), log_loss, auc, dice
  /// and the threshold at which it was reached; "depth 0 log_loss" and "depth 0 auc" of the trees
  /// cut off there, and so on. Older models have some of them.
  std::vector<std::pair<std::string, double>> validation;

  /// A measurement; none if there is none of this name.
  std::optional<double> measured(const std::string& name) const;
};

/// Scores of the trees cut off at each depth, from 0 on, on held-out volumes.
struct DepthScore {
  double log_loss = 0, auc = 0;
};
std::vector<DepthScore> depth_scores(const ModelInfo& info);
/// Adds those of the next depth.
void add_depth_score(ModelInfo& info, const DepthScore& score);

/// What every model that labels voxels has beside its trees and features.
struct ImageModel {
  std::vector<std::string> components{};  ///< names of those of the input; none: it has one
  std::vector<image::ChannelSpec> channels;
  image::Padding padding = image::Padding::kClamp;
  image::ModelSpace space;
  ModelInfo info;
};

/// Boosting trees on Haar features of the channels of a volume, with all that evaluation needs.
struct Model : tree::Ensemble, ImageModel {
  std::vector<features::HaarFeature> features;  ///< that the weak classifiers refer to

  /// Farthest reach of its features in voxels of their levels.
  int reach() const;
  /// The same along each axis: the padding that its channels need.
  Vec3i reach_along() const;
};

/// What check_model checks of space and channels, of a feature, and of the threshold: for models of
/// other kinds too. Throw InputError that says which invariant failed. `components`: names of those
/// of the input.
void check_images(const image::ModelSpace& space, std::span<const image::ChannelSpec> channels,
                  std::span<const std::string> components = {});
/// `bounds`: channel_bounds of the model.
void check_feature(const features::BoxFeature& feature, std::span<const int64_t> bounds);
void check_threshold(const ModelInfo& info);
/// Largest absolute value of each channel.
std::vector<int64_t> channel_bounds(const image::ModelSpace& space,
                                    std::span<const image::ChannelSpec> channels);

/// Checks every invariant that evaluation relies on: children after parents and in range, weak
/// classifiers and features in range, depth, alpha sums, channel indices, table length; and that a
/// label map can tell the class from the rest, by a threshold that is a probability. Throws
/// InputError that says which one failed.
void check_model(const Model& model);

}  // namespace larch::pbt
