// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Boundary models and checkpoints of them: the way to a file and back, and what is refused.
#include <cmath>
#include <sstream>

#include <catch2/catch.hpp>

#include "larch/models/binary_layout.h"
#include "larch/models/boundary_layout.h"
#include "larch/models/model_file.h"
#include "tests/unit/models/boundary_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;
using fixtures::full_boundaries;
using fixtures::full_boundary;
using fixtures::full_boundary_training;
using fixtures::read_bytes;
using fixtures::reading;

std::string file_of(const boundary::Models& model) {
  const test::Folder folder;
  write_model(folder / "model", model);
  return read_bytes(folder / "model");
}
std::string file_of(const boundary::PartialTraining& training) {
  const test::Folder folder;
  write_checkpoint(folder / "model.ckpt", training, "same");
  return read_bytes(folder / "model.ckpt");
}
boundary::PartialTraining training_of(const std::string& bytes, const std::string& fingerprint) {
  return reading(bytes, [&](const std::string& path) {
    return read_checkpoint<boundary::PartialTraining>(path, fingerprint);
  });
}

const auto read_boundary = [](const std::string& path) {
  return read_model<boundary::Models>(path);
};

}  // namespace

TEST_CASE("A boundary model comes back from its file with the same bytes") {
  const boundary::Models all = full_boundaries();
  const std::string bytes = file_of(all);
  const boundary::Models read = reading(bytes, read_boundary);
  CHECK(file_of(read) == bytes);
  REQUIRE(read.structures.size() == 2);
  CHECK(read.structures[1].structure == "liver");
  CHECK(read.structures[1].levels() == 1);
  CHECK(read.structures[1].space.spacing_mm == all.space.spacing_mm);
  CHECK(read.info.seed == 77);
  const boundary::Model &model = all.structures[0], &back = read.structures[0];
  CHECK(back.structure == model.structure);
  CHECK(back.labels == model.labels);
  CHECK(back.space.spacing_mm == model.space.spacing_mm);
  CHECK(back.refine.smoothing == boundary::Smoothing::kPositions);
  CHECK(back.refine.project == model.refine.project);
  CHECK(back.shape.mean_mm == model.shape.mean_mm);
  CHECK(back.shape.modes == model.shape.modes);
  CHECK(back.shape.quality.specificity_mm == model.shape.quality.specificity_mm);
  CHECK(back.mean_distance_mm(Vec3i{3, 2, 1}) == 2.5F);
  REQUIRE(back.levels() == 2);
  CHECK(back.stages[0].range_voxels == 5.25);
  CHECK(back.stages[1].features.at(5).point == 5);
  CHECK(back.info.validation == model.info.validation);
  CHECK(back.confidence.deviations == model.confidence.deviations);
  CHECK(back.confidence.calibration.probability.offset == -1.25);
  CHECK(export_json(read) == export_json(all));
}

TEST_CASE(
    "A boundary model that is damaged, cut, of a higher version or of other trees is refused") {
  const boundary::Models models = full_boundaries();
  const std::string bytes = file_of(models);
  fixtures::require_refusal_of_damage(bytes, read_boundary);
  Container other_version = to_container(models);
  other_version.kind_version = 4;
  CHECK_THROWS_WITH(reading(encode_container(other_version), read_boundary),
                    Catch::Contains("newer program"));
  other_version.kind_version = 2;
  CHECK_THROWS_WITH(reading(encode_container(other_version), read_boundary),
                    Catch::Contains("train the model anew"));
  const auto refused = [&](auto&& edit, const char* why) {
    boundary::Models other = models;
    edit(other);
    CHECK_THROWS_WITH(reading(file_of(other), read_boundary), Catch::Contains(why));
  };
  refused(
      [](auto& m) { m.structures[1].stages[0].trees.self_tests.at(9).probability_q32 ^= 1U << 20; },
      "self-test vector 9");
  refused([](auto& m) { m.structures[1].stages.clear(); }, "no level");
  refused([](auto& m) { m.structures[1].structure = m.structures[0].structure; }, "one name");
  refused([](auto& m) { m.structures.clear(); }, "no structure");
}

