// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Hierarchical detection networks and checkpoints of them: the way to a file and back, and what is
// refused.
#include <cmath>
#include <sstream>

#include <catch2/catch.hpp>

#include "larch/models/binary_layout.h"
#include "larch/models/hdn_layout.h"
#include "larch/models/model_file.h"
#include "tests/unit/models/hdn_fixtures.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;
using fixtures::full_network;
using fixtures::full_training;
using fixtures::read_bytes;
using fixtures::reading;

std::string file_of(const hdn::Model& model) {
  const test::Folder folder;
  write_model(folder / "model", model);
  return read_bytes(folder / "model");
}
std::string file_of(const hdn::PartialTraining& training) {
  const test::Folder folder;
  write_checkpoint(folder / "model.ckpt", training, "same");
  return read_bytes(folder / "model.ckpt");
}
hdn::PartialTraining training_of(const std::string& bytes, const std::string& fingerprint) {
  return reading(bytes, [&](const std::string& path) {
    return read_checkpoint<hdn::PartialTraining>(path, fingerprint);
  });
}

const auto read_hdn = [](const std::string& path) { return read_model<hdn::Model>(path); };

}  // namespace

TEST_CASE("A network comes back from its file with the same bytes") {
  const hdn::Model model = full_network();
  const std::string bytes = file_of(model);
  const hdn::Model back = reading(bytes, read_hdn);
  CHECK(file_of(back) == bytes);
  CHECK(back.structures.at(1).parent == 0);
  CHECK(back.structures[1].to_parent == model.structures[1].to_parent);
  CHECK(back.structures[1].mean == model.structures[1].mean);
  REQUIRE(back.structures[1].root_position.size() == 1);
  REQUIRE(back.structures[0].detectors.size() == 3);
  const hdn::Detector& turned = back.structures[0].detectors[1];
  CHECK(turned.stage.kind == hdn::StageKind::kOrientation);
  CHECK(turned.stage.rotations == model.structures[0].detectors[1].stage.rotations);
  CHECK(turned.steerable.at(2).type == features::SteerableType::kLogAngleD);
  CHECK(turned.trees.weaks.size() == model.structures[0].detectors[1].trees.weaks.size());
  CHECK(back.padding == image::Padding::kZero);
  CHECK(back.mean_of_first == 100);
  const hdn::Appearance &seen = back.structures[0].appearance,
                        &written = model.structures[0].appearance;
  CHECK(seen.gains == written.gains);
  CHECK(seen.mean == written.mean);
  CHECK(seen.weight == written.weight);
  CHECK_FALSE(back.structures[1].appearance.exists());
  CHECK(export_json(back) == export_json(model));
}

TEST_CASE("A forest of a network comes back too, and a damaged one is refused") {
  hdn::Model model = full_network();
  hdn::Detector& turned = model.structures[0].detectors[1];
  turned.trees = {};
  turned.forest = fixtures::random_forest(3, 4, 3, 24);
  const std::string bytes = file_of(model);
  const hdn::Model back = reading(bytes, read_hdn);
  CHECK(file_of(back) == bytes);
  CHECK(fixtures::same(back.structures[0].detectors[1].forest, turned.forest));
  CHECK(export_json(back) == export_json(model));
  const auto [read, refused] =
      fixtures::count_damage(to_container(model), {"structures/0/detectors/1/forest/nodes"}, 100,
                             [](const std::string& path) { read_model<hdn::Model>(path); });
  CHECK(refused > 50);
  turned.forest.self_tests[5].leaves[2] ^= 1;
  CHECK_THROWS_WITH(reading(file_of(model), read_hdn), Catch::Contains("self-test 5"));
  turned.trees = model.structures[0].detectors[0].trees;
  CHECK_THROWS_WITH(hdn::check_model(model), Catch::Contains("beside boosting trees"));
}

TEST_CASE("A network that is damaged, cut, of a higher version or of other trees is refused") {
  const hdn::Model model = full_network();
  const std::string bytes = file_of(model);
  fixtures::require_refusal_of_damage(bytes, read_hdn);
  Container newer = to_container(model);
  newer.kind_version = 4;
  CHECK_THROWS_WITH(reading(encode_container(newer), read_hdn), Catch::Contains("newer program"));
  hdn::Model other = model;
  other.structures[1].root_position[0].trees.self_tests.at(9).probability_q32 ^= 1U << 20;
  CHECK_THROWS_WITH(reading(file_of(other), read_hdn), Catch::Contains("self-test vector 9"));
}

