// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/model.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/tree/check.h"

namespace larch::voxels {
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

/// Returns what the names of the measurements at a depth begin with.
std::string depth_name(size_t depth) {
  return "depth " + std::to_string(depth) + " ";
}

}  // namespace

std::optional<double> ModelInfo::measured(const std::string& name) const {
  for (const auto& [key, value] : validation) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<DepthScore> depth_scores(const ModelInfo& info) {
  std::vector<DepthScore> scores;
  while (true) {
    const std::string depth = depth_name(scores.size());
    const auto log_loss = info.measured(depth + "log_loss"), auc = info.measured(depth + "auc");
    if (!log_loss || !auc) return scores;
    scores.push_back({*log_loss, *auc});
  }
}

void add_depth_score(ModelInfo& info, const DepthScore& score) {
  const std::string depth = depth_name(depth_scores(info).size());
  info.validation.emplace_back(depth + "log_loss", score.log_loss);
  info.validation.emplace_back(depth + "auc", score.auc);
}

void check_images(const image::ModelSpace& space, std::span<const image::ChannelSpec> channels,
                  std::span<const std::string> components) {
  check_space(space);
  if (channels.empty() || channels.size() > 64) tree::refuse_model("it has no channel");
  if (components.size() > 64) tree::refuse_model("it has more than 64 components");
  for (const auto& channel : channels) {
    if (channel.level < 0 || channel.level > 8)
      tree::refuse_model("a channel's level is out of range");
    if (channel.kind > image::kLastChannelKind) {
      tree::refuse_model("a channel is of an unknown kind");
    }
  }
  try {
    image::check_channels(channels, std::max<size_t>(1, components.size()));
  } catch (const Error& error) {
    tree::refuse_model(error.what());
  }
}

std::vector<int64_t> channel_bounds(const image::ModelSpace& space,
                                    std::span<const image::ChannelSpec> channels) {
  const auto range = image::value_range(space.intensity);
  std::vector<int64_t> bounds;
  for (const auto& c : channels) bounds.push_back(image::channel_bound(c.kind, range[0], range[1]));
  return bounds;
}

void check_feature(const features::BoxFeature& feature, std::span<const int64_t> bounds) {
  if (feature.box_count < 1 || feature.box_count > 4) tree::refuse_model("a feature has no cuboid");
  for (int c = 0; c < feature.box_count; ++c) {
    if (feature.channels[static_cast<size_t>(c)] >= bounds.size()) {
      tree::refuse_model("a feature's channel is out of range");
    }
    const auto& box = feature.boxes[static_cast<size_t>(c)];
    for (int axis = 0; axis < 3; ++axis) {
      if (box.lo[axis] < -128 || box.hi[axis] > 128 || box.lo[axis] >= box.hi[axis]) {
        tree::refuse_model("a feature's cuboid is empty or too far away");
      }
    }
    if (box.weight < -127 || box.weight > 127)
      tree::refuse_model("a feature's weight is beyond 8 bits");
  }
  if (features::value_bound(feature, bounds) >= int64_t{1} << 31) {
    tree::refuse_model("a feature's value does not fit 32 bits");
  }
}

void check_threshold(const ModelInfo& info) {
  const double threshold = info.measured("threshold").value_or(0.5);
  if (!(threshold > 0 && threshold < 1)) {
    tree::refuse_model("the threshold of its validation is not between 0 and 1");
  }
}

void TrainReport::add_measured(const ModelInfo& info, std::initializer_list<const char*> names) {
  for (const std::string name : names) {
    if (const auto value = info.measured(name)) figures.emplace_back("held_out_" + name, *value);
  }
}

}  // namespace larch::voxels
