// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "larch/boundary/refine.h"
#include "larch/hdn/train/train.h"
#include "larch/learning/train_hooks.h"
#include "larch/pose/relative.h"

namespace larch::boundary {

/// One image with the surface of the structure.
struct TrainingCase {
  hdn::TrainingCase image;      ///< one level, the finest; its one truth is the true pose
  Volume<float> distance_mm{};  ///< signed, from the true surface; world
};

/// The result of a level in cases that its classifier had not learned from; with one fold, in those
/// that it had.
struct LevelReport {
  double range_voxels = 0;
  size_t positives = 0, negatives = 0;
  double recall = 0;  ///< vertices whose best displacement is within half a voxel of the boundary
  double before_mm = 0, after_mm = 0;  ///< mean distance of the vertices from the true surface
  double seconds_features = 0, seconds_trees = 0, seconds_refinement = 0;
};

/// Holds what a training tells beside the model.
struct TrainReport {
  std::vector<LevelReport> levels;
  size_t accepted = 0, accepted_strictly = 0, retried = 0;      ///< cases in the shape
  std::vector<std::pair<std::string, std::string>> rejected{};  ///< cases with the reason
  double distance_voxels = 0;  ///< mean distance of the accepted ones from their surfaces
};

/// A mesh of each start of each case: [case][start].
using Meshes = std::vector<std::vector<std::vector<Vec3d>>>;

/// A training that is not finished: the levels so far and where they have led to.
struct PartialTraining {
  Model model;
  Meshes meshes;
  Meshes astray;  ///< of wrong starts, from which nothing is learned
  std::vector<LevelReport> report;
};

using TrainHooks = learning::TrainHooks<PartialTraining>;

/// Trains the classifiers level by level, each on the meshes that those before it made of cases
/// they had not learned from; those of the first level are the mean at true poses with the errors
/// `errors`. `cases`: sorted by their digests; `start`: a model with space and shape. The result
/// depends on cases, configuration and context.seed alone. Throws InputError where a level sees no
/// boundary, UsageError, MemoryError, and Stopped after a level.
Model train_boundary(const std::vector<TrainingCase>& cases, const Model& start,
                     const BoundaryConfig& config, const hdn::SharedConfig& shared,
                     const pose::RelativeGaussian& errors, const TrainHooks& hooks,
                     std::vector<LevelReport>& report, const Context& context);

/// Returns the errors of the configuration.
pose::RelativeGaussian errors_of(const BoundaryConfig& config);

/// Returns the mean distance (mm) of vertices (mm along the axes of the grid) from the true
/// surface.
double mean_distance_mm(const TrainingCase& c, const std::vector<Vec3d>& vertices_mm);

}  // namespace larch::boundary