TEST_CASE("Damage under right digests never crashes the reader of networks") {
  const Container original = to_container(full_network());
  const auto [read, refused] = fixtures::count_damage(
      original,
      {"meta", "structures", "channels", "structures/0/detectors/0/haar_features",
       "structures/0/detectors/1/steerable_features", "structures/1/root_position/0/nodes",
       "structures/0/appearance"},
      30, [](const std::string& path) { describe_model(read_model<hdn::Model>(path)); });
  CHECK(refused > 100);
  CHECK(read > 0);
}

TEST_CASE("A network that detection could not bear is refused") {
  const auto refused = [](auto&& edit, const char* why) {
    hdn::Model damaged = full_network();
    edit(damaged);
    CHECK_THROWS_WITH(hdn::check_model(damaged), Catch::Contains(why));
  };
  refused([](auto& m) { m.structures[0].detectors[0].haar[0].cuboids[0].hi.x = 129; },
          "too far away");
  refused([](auto& m) { m.structures[1].root_position[0].haar[1].channel = 60; }, "channel");
  refused([](auto& m) { m.structures[0].mean.edges_mm.y = 1e-300; }, "mean box");
  refused([](auto& m) { m.structures[0].mean.centre_mm.x = 1e301; }, "more than 1e7 mm");
  refused([](auto& m) { m.structures[0].symmetries[0] = {0, 0, 0, 2}; }, "no rotation");
  refused([](auto& m) { m.structures[0].symmetries[0].w = std::nan(""); }, "no rotation");
  refused([](auto& m) { m.structures[1].to_parent.mean[8] = 800; }, "Gaussian");
  refused([](auto& m) { m.structures[1].parent = 1; }, "before its parent");
  refused([](auto& m) { m.structures[0].detectors[1].stage.level = 2; }, "level");
  refused([](auto& m) { m.space.intensity.steps = 0; }, "intensity");
  refused([](auto& m) { m.structures[0].appearance.gains[8] = 1.5; }, "appearance");
  refused([](auto& m) { m.structures[0].appearance.mean.pop_back(); }, "appearance");
  refused([](auto& m) { m.structures[0].appearance.mean[5] = 1 << 30; }, "appearance");
  refused([](auto& m) { m.structures[0].appearance.weight[5] = -1; }, "appearance");
  refused([](auto& m) { m.structures[1].appearance.weight = {1}; }, "appearance");
}

TEST_CASE("A checkpoint goes on with the same settings alone") {
  const hdn::PartialTraining training = full_training();
  const std::string bytes = file_of(training);
  const hdn::PartialTraining back = training_of(bytes, "same");
  CHECK(file_of(back) == bytes);
  CHECK(back.found.at(1).at(0).candidates.empty());
  CHECK(back.elsewhere.at(0).at(0).log_odds == -3.25);
  CHECK(back.found[0][1].candidates.at(0).score == -700.25F);
  CHECK(back.found[0][1].clusters.at(0).spread_rad == 0.125);
  CHECK(back.report.stages.at(0).first_positive == std::vector<int>{0, -1});
  CHECK_THROWS_WITH(training_of(bytes, "other"), Catch::Contains("other settings"));
  CHECK_THROWS_WITH(training_of(file_of(full_network()), "same"),
                    Catch::Contains("finished model"));

  const auto refused = [&](auto&& edit) {
    hdn::PartialTraining damaged = training;
    edit(damaged);
    CHECK_THROWS_AS(training_of(file_of(damaged), "same"), InputError);
  };
  refused([](auto& t) { t.found.pop_back(); });
  refused([](auto& t) { t.found[0].pop_back(); });
  refused([](auto& t) { t.report.stages.clear(); });
  refused([](auto& t) { t.found[0][1].candidates[0].pose.rotation.w = 3; });
  refused([](auto& t) { t.found[0][1].candidates[0].probability = NAN; });
  refused([](auto& t) { t.found[0][1].candidates.resize(513, t.found[0][1].candidates[0]); });
  refused([](auto& t) { t.model.structures[0].detectors[0].stage.keep = 0; });
}
