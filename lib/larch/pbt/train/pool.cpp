// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/pool.h"

#include "larch/core/error.h"

namespace larch::pbt {

std::vector<image::ChannelSpec> channel_specs(const FeatureConfig& config) {
  std::vector<image::ChannelSpec> specs;
  for (const image::ChannelKind kind : config.channels) {
    for (int level = 0; level < config.pyramid_levels; ++level) specs.push_back({kind, level});
  }
  if (specs.empty()) throw UsageError("features/channels: needs at least one channel");
  return specs;
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
  const auto range = image::value_range(config.space.intensity);
  std::vector<int64_t> bounds;
  for (const auto& c : channels) bounds.push_back(channel_bound(c.kind, range[0], range[1]));
  features::check_exact(pool, bounds);
  return pool;
}

void check_config(const TrainConfig& config, uint64_t seed) {
  image::check_rule(config.space.intensity);
  make_pool(config, channel_specs(config.features), seed);
}

}  // namespace larch::pbt
