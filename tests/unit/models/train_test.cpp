// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Training through larch/train.h, from images in memory.
#include "larch/train.h"

#include <algorithm>

#include <catch2/catch.hpp>

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

TEST_CASE("A case that cannot be used is named, and a label that never occurs") {
  Course course;
  course.config.labels.positive = {8};
  CHECK_THROWS_WITH(course.train(), Catch::Contains("the label 8 never occurs"));
  course.all[1].labels = LabelVolume(fixtures::grid_of({18, 16, 14}));
  CHECK_THROWS_WITH(course.train(), "cannot use the case 'ball 2' (ball 2)");
}
