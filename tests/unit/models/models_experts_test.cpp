// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Experts behind trees, through the doors: training, files, and images unlike the training's.
#include <algorithm>
#include <cmath>

#include <catch2/catch.hpp>

#include "larch/detect.h"
#include "larch/train.h"
#include "larch/train_experts.h"
#include "tests/unit/experts/experts_fixtures.h"
#include "tests/unit/folder.h"
#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;

constexpr int32_t kFront = 1, kBack = 2;

/// An ellipsoid whose halves have intensities of their own, in noise. `centre` in mm of the world.
std::pair<Volume<float>, LabelVolume> halves(const Grid& grid, const Vec3d& centre, uint64_t seed) {
  Volume<float> image(grid);
  LabelVolume labels(grid);
  const double turn = (hash_unit(seed, 1, 0) - 0.5) * 0.5;
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d d = world_from_index(grid, grid.voxel(i).cast<double>()) - centre;
    const Vec3d at{d.x * std::cos(turn) + d.y * std::sin(turn),
                   d.y * std::cos(turn) - d.x * std::sin(turn), d.z};
    if (fixtures::in_ellipsoid(at, {7, 4.2, 3})) labels[i] = at.x < 0 ? kFront : kBack;
    const double noise = (hash_unit(seed, 2, static_cast<uint64_t>(i)) - 0.5) * 260;
    const double mean = labels[i] == 0 ? 300 : labels[i] == kFront ? 520 : 700;
    image[i] = static_cast<float>(mean + noise);
  }
  return {image, labels};
}

constexpr Vec3i kSize{24, 18, 16};
constexpr Vec3d kCentre{11.5, 8.5, 7.5};

TrainResult trained(int threads, bool turned, bool experts = true, std::string* told = nullptr) {
  std::vector<TrainingCase> all;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const Vec3d shift{static_cast<double>(seed % 3), 0.4 * static_cast<double>(seed), 0.5};
    const auto [image, labels] = halves(fixtures::grid_of(kSize), kCentre + shift, seed);
    all.push_back({"case " + std::to_string(seed), {image}, labels});
    // Cases of one person are never in two folds, even if that leaves few of them.
    if (seed == 1 || seed == 5) all.back().group = "a person";
  }
  if (turned) std::reverse(all.begin(), all.end());
  voxels::TrainConfig config = fixtures::small_config();
  config.labels.positive = {kFront, kBack};
  if (experts) {
    config.fusion.atlases = 3;
    config.labels.names = {{kFront, "front"}, {kBack, "back"}};
  }
  TrainingCases cases;
  for (const TrainingCase& c : all) cases.ids.push_back(c.name);
  cases.read = [&](size_t i) { return all[i]; };
  cases.grid = [&](size_t i) { return all[i].images[0].grid(); };
  cases.labels = [&](size_t i) { return all[i].labels; };
  Context context = fixtures::context_of(threads);
  context.log_sink = [&](LogLevel, std::string_view text) {
    if (told != nullptr) *told += text;
  };
  return train_trees(cases, config, {"", false, "1.2.3"}, context);
}

/// The model, and what its training said.
const std::pair<pbt::Model, std::string>& model_with_atlases() {
  static const auto both = [] {
    std::string told;
    const TrainResult result = trained(3, false, true, &told);
    return std::pair{std::get<pbt::Model>(*result.model), told};
  }();
  return both;
}
const pbt::Model& model_with_experts() {
  static const pbt::Model without = [] {
    pbt::Model model = model_with_atlases().first;
    model.experts.atlases.clear();
    return model;
  }();
  return without;
}

Detection detected(const Volume<float>& image) {
  static const Model model = open_model(models::AnyModel(model_with_experts()), Device::cpu());
  return detect(model, {image}, {}, fixtures::context_of(2));
}

/// Dice of the voxels with a label; 0: with any.
double dice(const LabelVolume& a, const LabelVolume& b, int32_t label = 0) {
  const auto is = [&](int32_t value) { return label == 0 ? value != 0 : value == label; };
  int64_t both = 0, sum = 0;
  for (int64_t i = 0; i < a.voxels(); ++i) {
    both += is(a[i]) && is(b[i]);
    sum += is(a[i]) + is(b[i]);
  }
  return 2.0 * static_cast<double>(both) / static_cast<double>(sum);
}

void check_found(const Grid& grid, const Vec3d& centre, double least) {
  const auto [image, labels] = halves(grid, centre, 99);
  const Detection found = detected(image);
  REQUIRE(found.labels.size() == grid.size);
  CHECK(dice(found.labels, labels) > least);
  CHECK(dice(found.labels, labels, kFront) > least - 0.1);
  CHECK(dice(found.labels, labels, kBack) > least - 0.1);
}

}  // namespace

TEST_CASE("Experts and atlases are the same bytes by any threads and in any order of the cases") {
  const pbt::Model& model = model_with_atlases().first;
  CHECK(model.experts.parts == 2);
  CHECK(model.experts.table.at(1).name == "back");
  CHECK(model.experts.atlases.size() == 3);
  const TrainResult again = trained(1, true);
  CHECK(fixtures::bytes_of(std::get<pbt::Model>(*again.model)) == fixtures::bytes_of(model));
}

