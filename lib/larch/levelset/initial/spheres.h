// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/data/volume.h"
#include "larch/levelset/levelset_config.h"

namespace larch::levelset {

/// A ball by index, its radius in mm.
struct Ball {
  Vec3d index{};
  double radius_mm = 0;
};

/// Throws UsageError where the centre is outside of the image (beyond half a voxel of the outermost
/// centres), the radius is not above 0, or no voxel's centre lies in the ball. `name` starts the
/// message: "seed 1".
Ball ball_of(const Sphere& sphere, const Grid& grid, const std::string& name);

/// Signed distance to the union of balls, in mm, negative inside, held within `most_mm`. Distances
/// run along the axes of the image, which are taken to be orthogonal.
Volume<float> distance_to_balls(std::span<const Ball> balls, const Grid& grid, double most_mm,
                                int threads);

}  // namespace larch::levelset
