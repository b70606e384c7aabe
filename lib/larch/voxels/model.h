// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/model_info.h"
#include "larch/experts/experts.h"
#include "larch/features/box.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/tree/train/score.h"

namespace larch::voxels {

/// Holds what the model says about itself; no paths, devices, threads or times, so that the file
/// depends on the data and the settings alone.
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
  ModelAbout about{};

  /// Returns a measurement; none if there is none of this name.
  std::optional<double> measured(const std::string& name) const;
};

/// Scores of the trees cut off at each depth, from 0 on, on held-out volumes.
using DepthScore = tree::HeldOutScore;
std::vector<DepthScore> depth_scores(const ModelInfo& info);
/// Adds those of the next depth.
void add_depth_score(ModelInfo& info, const DepthScore& score);

/// Holds what every model that labels voxels has beside its trees and features.
struct ImageModel {
  std::vector<std::string> components{};  ///< names of those of the input; none: it has one
  std::vector<image::ChannelSpec> channels;
  image::Padding padding = image::Padding::kClamp;
  image::ModelSpace space;
  ModelInfo info;
  experts::Experts experts{};  ///< that look again at the structures; may be empty
};

/// Check space and channels, a feature, and the threshold of a model. Throw InputError that says
/// which invariant failed. `components`: names of those of the input.
void check_images(const image::ModelSpace& space, std::span<const image::ChannelSpec> channels,
                  std::span<const std::string> components = {});
/// `bounds`: channel_bounds of the model.
void check_feature(const features::BoxFeature& feature, std::span<const int64_t> bounds);
void check_threshold(const ModelInfo& info);
/// Returns the largest absolute value of each channel.
std::vector<int64_t> channel_bounds(const image::ModelSpace& space,
                                    std::span<const image::ChannelSpec> channels);

/// Holds what a training of trees or of a forest tells beside the model.
struct TrainReport {
  /// training_volumes, held_out_volumes, samples, what the model is made of, and its scores on
  /// held-out volumes: held_out_dice and so on.
  std::vector<std::pair<std::string, double>> figures{};
  /// Of a forest: Dice of the classes in held-out volumes, by name.
  std::vector<std::pair<std::string, double>> class_dice{};

  /// Adds those of some measurements that there are.
  void add_measured(const ModelInfo& info, std::initializer_list<const char*> names);
};

}  // namespace larch::voxels