TEST_CASE("Experts learn the same from volumes that wait on the disk") {
  voxels::TrainConfig config = fixtures::small_config();
  config.experts = true;
  config.validation.fraction = 0;
  const Context context = fixtures::context_of(2);
  const test::Folder folder;
  std::vector<std::string> bytes;
  for (const bool waits : {false, true}) {
    std::vector<voxels::TrainingVolume> volumes = fixtures::hard_volumes(5);
    pbt::Model model =
        pbt::train_trees(volumes, fixtures::space_of(config), config, {}, nullptr, context);
    const auto scratch = voxels::make_scratch(folder / "");
    for (voxels::TrainingVolume& volume : volumes) {
      if (waits) volume.stow(scratch);
    }
    voxels::TrainReport report;
    add_experts(model, config, volumes, report, context);
    REQUIRE_FALSE(model.experts.empty());
    bytes.push_back(fixtures::bytes_of(model));
  }
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("A model with experts comes back from its file, and one without has no section of them") {
  const pbt::Model& model = model_with_experts();
  const std::string bytes = fixtures::bytes_of(model);
  const pbt::Model back = fixtures::model_of(bytes);
  CHECK(fixtures::bytes_of(back) == bytes);
  CHECK(back.experts.beta == model.experts.beta);
  const TrainResult plain = trained(2, false, false);
  const auto sections = models::encode_model(std::get<pbt::Model>(*plain.model)).sections;
  CHECK(sections.count("experts") + sections.count("expert_coefficients") == 0);
}

TEST_CASE("A model with atlases says whose images it holds, and comes back from its file") {
  const auto& [model, told] = model_with_atlases();
  CHECK_THAT(model.info.about.card.licence, Catch::StartsWith("holds images of 3 training cases"));
  CHECK_THAT(told, Catch::Contains("from which people may be known"));
  const std::string bytes = fixtures::bytes_of(model);
  CHECK(fixtures::bytes_of(fixtures::model_of(bytes)) == bytes);
  const auto [image, labels] = halves(fixtures::grid_of(kSize), kCentre, 99);
  const Model opened = open_model(models::AnyModel(model), Device::cpu());
  const Detection found = detect(opened, {image}, {}, fixtures::context_of(2));
  CHECK(dice(found.labels, labels) > dice(detected(image).labels, labels) - 0.005);
  pbt::Model changed = model;
  changed.experts.atlases[1].part[7] = 2;
  CHECK_THROWS_WITH(experts::check_experts(changed.experts, 1), Catch::Contains("not sound"));
  changed = model;
  changed.experts.atlases[1].size.x = 1 << 30;
  CHECK_THROWS_WITH(experts::check_experts(changed.experts, 1), Catch::Contains("not sound"));
  changed = model;
  changed.experts.atlases[1].placement.matrix = {{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
  CHECK_THROWS_WITH(experts::check_experts(changed.experts, 1), Catch::Contains("not sound"));
}

TEST_CASE("Damaged experts are refused") {
  const pbt::Model& model = model_with_experts();
  const auto with = [&](const char* section, size_t at, uint64_t value) {
    return fixtures::message_of(fixtures::edited(model, [&](models::Container& c) {
      fixtures::put(c.sections.at(section).bytes, at, value, 4);
    }));
  };
  CHECK(with("experts", 0, 2).empty());
  CHECK_THAT(with("experts", 0, 3), Catch::Contains("know other structures"));
  CHECK_THAT(with("experts", 0, 0), Catch::Contains("know other structures"));
  CHECK_THAT(with("experts", 12, 0x40100000), Catch::Contains("no rotation"));
  CHECK_THAT(with("expert_coefficients", 8, (1 << 27) + 1), Catch::Contains("too large"));
  pbt::Model changed = model;
  changed.experts.entries[5] = 1 << 20;
  CHECK_THROWS_WITH(experts::check_experts(changed.experts, 2), Catch::Contains("beyond"));
  changed.experts.beta.pop_back();
  CHECK_THROWS_WITH(experts::check_experts(changed.experts, 2), Catch::Contains("not as many"));
}

TEST_CASE("Where the trees find nothing the labels are empty") {
  Volume<float> image(fixtures::grid_of(kSize), 300);
  const Detection found = detected(image);
  CHECK(found.voxels == 0);
  CHECK(std::ranges::count(found.labels, 0) == found.labels.voxels());
}

TEST_CASE("The parts of a structure are told apart, at the border of the image too") {
  check_found(fixtures::grid_of(kSize), kCentre, 0.85);
  check_found(fixtures::grid_of(kSize), {3, 2, 2}, 0.75);
  check_found(fixtures::grid_of({24, 18, 4}), {12, 9, 1}, 0.75);  // a slab
}

TEST_CASE("An oblique image, and one much larger than those of the training") {
  Grid oblique = fixtures::grid_of({26, 22, 18});
  const double angle = 0.4;
  oblique.direction = {
      {{std::cos(angle), -std::sin(angle), 0}, {std::sin(angle), std::cos(angle), 0}, {0, 0, 1}}};
  oblique.origin_mm = {-30, 12, 5};
  check_found(oblique, world_from_index(oblique, {13, 11, 9}), 0.75);
  check_found(fixtures::grid_of({90, 70, 60}), {60, 20, 41}, 0.8);
}
