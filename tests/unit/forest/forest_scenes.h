// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/forest/evaluate.h"
#include "larch/forest/train.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// A volume of two modalities with two blobs, each of which only one of them shows, and a third one
/// that both show: labels 0, 5 (union of the first two) and -3.
inline voxels::TrainingVolume two_modalities(const Vec3i& size, uint64_t seed,
                                             const voxels::TrainConfig& config) {
  const Grid grid = grid_of(size);
  std::vector<Volume<float>> images(2, Volume<float>(grid));
  LabelVolume labels(grid);
  const auto draw = [&](uint64_t k, int n) {
    return static_cast<int>(hash_below(seed, 8, k, static_cast<uint32_t>(n)));
  };
  const Vec3i centres[3] = {{6 + draw(0, 3), 7 + draw(1, 3), size.z / 2},
                            {20 + draw(2, 3), 8 + draw(3, 3), size.z / 2},
                            {13 + draw(4, 3), 19 + draw(5, 2), size.z / 2}};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i p = grid.voxel(i);
    double value[2] = {300, 300};
    for (int b = 0; b < 3; ++b) {
      if (norm((p - centres[b]).cast<double>()) > 4.2) continue;
      labels[i] = b == 2 ? -3 : 5;
      for (int m = 0; m < 2; ++m) {
        if (b == 2) value[m] = 50;
        if (b == m) value[m] = 800;
      }
    }
    for (int m = 0; m < 2; ++m) {
      const auto noise = hash_unit(seed, 9 + static_cast<uint64_t>(m), static_cast<uint64_t>(i));
      images[static_cast<size_t>(m)][i] = static_cast<float>(value[m] + 120 * (noise - 0.5));
    }
  }
  return forest::make_training_volume("scene", images, labels, space_of(config), config.labels,
                                      context_of());
}

/// Settings of a forest that is trained in a moment on such volumes.
inline voxels::TrainConfig forest_config() {
  voxels::TrainConfig config = small_config();
  config.classifier = voxels::ClassifierKind::kForest;
  config.labels.border_voxels = 0;
  config.labels.background = 0;
  config.space.components = {"T1", "T2"};
  config.features.filters = {{image::ChannelKind::kSmooth, {1}, voxels::FilterInput::kEach}};
  config.forest.trees = 4;
  config.forest.depth = 8;
  config.forest.round_features = 24;
  config.forest.samples_per_volume = 900;
  config.forest.reach = 5;
  config.forest.largest_box = 4;
  return config;
}

inline std::vector<voxels::TrainingVolume> forest_volumes(int count,
                                                          const voxels::TrainConfig& config,
                                                          const Vec3i& size = {28, 26, 9}) {
  std::vector<voxels::TrainingVolume> volumes;
  for (int v = 0; v < count; ++v) {
    volumes.push_back(two_modalities(size, 50 + static_cast<uint64_t>(v), config));
  }
  voxels::sort_by_digest(volumes);
  return volumes;
}

inline forest::Model train_forest(const std::vector<voxels::TrainingVolume>& volumes,
                                  const voxels::TrainConfig& config, const Context& context,
                                  const forest::TrainHooks& hooks = {}) {
  return forest::train_forest(volumes, space_of(config), config, hooks, nullptr, context);
}

}  // namespace larch::fixtures