TEST_CASE("Damage under right digests never crashes the reader of boundary models") {
  const Container original = to_container(full_boundaries());
  const auto [read, refused] = fixtures::count_damage(
      original,
      {"meta", "structures", "structures/0/modes", "structures/1/mean_shape",
       "structures/0/levels/1/features", "structures/1/levels/0/nodes"},
      60, [](const std::string& path) { describe_model(read_model<boundary::Models>(path)); });
  CHECK(refused > 50);
  CHECK(read > 0);
}

TEST_CASE("A boundary model that refinement could not bear is refused") {
  const auto refused = [](auto&& edit, const char* why) {
    boundary::Model damaged = full_boundary();
    edit(damaged);
    CAPTURE(why);
    CHECK_THROWS_AS(boundary::check_model(damaged), InputError);
    CHECK_THROWS_WITH(boundary::check_model(damaged), Catch::Contains(why));
  };
  refused([](auto& m) { m.space.spacing_mm.y = 2; }, "no cubes");
  refused([](auto& m) { m.space.intensity.steps = 0; }, "intensity");
  refused([](auto& m) { m.structure.clear(); }, "no name");
  refused([](auto& m) { m.stages.resize(4, m.stages[0]); }, "too many levels");
  refused([](auto& m) { m.refine.lambda.clear(); }, "rules of refinement");
  refused([](auto& m) { m.refine.project[0] = NAN; }, "rules of refinement");
  refused([](auto& m) { m.refine.iterations = 0; }, "rules of refinement");
  refused([](auto& m) { m.shape.modes.pop_back(); }, "shape model");
  refused([](auto& m) { m.shape.mean_mm[2401].z = NAN; }, "shape model");
  refused([](auto& m) { m.shape.edges_mm.z = -1; }, "mean shape");
  refused([](auto& m) { m.confidence.usual.pop_back(); }, "confidence");
  refused([](auto& m) { m.confidence.deviations[4] = 0; }, "confidence");
  refused([](auto& m) { m.confidence.calibration.found = 0.25; }, "confidence");
  refused([](auto& m) { m.stages[1].halvings = 5; }, "level 1 has no such resolution");
  refused([](auto& m) { m.stages[0].range_voxels = NAN; }, "level 0 searches too far");
  refused([](auto& m) { m.stages[0].features[3].point = 255; }, "steerable feature");
  refused([](auto& m) { m.stages[1].features.clear(); }, "feature");
}

TEST_CASE("A checkpoint of a boundary goes on with the same settings alone") {
  const boundary::PartialTraining training = full_boundary_training();
  const std::string bytes = file_of(training);
  const boundary::PartialTraining back = training_of(bytes, "same");
  CHECK(file_of(back) == bytes);
  CHECK(back.meshes == training.meshes);
  CHECK(back.astray == training.astray);
  CHECK(back.report.at(0).recall == 0.75);
  CHECK(back.report[0].negatives == 800);
  CHECK_THROWS_WITH(training_of(bytes, "other"), Catch::Contains("other settings"));
  CHECK_THROWS_WITH(training_of(file_of(full_boundaries()), "same"),
                    Catch::Contains("finished model"));
  for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 40) {
    CHECK_THROWS_AS(training_of(bytes.substr(0, i), "same"), InputError);
  }

  const auto refused = [&](auto&& edit) {
    boundary::PartialTraining damaged = training;
    edit(damaged);
    CHECK_THROWS_AS(training_of(file_of(damaged), "same"), InputError);
  };
  refused([](auto& t) { t.meshes.clear(); });
  refused([](auto& t) { t.meshes[1].pop_back(); });
  refused([](auto& t) { t.meshes[0][1].pop_back(); });
  refused([](auto& t) { t.meshes[0][0][3].x = NAN; });
  refused([](auto& t) { t.astray.pop_back(); });
  refused([](auto& t) { t.astray[1][2].pop_back(); });
  refused([](auto& t) { t.report.clear(); });
  refused([](auto& t) { t.model.stages.clear(); });
  refused([](auto& t) { t.model.shape.variances_mm2[0] = -1; });
}
