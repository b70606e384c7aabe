// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "tests/unit/forest/forest_scenes.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace {

using namespace larch;
using fixtures::context_of;
using fixtures::forest_config;
using fixtures::forest_volumes;
using fixtures::train_forest;

TEST_CASE("The classes are the labels that occur, scattered and negative ones too") {
  const voxels::TrainConfig config = forest_config();
  const auto model = train_forest(forest_volumes(3, config), config, context_of());
  REQUIRE(model.classes == 3);
  CHECK(model.class_table[0].value == -3);
  CHECK(model.class_table[1].value == 0);
  CHECK(model.class_table[2].value == 5);
  CHECK(model.background == 1);
  const auto test = fixtures::two_modalities({28, 26, 9}, 99, config);
  forest::Wanted wanted;
  wanted.labels = true;
  const auto maps =
      forest::evaluate_volume({model, {}}, test.components(), wanted, 0, context_of());
  CHECK(std::count(maps.labels[0].begin(), maps.labels[0].end(), -3) > 100);
}

TEST_CASE("Two classes: labels/positive against the rest") {
  voxels::TrainConfig config = forest_config();
  config.labels.background = {};
  config.labels.positive = {5};
  config.labels.class_value = 9;
  config.labels.ignore = {-3};
  config.forest.pool = voxels::ForestPool::kHaar;
  config.forest.depth = 6;
  const auto volumes = forest_volumes(3, config);
  CHECK(std::count(volumes[0].labels.begin(), volumes[0].labels.end(), voxels::kUnlabelled) > 100);
  const auto model = train_forest(volumes, config, context_of());
  REQUIRE(model.classes == 2);
  CHECK(model.class_table[1].value == 9);
  CHECK(model.background == 0);
}

TEST_CASE("A forest depends on volumes, settings and seed alone") {
  voxels::TrainConfig config = forest_config();
  config.validation.fraction = 0.34;
  const auto volumes = forest_volumes(3, config);
  const auto one = train_forest(volumes, config, context_of(1));
  CHECK(fixtures::same(train_forest(volumes, config, context_of(3)), one));
  forest::TrainHooks hooks;
  hooks.memory_bytes = 2 * 32 * 2700;
  CHECK(fixtures::same(train_forest(volumes, config, context_of(2), hooks), one));
  CHECK_FALSE(fixtures::same(train_forest(volumes, config, context_of(1, 2)), one));
  CHECK(one.info.measured("accuracy").value_or(0) > 0.9);
  CHECK(forest::depth_accuracies(one.info).size() == 9);
  CHECK(one.info.measured("threshold").value_or(0) > 0);
  CHECK(one.info.measured("dice").value_or(0) > 0.8);
  // Resumed after any round.
  std::vector<forest::PartialForest> partial;
  forest::TrainHooks kept;
  kept.after_step = [&](const forest::PartialForest& p) { partial.push_back(p); };
  train_forest(volumes, config, context_of(2), kept);
  REQUIRE(partial.size() > 20);
  for (const size_t k : {size_t{0}, size_t{9}, partial.size() - 1}) {
    forest::TrainHooks resume;
    resume.resume = &partial[k];
    const auto again = train_forest(volumes, config, context_of(2), resume);
    CHECK(fixtures::same(again, one));
    CHECK(again.info.validation == one.info.validation);
  }
}

TEST_CASE("Volumes in portions give the forest of all together") {
  voxels::TrainConfig config = forest_config();
  config.validation.fraction = 0.34;
  for (const auto pool : {voxels::ForestPool::kBoxes, voxels::ForestPool::kHaar}) {
    config.memory_bytes = 0;
    config.forest.pool = pool;
    config.features.count = pool == voxels::ForestPool::kHaar ? 20 : 20000;
    const auto volumes = forest_volumes(4, config);
    const auto one = train_forest(volumes, config, context_of());
    config.memory_bytes = 1 << 16;
    size_t portions = 0;
    const auto train = [&](const voxels::TrainConfig& c, const Context& context) {
      return train_forest(volumes, c, context);
    };
    CHECK(fixtures::same(fixtures::train_within(config, context_of(2), portions, train), one));
    CHECK(portions == 4);
  }
}

TEST_CASE("A pool that is no larger than a round is filled once, with the same result") {
  voxels::TrainConfig config = forest_config();
  config.features.filters.clear();
  config.forest.pool = voxels::ForestPool::kHaar;
  config.features.count = 60;
  config.forest.round_features = 1000;
  const auto volumes = forest_volumes(2, config);
  const auto one = train_forest(volumes, config, context_of());
  CHECK(fixtures::same(train_forest(volumes, config, context_of(3)), one));
  CHECK(one.features.size() <= 60);
}

