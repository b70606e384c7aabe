// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/image/integral.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/forest/forest_scenes.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

TEST_CASE("filters are the same bytes on both devices",
          "[image::integrate][image::make_channel][image::filter]") {
  const Context gpu = cuda_context(), cpu = fixtures::context_of(2);
  std::vector<image::ChannelSpec> channels{{image::ChannelKind::kIntensity, 0, 2}};
  for (int kind = static_cast<int>(image::ChannelKind::kSmooth);
       kind <= static_cast<int>(image::kLastChannelKind); ++kind) {
    channels.push_back({static_cast<image::ChannelKind>(kind), kind % 2, image::kLuminance, 1.5});
    channels.push_back({static_cast<image::ChannelKind>(kind), 0, 1, 0.7});
  }
  for (const Vec3i size : {Vec3i{33, 17, 1}, Vec3i{19, 12, 9}, Vec3i{1, 1, 1}}) {
    std::vector<Volume<int16_t>> image;
    std::vector<VolumeView<const int16_t>> views;
    for (uint64_t c = 0; c < 3; ++c) image.push_back(fixtures::noise_volume(size, c, -500, 4095));
    for (const auto& component : image) views.push_back(component.view());
    const Vec3i pad{5, 3, size.z > 1 ? 2 : 0};
    const auto a = image::integral_set(views, channels, image::Padding::kClamp, pad, cpu);
    const auto b = image::integral_set(views, channels, image::Padding::kClamp, pad, gpu);
    CHECK(a.data.to_vector() == b.data.to_vector());
  }
}

/// The same forest from both devices, with histograms in one portion and in many.
void check_training(const voxels::TrainConfig& config) {
  const auto volumes =
      fixtures::forest_volumes(2, config, sized(Vec3i{28, 26, 9}, Vec3i{28, 26, 3}));
  const auto cpu = fixtures::train_forest(volumes, config, fixtures::context_of(2));
  CHECK(fixtures::same(fixtures::train_forest(volumes, config, cuda_context()), cpu));
  forest::TrainHooks hooks;
  hooks.memory_bytes = 2 * 128 * 8 * config.forest.samples_per_volume;
  CHECK(fixtures::same(fixtures::train_forest(volumes, config, cuda_context(), hooks), cpu));
  voxels::TrainConfig bound = config;
  bound.memory_bytes = 1 << 16;
  size_t portions = 0;
  const auto train = [&](const voxels::TrainConfig& c, const Context& context) {
    return fixtures::train_forest(volumes, c, context);
  };
  CHECK(fixtures::same(fixtures::train_within(bound, cuda_context(), portions, train), cpu));
  CHECK(portions == volumes.size());
}

TEST_CASE("forests are the same bytes on both devices, whatever the memory",
          "[tree::split_leaves][tree::route_leaves][features::fill][features::range]") {
  voxels::TrainConfig config = fixtures::forest_config();
  config.forest.trees = sized(4, 2);
  config.forest.depth = sized(8, 4);
  config.forest.samples_per_volume = sized(900, 300);
  check_training(config);
  config.forest.intervals = true;
  config.forest.bins = 7;
  config.forest.leaf_share = 0.5;
  config.forest.criterion = tree::Criterion::kGini;
  config.forest.class_weights = tree::ClassWeights::kBalanced;
  config.validation.fraction = 0.5;
  check_training(config);
}

TEST_CASE("forests on a pool of Haar features are the same bytes on both devices",
          "[tree::split_leaves]") {
  voxels::TrainConfig config = fixtures::forest_config();
  config.forest.pool = voxels::ForestPool::kHaar;
  config.features.count = 300;
  config.forest.trees = 2;
  config.forest.depth = 4;
  config.forest.samples_per_volume = 300;
  for (const int columns : {64, 1000}) {
    config.forest.round_features = columns;
    check_training(config);
  }
}

TEST_CASE("what a forest says is the same bytes on both devices", "[forest::evaluate]") {
  voxels::TrainConfig config = fixtures::forest_config();
  config.forest.depth = 6;
  for (const int levels : {1, 2}) {
    config.features.pyramid_levels = levels;
    const auto model = fixtures::train_forest(fixtures::forest_volumes(2, config), config,
                                              fixtures::context_of(2));
    const Vec3i size = sized(Vec3i{50, 31, 20}, Vec3i{20, 11, 5});
    const auto image = fixtures::two_modalities(size, 7, config).components();
    Volume<uint8_t> roi(image[0].grid());
    for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = i % 5 != 0;
    forest::Wanted wanted;
    wanted.leaves = wanted.distribution = wanted.labels = true;
    for (const Volume<uint8_t>* region :
         {static_cast<const Volume<uint8_t>*>(nullptr), &std::as_const(roi)}) {
      const auto a =
          forest::evaluate_volume({model, {}}, image, wanted, 0, fixtures::context_of(2), region);
      const auto b = forest::evaluate_volume({model, Device::cuda()}, image, wanted, 0,
                                             cuda_context(), region);
      const auto same = [](const auto& x, const auto& y) {
        return std::equal(x.begin(), x.end(), y.begin(), y.end());
      };
      for (size_t t = 0; t < a.leaves.size(); ++t) CHECK(same(a.leaves[t], b.leaves[t]));
      for (size_t c = 0; c < a.distribution.size(); ++c) {
        CHECK(same(a.distribution[c], b.distribution[c]));
      }
      CHECK(same(a.labels[0], b.labels[0]));
    }
  }
}

}  // namespace
}  // namespace larch
