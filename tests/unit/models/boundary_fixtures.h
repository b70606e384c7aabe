// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/boundary/train/train.h"
#include "larch/mesh/sphere_template.h"
#include "tests/unit/models/model_fixtures.h"

namespace larch::fixtures {

/// A classifier of random trees on the first steerable features.
inline boundary::Stage random_boundary_stage(int32_t halvings, uint64_t seed) {
  RandomTree spec;
  spec.depth = 2;
  spec.weaks = 3;
  spec.features = 24;
  spec.stop = 0;
  boundary::Stage stage;
  stage.halvings = halvings;
  stage.range_voxels = 5.25;
  static_cast<tree::Ensemble&>(stage.trees) = random_model(seed, spec);
  for (uint8_t i = 0; i < 24; ++i) {
    stage.features.push_back({features::SteerableType::kLogAngleD, uint8_t(i % 3), uint8_t(i)});
  }
  stage.trees.self_tests = tree::make_self_tests(stage.trees, 24, seed);
  return stage;
}

/// A boundary model of two levels in which no member has the value it begins with.
inline boundary::Model full_boundary() {
  boundary::Model model;
  model.space = full_model().space;
  model.space.spacing_mm = {1.5, 1.5, 1.5};
  model.structure = "left kidney, \"Niere\" \xc3\xa9";
  model.labels = {3, 4};
  model.refine.search = boundary::ShapeSearch::kNone;
  model.refine.search_modes = 2;
  model.refine.modes = 7;
  model.refine.iterations = 3;
  model.refine.smoothing = boundary::Smoothing::kPositions;
  model.refine.lambda = {1.0 / 3};
  model.refine.project = {0.5, 0.25};
  model.refine.fairing = 0.125;
  for (const Vec3d& u : mesh::sphere_template().unit) {
    model.shape.mean_mm.push_back({9 * u.x, 7 * u.y, 6 * u.z});
  }
  model.shape.edges_mm = {18, 14, 12};
  model.shape.variances_mm2 = {2, 1.0 / 7};
  model.shape.modes = {model.shape.mean_mm, mesh::sphere_template().unit};
  model.shape.quality = {12, 1, 0.875, 0.5, 1.0 / 3};
  Grid grid = grid_of({4, 3, 2});
  grid.spacing_mm = {1.25, 1.25, 1.25};
  model.mean_distance_mm = Volume<float>(grid, 2.5F);
  model.stages = {random_boundary_stage(1, 5), random_boundary_stage(0, 6)};
  model.confidence = {{1, 0.5, 0.25, 2, 1.0 / 3}, {1, 2, 3, 4, 1.0 / 7}, {{0.5, -1.25}, 0.75, 0.5}};
  model.info.validation = {{"level 0 recall", 0.125}};
  return model;
}

/// Such a model and one of another structure, of one level.
inline boundary::Models full_boundaries() {
  boundary::Models models;
  models.structures.assign(2, full_boundary());
  models.structures[1].structure = "liver";
  models.structures[1].labels = {9};
  models.structures[1].stages.pop_back();
  models.space = models.structures[0].space;
  models.info = {"0.1.0", R"({"boundary":{"folds":4}})", {"00ff", "aa11"}, 77, {}};
  return models;
}

/// The training of such a model after the first level, with two cases.
inline boundary::PartialTraining full_boundary_training() {
  boundary::PartialTraining training;
  training.model = full_boundary();
  training.model.stages.pop_back();
  std::vector<Vec3d> mesh(training.model.shape.mean_mm.begin(),
                          training.model.shape.mean_mm.begin() + mesh::kTemplateVertices[0]);
  training.meshes.assign(2, {mesh, mesh});
  training.meshes[1][1][600].y = 1.0 / 3;
  training.astray.assign(2, {mesh, mesh, mesh, mesh});
  training.report = {{5.25, 400, 800, 0.75, 1.5, 0.25, 1, 2, 3}};
  return training;
}

}  // namespace larch::fixtures
