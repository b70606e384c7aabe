// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/boundary/refine.h"
#include "larch/features/steerable/steerable.h"
#include "larch/mesh/sphere_template.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::boundary {
namespace {

using test::cuda_context;
using test::same_bytes;
using test::sized;

Stage random_stage(int32_t halvings, uint64_t seed) {
  fixtures::RandomTree spec;
  spec.depth = 4;
  spec.weaks = 20;  // more than lanes that share a place on a GPU
  pbt::Model trees = fixtures::random_ensemble(seed, 2, spec);
  Stage stage;
  stage.halvings = halvings;
  const auto pool =
      features::steerable_pool(features::SteerableSet::kBase9, features::kVertexPoints);
  for (uint64_t i = 0; i < trees.features.size(); ++i) {
    stage.features.push_back(pool[hash_below(seed, 2, i, static_cast<uint32_t>(pool.size()))]);
  }
  stage.trees = std::move(static_cast<tree::Ensemble&>(trees));
  return stage;
}

/// An ellipsoid whose modes stretch it and shake its vertices.
Model random_model(int levels) {
  Model model;
  model.structure = "organ";
  for (const Vec3d& u : mesh::sphere_template().unit) {
    model.shape.mean_mm.push_back({9 * u.x, 7 * u.y, 6 * u.z});
  }
  model.shape.edges_mm = {18, 14, 12};
  for (uint64_t mode = 0; mode < 5; ++mode) {
    auto& of = model.shape.modes.emplace_back();
    for (size_t v = 0; v < model.shape.mean_mm.size(); ++v) {
      const Vec3d& m = model.shape.mean_mm[v];
      const double shake = hash_unit(5, mode, v) - 0.5;
      of.push_back({mode == 0 ? m.x : shake, mode == 1 ? m.y : shake, mode == 2 ? m.z : shake});
    }
    model.shape.variances_mm2.push_back(0.01 / static_cast<double>(mode + 1));
  }
  for (int l = 0; l < levels; ++l) {
    model.stages.push_back(random_stage(l == 2 ? 0 : 1, static_cast<uint64_t>(l) + 3));
  }
  return model;
}

Refined refined(const Model& model, const Start& start, int first, const Context& context) {
  const ResidentModel resident = make_resident(model, context.device);
  const auto images =
      make_images({&resident, 1}, fixtures::noise_volume({31, 26, 24}, 8, 0, 1023), {}, context);
  return refine(resident, images, start, first, model.levels() - 1, context);
}

const Pose kPose{{15, 12, 11}, canonical(from_rotation_vector({0.3, -0.5, 0.2})), {17, 15, 11}};

void require_same(const Model& model, const Start& start, int first) {
  const Refined there = refined(model, start, first, cuda_context());
  Context context;
  for (const int threads : {1, 3}) {
    context.threads = threads;
    const Refined here = refined(model, start, first, context);
    REQUIRE(same_bytes(here.vertices_mm, there.vertices_mm));
    REQUIRE(same_bytes(here.probability, there.probability));
  }
}

TEST_CASE("a mesh is refined to the same bytes",
          "[boundary::search_shape][boundary::begin_level][boundary::score][boundary::update]") {
  Model model = random_model(sized(3, 1));
  model.refine.iterations = sized(4, 1);
  model.refine.search_modes = sized(3, 2);
  require_same(model, {kPose, {}}, 0);
}

TEST_CASE("a mesh without search, shape and weighted displacements has the same bytes",
          "[boundary::update]") {
  Model model = random_model(sized(2, 1));
  model.refine.iterations = 1;
  model.refine.search = ShapeSearch::kNone;
  model.refine.smoothing = Smoothing::kPositions;
  model.refine.project = {0};
  require_same(model, {kPose, {}}, 0);
}

TEST_CASE("levels that go on from vertices have the same bytes", "[boundary::begin_level]") {
  Model model = random_model(2);
  model.refine.iterations = sized(2, 1);
  std::vector<Vec3d> vertices = placed_mean(model, kPose);
  vertices.resize(static_cast<size_t>(mesh::kTemplateVertices[0]));
  require_same(model, {{}, vertices}, 1);
}

TEST_CASE("the best places have the same bytes", "[boundary::score]") {
  const Model model = random_model(1);
  std::vector<Vec3d> vertices = placed_mean(model, kPose);
  const auto places = [&](const Context& context) {
    const ResidentModel resident = make_resident(model, context.device);
    const auto images =
        make_images({&resident, 1}, fixtures::noise_volume({31, 26, 24}, 8, 0, 1023), {}, context);
    return best_places(resident, images, vertices, 0, context);
  };
  REQUIRE(same_bytes(places({}), places(cuda_context())));
}

}  // namespace
}  // namespace larch::boundary
