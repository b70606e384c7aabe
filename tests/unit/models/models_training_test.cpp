// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <set>

#include <catch2/catch.hpp>

#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;
using fixtures::bytes_of;
using fixtures::context_of;
using fixtures::read_bytes;

voxels::TrainConfig config_with_everything() {
  voxels::TrainConfig config = fixtures::small_config();
  config.features.pyramid_levels = 2;
  config.features.channels = {image::ChannelKind::kIntensity,
                              image::ChannelKind::kGradientMagnitude};
  config.samples.negatives_per_volume = 150;
  config.validation.fraction = 0.34;
  config.validation.patience = 3;
  config.mining.enabled = true;
  config.mining.per_node = 100;
  return config;
}

pbt::Model train_on(const std::vector<voxels::TrainingVolume>& volumes,
                    const voxels::TrainConfig& config, const pbt::TrainHooks& hooks,
                    const Context& context) {
  return pbt::train_trees(volumes, fixtures::space_of(config), config, hooks, nullptr, context);
}

}  // namespace

TEST_CASE("a training that is stopped at any node goes on to the same bytes") {
  const voxels::TrainConfig config = config_with_everything();
  const std::vector<voxels::TrainingVolume> volumes = fixtures::hard_volumes(3);
  const test::Folder folder;
  const std::string checkpoint = folder / "checkpoint";
  const auto checkpoint_bytes = [&](const pbt::PartialModel& partial) {
    models::write_checkpoint(checkpoint, partial, "same settings");
    return read_bytes(checkpoint);
  };
  std::vector<std::string> after;
  pbt::TrainHooks count;
  count.after_step = [&](const pbt::PartialModel& partial) {
    after.push_back(checkpoint_bytes(partial));
  };
  const std::string expected = bytes_of(train_on(volumes, config, count, context_of()));
  REQUIRE(after.size() >= 5);
  for (size_t stop_after = 1; stop_after < after.size(); ++stop_after) {
    std::atomic<int> stop{0};
    size_t finished = 0;
    pbt::TrainHooks hooks;
    hooks.samples_at_once = 1 + 400 * (stop_after % 3);
    hooks.after_step = [&](const pbt::PartialModel& partial) {
      CHECK(checkpoint_bytes(partial) == after[finished]);
      if (++finished == stop_after) stop = 143;
    };
    Context context = context_of();
    context.stop = &stop;
    try {
      train_on(volumes, config, hooks, context);
      FAIL("the training did not stop");
    } catch (const Stopped& stopped) {
      CHECK(stopped.code() == ExitCode::kTerminated);
    }
    CHECK(finished == stop_after);
    const pbt::PartialModel partial =
        models::read_checkpoint<pbt::PartialModel>(checkpoint, "same settings");
    CHECK(partial.finished == stop_after);
    pbt::TrainHooks resume;
    resume.resume = &partial;
    resume.samples_at_once = 1 + 300 * (stop_after % 4);
    CHECK(bytes_of(train_on(volumes, config, resume, context_of(2))) == expected);
  }
}

TEST_CASE("volumes in portions of any size give the bytes of all together, also where it goes on") {
  voxels::TrainConfig config = config_with_everything();
  const std::vector<voxels::TrainingVolume> volumes = fixtures::hard_volumes(12);
  std::vector<pbt::PartialModel> checkpoints;
  pbt::TrainHooks hooks;
  hooks.after_step = [&](const pbt::PartialModel& partial) { checkpoints.push_back(partial); };
  const std::string expected = bytes_of(train_on(volumes, config, hooks, context_of()));
  REQUIRE(checkpoints.size() > 4);
  std::set<size_t> seen;
  size_t portions = 2;
  for (config.memory_bytes = 1 << 16; portions > 1;
       config.memory_bytes += config.memory_bytes / 16) {
    pbt::TrainHooks resume;
    if (seen.size() % 2 == 1) resume.resume = &checkpoints[3];
    const auto train = [&](const voxels::TrainConfig& c, const Context& context) {
      return bytes_of(train_on(volumes, c, resume, context));
    };
    CHECK(fixtures::train_within(config, context_of(2), portions, train) == expected);
    seen.insert(portions);
  }
  CHECK(seen.contains(volumes.size()));
  CHECK(seen.size() > 2);
}

TEST_CASE("an ensemble does not depend on threads, and goes on from any node") {
  voxels::TrainConfig config = config_with_everything();
  config.classifier = voxels::ClassifierKind::kEnsemble;
  config.ensemble.trees = 3;
  config.tree.depth = 2;
  const std::vector<voxels::TrainingVolume> volumes = fixtures::hard_volumes(4);
  std::vector<std::string> checkpoints;
  const test::Folder folder;
  pbt::TrainHooks hooks;
  hooks.after_step = [&](const pbt::PartialModel& partial) {
    checkpoints.push_back(folder / std::to_string(checkpoints.size()));
    models::write_checkpoint(checkpoints.back(), partial, "same settings");
  };
  const std::string expected = bytes_of(train_on(volumes, config, hooks, context_of(1)));
  CHECK(bytes_of(train_on(volumes, config, {}, context_of(3))) == expected);
  REQUIRE(checkpoints.size() >= 9);
  for (const std::string& path : checkpoints) {
    const pbt::PartialModel partial =
        models::read_checkpoint<pbt::PartialModel>(path, "same settings");
    pbt::TrainHooks resume;
    resume.resume = &partial;
    CHECK(bytes_of(train_on(volumes, config, resume, context_of(2))) == expected);
  }
}

TEST_CASE("A checkpoint of other training data is refused") {
  const voxels::TrainConfig config = fixtures::small_config();
  const std::vector<voxels::TrainingVolume> volumes = fixtures::hard_volumes(1);
  pbt::PartialModel kept;
  pbt::TrainHooks hooks;
  hooks.after_step = [&](const pbt::PartialModel& partial) { kept = partial; };
  train_on(volumes, config, hooks, context_of());
  pbt::TrainHooks resume;
  resume.resume = &kept;
  const std::vector<voxels::TrainingVolume> other = fixtures::hard_volumes(2);
  CHECK_THROWS_AS(train_on(other, config, resume, context_of()), InputError);
  // A pool that is smaller than the one the checkpoint's features came from.
  REQUIRE_FALSE(kept.model.features.empty());
  kept.model.features[0].pool_index = 1u << 23;
  CHECK_THROWS_AS(train_on(volumes, config, resume, context_of()), InputError);
}
