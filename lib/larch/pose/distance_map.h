// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/volume.h"

namespace larch::pose {

/// A signed distance in mm, negative inside, and its gradient along the axes of the grid.
struct DistanceSample {
  double mm = 0;
  Vec3d gradient{};
};

/// Returns the value of a map of distances at a place in the world, by linear interpolation; beyond
/// the grid, the distance to the grid is added to the value there.
DistanceSample sample_distance(const Volume<float>& distance_mm, const Vec3d& at_mm);

/// Returns the signed distances (mm) from the surface of a mask, which lies half a voxel beyond the
/// centres of its outermost voxels, on the part of the grid with the mask and a margin; where that
/// would have more than `longest` voxels along an axis, some are passed over. The mask is not
/// empty.
Volume<float> distance_map(const Volume<uint8_t>& mask, int32_t longest);

}  // namespace larch::pose
