// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/models/model_file.h"
#include "tests/unit/folder.h"
#include "tests/unit/hdn/hdn_course.h"

namespace larch::hdn {
namespace {

using fixtures::Course;

constexpr int kUnseen = 100;  // the number of the first phantom that no training sees

ResidentModel resident(Model model) {
  return make_resident(std::move(model), {}, Device::cpu());
}

/// Most of the time of a training goes into the features of its samples.
void make_small(Course& course) {
  course.shared.features.count = 60;
  course.config.rotation_step_deg = {30, 15};
  course.config.keep_first = {60, 30, 30};
  course.config.keep = {30, 15, 15};
  course.config.positives_per_volume = 8;
  course.config.negatives_per_volume = 40;
}

TEST_CASE(
    "a network finds objects in images that it has not seen; empty and small ones are borne") {
  Course course(32, {{"object", ""}});
  make_small(course);
  course.prepare(8);
  const ResidentModel network = resident(course.train());
  constexpr int kTests = 4;
  double mean_mm = 0;
  for (int n = 0; n < kTests; ++n) {
    const Pose truth = *course.poses(kUnseen + n)[0];
    const FoundStructure found = fixtures::detect(network, course.image(kUnseen + n))[0];
    CHECK((found.status == FoundStatus::kFound || found.status == FoundStatus::kUncertain));
    const double mm = norm(found.pose.centre_mm - truth.centre_mm);
    CHECK(mm < std::min({truth.edges_mm.x, truth.edges_mm.y, truth.edges_mm.z}) / 2);
    constexpr int32_t kKeep[] = {60, 30, 30, 30, 15};
    REQUIRE(found.kept.size() == std::size(kKeep));
    for (size_t k = 0; k < found.kept.size(); ++k) {
      CHECK((found.kept[k] > 0 && found.kept[k] <= kKeep[k]));
    }
    CHECK_FALSE(found.truncated);
    mean_mm += mm / kTests;
  }
  CAPTURE(mean_mm);
  CHECK(mean_mm < 1.5 * course.phantom.spacing_mm[0]);

  Volume<int16_t> image = course.image(0);
  std::fill(image.begin(), image.end(), int16_t{500});
  CHECK(fixtures::detect(network, image)[0].status != FoundStatus::kFound);
  for (const Vec3i& size : {Vec3i{5, 4, 3}, Vec3i{1, 1, 1}}) {
    Grid grid = image.grid();
    grid.size = size;
    const FoundStructure found = fixtures::detect(network, Volume<int16_t>(grid))[0];
    CHECK(found.has_pose);
    CHECK(found.truncated);
    CHECK_NOTHROW(check_pose(found.pose, "pose"));
  }
}

/// How often the second structure is found where it is.
int times_right(const Course& course, const Model& model) {
  const ResidentModel network = resident(model);
  int right = 0;
  for (int n = kUnseen; n < kUnseen + 12; ++n) {
    const Pose truth = *course.poses(n)[1];
    const FoundStructure found = fixtures::detect(network, course.image(n))[1];
    right += found.has_pose && norm(found.pose.centre_mm - truth.centre_mm) < 10 ? 1 : 0;
  }
  return right;
}

TEST_CASE("of several objects that look alike a parent tells the right one") {
  Course course(32, {{"parent", ""}, {"child", "parent"}});
  make_small(course);
  course.shared.features.count = 100;
  course.config.negatives_per_volume = 100;
  course.phantom.distractors = 3;
  // So small features do not see where the parent is from the place of the child.
  course.shared.features.window = 3;
  course.config.structures[0].stages = {LevelStages::kPositionOrientation, LevelStages::kPosition};
  course.config.structures[1].stages = {LevelStages::kPosition};
  course.prepare(14);
  Model model = course.train();
  const int with_parent = times_right(course, model);
  // The child alone, by the detector for images in which the parent is not found.
  Structure& child = model.structures[1];
  child.parent = -1;
  child.detectors[0] = child.root_position.at(0);
  child.root_position.clear();
  const int without = times_right(course, model);
  CAPTURE(with_parent, without);
  CHECK(with_parent >= 10);
  CHECK(without <= with_parent - 4);
}

std::string bytes_of(const Model& model) {
  const test::Folder folder;
  models::write_model(folder / "network.hdn", model);
  return read_file(folder / "network.hdn");
}

/// Two structures, as little as can be.
Course smallest() {
  Course course(32, {{"child", "parent"}, {"parent", ""}});
  make_small(course);
  course.config.keep_first = course.config.keep = {20, 10, 10};
  course.config.positives_per_volume = 5;
  course.shared.features.window = 5;
  course.shared.tree.rounds = {3};
  course.shared.classifier = voxels::ClassifierKind::kForest;
  course.shared.forest.trees = 3;
  return course;
}

TEST_CASE("threads and interruptions do not change a network, of which cases may lack structures") {
  Course course = smallest();
  course.prepare(8, [](int n, auto& truth) {
    if (n == 2 || n == 4) truth[1].reset();  // the child
    if (n == 3 || n == 4) truth[0].reset();
  });
  const test::Folder folder;
  size_t stages = 0;
  TrainHooks hooks;
  hooks.after_step = [&](const PartialTraining& partial) {
    stages = partial.report.stages.size();
    models::write_checkpoint(folder / std::to_string(stages), partial, "same");
  };
  const Model whole = course.train(1, hooks);
  CHECK(stages == 11);  // with the search for the child everywhere
  REQUIRE(whole.structures.size() == 2);
  CHECK(whole.structures[1].name == "child");
  CHECK(whole.structures[1].root_position.size() == 1);
  const std::string wanted = bytes_of(whole);
  for (const size_t stage : {size_t{4}, stages}) {
    CAPTURE(stage);
    const PartialTraining partial =
        models::read_checkpoint<hdn::PartialTraining>(folder / std::to_string(stage), "same");
    TrainHooks resume;
    resume.resume = &partial;
    CHECK(bytes_of(course.train(3, resume)) == wanted);
  }
}

TEST_CASE("structures that training cases lack are named") {
  Course course = smallest();
  course.prepare(3, [](int, auto& truth) { truth[0].reset(); });
  CHECK_THROWS_AS(course.train(), InputError);
  CHECK_THROWS_WITH(course.train(), Catch::Contains("'parent' occurs in no training case"));
  course.prepare(8, [](int n, auto& truth) { truth[static_cast<size_t>(n % 2)].reset(); });
  CHECK_THROWS_AS(course.train(), InputError);
  CHECK_THROWS_WITH(course.train(), Catch::Contains("'child' and its parent 'parent'"));
  course.prepare(4, [](int n, auto& truth) {
    if (n > 0) truth[1].reset();
  });
  CHECK_THROWS_WITH(course.train(), Catch::Contains("'child' occurs in too few training cases"));
  course.config.folds = 1;
  CHECK_NOTHROW(course.train());
  course.prepare(1);
  CHECK_THROWS_AS(course.train(), InputError);
}

TEST_CASE("parents come first, and structures that make no network are refused") {
  HdnConfig config;
  const auto structures = [&](const std::vector<std::pair<std::string, std::string>>& all) {
    config.structures.clear();
    for (const auto& [name, parent] : all) config.structures.push_back({name, {}, parent});
  };
  const auto refused = [&](const std::string& why) {
    CHECK_THROWS_AS(check_config(config), UsageError);
    CHECK_THROWS_WITH(check_config(config), Catch::Contains(why));
  };
  structures({{"c", "b"}, {"b", "a"}, {"a", ""}, {"d", "a"}});
  CHECK(check_config(config) == std::vector<size_t>{2, 3, 1, 0});
  config.order = Order::kAuto;
  refused("order auto");
  config.order = Order::kFile;
  config.structures[0].stages.resize(4);
  refused("hdn/structures/c/stages");
  structures({{"a", ""}, {"b", "c"}, {"c", "b"}});
  refused("cycle");
  structures({{"a", "a"}});
  refused("cycle");
  structures({{"a", ""}, {"b", "heart"}});
  refused("'heart'");
  structures({{"a", ""}, {"a", ""}});
  refused("'a' stands twice");
  structures({{"", ""}});
  refused("needs a name");
  structures({});
  refused("no structure");
  structures(std::vector<std::pair<std::string, std::string>>(kMaximumStructures + 1, {"a", ""}));
  refused("more than 32");
}

}  // namespace
}  // namespace larch::hdn
