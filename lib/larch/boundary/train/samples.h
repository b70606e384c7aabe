// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/boundary/train/train.h"
#include "larch/tree/train/samples.h"

namespace larch::boundary {

/// The places that a level learns from.
struct Places {
  tree::Samples samples;
  std::vector<features::SteerableFrame> frames;
  std::vector<uint32_t> case_of;
  std::vector<size_t> first;  ///< of each case; one more at the end
  double range_voxels = 4;
  double before_mm = 0;  ///< mean distance of the vertices from the surface
};

/// Places on the normals of the meshes as a level finds them: on the boundary within half a voxel
/// of the true surface, off it beyond two. The range of displacements covers 95 % of the distances
/// of the vertices, at least 4 and at most 12 voxels. `meshes`: the vertices that the level begins
/// with.
Places draw_places(const std::vector<TrainingCase>& cases, const Meshes& meshes, const Model& model,
                   int level, int halvings, const BoundaryConfig& config, const Context& context);

/// The mean of the model at true poses with errors that are drawn.
Meshes draw_starts(const std::vector<TrainingCase>& cases, const Model& model,
                   const pose::RelativeGaussian& errors, int starts,
                   std::vector<std::vector<Pose>>& poses, const Context& context);

/// Draws the same at poses where the structure is not, or hardly: with errors that are four times
/// as large as others, anywhere in the image, and at the pose of another case. Number kInNoise is
/// usual, for an image of noise.
constexpr size_t kInNoise = 3;
Meshes draw_wrong_starts(const std::vector<TrainingCase>& cases, const Model& model,
                         const pose::RelativeGaussian& errors,
                         std::vector<std::vector<Pose>>& poses, const Context& context);

/// Returns an image whose voxels are drawn from those of another one, fewer than 2^32.
Volume<int16_t> noise_of(const Volume<int16_t>& image, uint64_t seed);

/// Returns the signed distance of a place (mm along the axes of the grid) from the true surface.
double distance_at(const TrainingCase& c, const Vec3d& at_mm);

}  // namespace larch::boundary
