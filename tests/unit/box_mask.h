// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/volume.h"

namespace larch::test {

/// A grid at the origin of the world, with the axes of the patient.
inline Grid grid_of(const Vec3i& size, const Vec3d& spacing_mm = {1, 1, 1}) {
  Grid grid;
  grid.size = size;
  grid.spacing_mm = spacing_mm;
  return grid;
}

/// A mask of `size` voxels that is 255 from `low` to `high`, both included, and 0 elsewhere.
inline Volume<uint8_t> box_mask(const Vec3i& size, const Vec3i& low, const Vec3i& high,
                                const Vec3d& spacing_mm = {1, 1, 1}) {
  const Grid grid = grid_of(size, spacing_mm);
  Volume<uint8_t> mask(grid);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    bool inside = true;
    for (int axis = 0; axis < 3; ++axis) {
      inside = inside && at[axis] >= low[axis] && at[axis] <= high[axis];
    }
    mask[i] = inside ? 255 : 0;
  }
  return mask;
}

}  // namespace larch::test