TEST_CASE("A bag may miss a class; what memory cannot hold is refused") {
  voxels::TrainConfig config = forest_config();
  config.labels.background = {};
  auto volumes = forest_volumes(3, config);  // one class is in a single volume
  for (size_t v = 1; v < 3; ++v) {
    for (int32_t& label : volumes[v].labels) label = label == -3 ? 0 : label;
  }
  config.forest.trees = 8;
  const auto model = train_forest(volumes, config, context_of());
  CHECK(model.classes == 3);
  config.forest.depth = 0;
  CHECK(train_forest(volumes, config, context_of()).nodes.size() == 8);
  forest::TrainHooks hooks;
  hooks.memory_bytes = 5000;
  config.forest.depth = 3;
  CHECK_THROWS_AS(train_forest(volumes, config, context_of(), hooks), MemoryError);
}

TEST_CASE("Slabs, regions and the number of threads do not change what a forest says") {
  voxels::TrainConfig config = forest_config();
  config.features.channels = {image::ChannelKind::kIntensity, image::ChannelKind::kGaussian};
  const auto model = train_forest(forest_volumes(2, config, {28, 26, 14}), config, context_of());
  const auto image = fixtures::two_modalities({28, 26, 40}, 7, config).components();
  forest::Wanted wanted;
  wanted.leaves = wanted.distribution = wanted.labels = true;
  const auto whole = forest::evaluate_volume({model, {}}, image, wanted, 0, context_of(1));
  REQUIRE(whole.leaves.size() == 4);
  REQUIRE(whole.distribution.size() == 3);
  const auto same = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  const auto all_same = [&](const forest::Maps& maps) {
    for (size_t t = 0; t < 4; ++t) REQUIRE(same(maps.leaves[t], whole.leaves[t]));
    for (size_t c = 0; c < 3; ++c) REQUIRE(same(maps.distribution[c], whole.distribution[c]));
    REQUIRE(same(maps.labels[0], whole.labels[0]));
  };
  all_same(forest::evaluate_volume({model, {}}, image, wanted, 0, context_of(3)));
  const int64_t all =
      forest::plan_slabs(model, {28, 26, 40}, wanted, false, int64_t{1} << 40, Device::cpu()).bytes;
  for (const int64_t less : {int64_t{1000}, int64_t{1200000}}) {
    const auto plan =
        forest::plan_slabs(model, {28, 26, 40}, wanted, false, all - less, Device::cpu());
    REQUIRE(plan.count > 1);
    all_same(forest::evaluate_volume({model, {}}, image, wanted, all - less, context_of(2)));
  }
  // The likeliest class by the distribution, which sums to 1.
  Volume<uint8_t> roi(image[0].grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) {
    float sum = 0, most = -1;
    int32_t likeliest = 0;
    for (size_t c = 0; c < 3; ++c) {
      const float p = whole.distribution[c][i];
      sum += p;
      if (p > most) most = p, likeliest = model.class_table[c].value;
    }
    REQUIRE(sum == Approx(1).margin(1e-5));
    REQUIRE(whole.labels[0][i] == likeliest);
    roi[i] = i % 3 == 0;
  }
  const auto inside = forest::evaluate_volume({model, {}}, image, wanted, 0, context_of(), &roi);
  for (int64_t i = 0; i < roi.voxels(); ++i) {
    REQUIRE(inside.leaves[1][i] == (roi[i] ? whole.leaves[1][i] : -1));
    REQUIRE(inside.distribution[2][i] == (roi[i] ? whole.distribution[2][i] : 0));
    REQUIRE(inside.labels[0][i] == (roi[i] ? whole.labels[0][i] : 0));
  }
  wanted.leaf_trees = 1;
  CHECK(forest::evaluate_volume({model, {}}, image, wanted, 0, context_of()).leaves.size() == 1);
  CHECK_THROWS_AS(forest::evaluate_volume({model, {}}, image, wanted, 1000, context_of()),
                  MemoryError);
}

TEST_CASE("A forest of pictures says the same of a volume in slabs of one slice") {
  const voxels::TrainConfig config = forest_config();
  const auto model = train_forest(forest_volumes(2, config, {28, 26, 1}), config, context_of());
  const Vec3i size{28, 26, 12};
  const auto image = fixtures::two_modalities(size, 7, config).components();
  forest::Wanted wanted;
  wanted.leaves = true;
  const auto plan = [&](int64_t memory) {
    return forest::plan_slabs(model, size, wanted, false, memory, Device::cpu());
  };
  int64_t memory = plan(int64_t{1} << 40).bytes;
  while (plan(memory).core > 1) memory -= 5000;
  const auto whole = forest::evaluate_volume({model, {}}, image, wanted, 0, context_of());
  const auto slabs = forest::evaluate_volume({model, {}}, image, wanted, memory, context_of());
  for (size_t t = 0; t < whole.leaves.size(); ++t) {
    CHECK(std::equal(whole.leaves[t].begin(), whole.leaves[t].end(), slabs.leaves[t].begin()));
  }
}

}  // namespace
