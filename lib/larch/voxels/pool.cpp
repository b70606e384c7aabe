// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/pool.h"

#include <algorithm>
#include <string>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/features/box.h"

namespace larch::voxels {

std::vector<image::ChannelSpec> channel_specs(const FeatureConfig& config, size_t components) {
  std::vector<image::ChannelSpec> specs;
  const int count = std::max(1, static_cast<int>(components));
  for (const image::ChannelKind kind : config.channels) {
    if (image::is_filter(kind)) {
      throw UsageError(std::string("features/channels: ") + image::rule_of(kind).name +
                       " has a sigma; give it in features/filters");
    }
    for (int level = 0; level < config.pyramid_levels; ++level) {
      for (int c = 0; c < count; ++c) specs.push_back({kind, level, c});
    }
  }
  for (const FilterConfig& filter : config.filters) {
    const bool each = filter.of == FilterInput::kEach;
    for (const double sigma : filter.sigma_voxels) {
      for (int c = 0; c < (each ? count : 1); ++c) {
        specs.push_back({filter.kind, 0, each ? c : image::kLuminance, sigma});
      }
    }
  }
  image::check_channels(specs, static_cast<size_t>(count));
  if (specs.empty()) throw UsageError("features/channels: needs at least one channel");
  return specs;
}

ImageModel start_image_model(const TrainConfig& config, const image::ModelSpace& space,
                             std::span<const TrainingVolume> volumes, uint64_t seed) {
  ImageModel model{config.space.components,
                   channel_specs(config.features, config.space.components.size()),
                   config.space.padding,
                   space,
                   {}};
  model.info.class_name = config.labels.class_name;
  model.info.class_value = config.labels.class_value;
  model.info.seed = seed;
  for (const TrainingVolume& v : volumes) model.info.volume_digests.push_back(v.digest);
  return model;
}

std::vector<features::HaarFeature> make_pool(const TrainConfig& config,
                                             std::span<const image::ChannelSpec> channels,
                                             uint64_t seed) {
  features::HaarPoolSpec spec;
  spec.features = config.features.count;
  spec.window = config.features.window;
  spec.sizes = config.features.sizes;
  spec.channels = static_cast<int>(channels.size());
  spec.seed = seed;
  std::vector<features::HaarFeature> pool = features::make_haar_pool(spec);
  image::ModelSpace space;
  space.intensity = config.space.intensity;
  features::check_exact(pool, channel_bounds(space, channels));
  return pool;
}

void check_config(const TrainConfig& config, uint64_t seed) {
  image::check_rule(config.space.intensity);
  const auto channels = channel_specs(config.features, config.space.components.size());
  const bool boxes =
      config.classifier == ClassifierKind::kForest && config.forest.pool == ForestPool::kBoxes;
  if (!boxes && config.classifier) make_pool(config, channels, seed);
}

void check_name(const std::string& name) {
  if (escaped(name) == name) return;
  throw UsageError("the name '" + name +
                   "' of a label or structure has control characters; give it another");
}

TrainConfig with_constants(TrainConfig config) {
  const features::BoxSpec boxes;
  config.classifier = config.classifier.value_or(ClassifierKind::kTree);
  config.labels.border_voxels = config.labels.border_voxels.value_or(1);
  config.validation.fraction = config.validation.fraction.value_or(0);
  config.forest.reach = config.forest.reach.value_or(boxes.reach);
  config.forest.largest_box = config.forest.largest_box.value_or(boxes.largest);
  config.forest.bootstrap = config.forest.bootstrap.value_or(true);
  return config;
}

}  // namespace larch::voxels
