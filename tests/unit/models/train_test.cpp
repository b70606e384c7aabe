// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Training through larch/train.h, from images in memory.
#include "larch/train.h"

#include <algorithm>
#include <atomic>

#include <catch2/catch.hpp>

#include "larch/pose/truth.h"
#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;

struct Course {
  std::vector<TrainingCase> all{};
  voxels::TrainConfig config = fixtures::small_config();

  explicit Course(int32_t other_half = 1) {
    for (const uint64_t seed : {1, 2, 3}) {
      const auto [image, labels] = fixtures::ball_image({{16, 15, 14}, 4.5, 560, 440, 300}, seed);
      all.push_back({"ball " + std::to_string(seed), {image}, labels});
      for (int64_t i = 0; i < labels.voxels(); i += 2) all.back().labels[i] *= other_half;
    }
  }
  TrainResult train() const {
    TrainingCases cases;
    for (const TrainingCase& c : all) cases.ids.push_back(c.name);
    cases.read = [&](size_t i) { return all[i]; };
    cases.grid = [&](size_t i) { return all[i].images[0].grid(); };
    cases.labels = [&](size_t i) { return all[i].labels; };
    return train_trees(cases, config, {"", false, "1.2.3"}, fixtures::context_of());
  }
};

}  // namespace

TEST_CASE("Trees are trained on images in memory, in whatever order they come") {
  Course course;
  const TrainResult result = course.train();
  const auto& model = std::get<pbt::Model>(*result.model);
  CHECK(model.info.tool_version == "1.2.3");
  CHECK(result.figures[0] == std::pair<std::string, double>("training_volumes", 3));
  std::reverse(course.all.begin(), course.all.end());
  const TrainResult again = course.train();
  CHECK(fixtures::bytes_of(std::get<pbt::Model>(*again.model)) == fixtures::bytes_of(model));
}

TEST_CASE("Labels of several values make a forest, without those that are left out") {
  Course course(2);
  course.config = {};
  course.config.forest.trees = 1;
  CHECK(std::get<forest::Model>(*course.train().model).classes == 3);
  course.config.classifier = voxels::ClassifierKind::kForest;
  for (TrainingCase& c : course.all) c.left_out = {2};
  CHECK(std::get<forest::Model>(*course.train().model).classes == 2);
}

TEST_CASE(
    "A training of two boundaries that is stopped in the second goes on with the same bytes") {
  std::vector<TrainingCase> all;
  hdn::Model network;
  network.structures.resize(2);
  for (const uint64_t n : {0, 1}) {
    auto [image, labels] = fixtures::ball_image({{22, 22, 42}, 0, 0, 300, 100}, n);
    for (int64_t i = 0; i < labels.voxels(); ++i) {
      const Vec3d at = labels.grid().voxel(i).cast<double>() - Vec3d{10.5, 10.5, 10.5};
      labels[i] = norm(at) < 6 ? 1 : norm(at - Vec3d{0, 0, 20}) < 7 ? 2 : 0;
      image[i] += labels[i] == 0 ? 0.0F : 500;
    }
    const std::vector<Volume<uint8_t>> mask{pose::mask_of(labels, std::vector<int32_t>{1})};
    for (const int32_t label : {1, 2}) {
      hdn::Structure& one = network.structures[static_cast<size_t>(label - 1)];
      one.name = label == 1 ? "a" : "b";
      one.labels = {label};
      one.mean_distance_mm =
          pose::fit_poses(mask, pose::OrientationKind::kFit, fixtures::context_of())
              .mean_distance_mm;
    }
    all.push_back({"image", {image}, labels});
  }
  TrainingCases cases;
  cases.ids = {"0", "1"};
  cases.read = [&](size_t i) { return all[i]; };
  voxels::TrainConfig shared;
  shared.tree = fixtures::small_config().tree;
  boundary::BoundaryConfig config;
  config.halvings = {0, 0};
  config.folds = config.starts = 1;
  config.positives_per_volume = config.negatives_per_volume = 60;
  const test::Folder folder;
  TrainingRun run{folder / "both.ckpt"};
  const auto train = [&](const Context& context) {
    return models::export_json(
        *train_boundary(cases, config, shared, &network, run, context).model);
  };
  const std::string both = train(fixtures::context_of());
  std::atomic<int> stop{0};
  std::string told;
  Context context = fixtures::context_of();
  context.stop = &stop;
  context.progress_sink = [&](double, std::string_view phrase) {
    if (phrase == "'b': level 2 of 2") stop = 143;
  };
  context.log_sink = [&](LogLevel, std::string_view text) { told += text; };
  CHECK_THROWS_AS(train(context), Stopped);
  stop = 0;
  context.progress_sink = {};
  context.threads = 1;
  run.resume = true;
  CHECK(train(context) == both);
  CHECK_THAT(told, Catch::Contains("has 2 levels of 'a'") && Catch::Contains("1 levels of 'b'"));
}

TEST_CASE("A case that cannot be used is named, and a label that never occurs") {
  Course course;
  course.config.labels.positive = {8};
  CHECK_THROWS_WITH(course.train(), Catch::Contains("the label 8 never occurs"));
  course.all[1].labels = LabelVolume(fixtures::grid_of({18, 16, 14}));
  CHECK_THROWS_WITH(course.train(), "cannot use the case 'ball 2' (ball 2)");
}
