// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "larch/core/parallel.h"
#include "larch/data/grid.h"
#include "larch/data/pose.h"

namespace larch::pose {

/// Returns a box whose faces lie `margin_mm` farther out.
inline Pose widened(Pose box, double margin_mm) {
  for (int axis = 0; axis < 3; ++axis) box.edges_mm[axis] += 2 * margin_mm;
  return box;
}

/// Tells whether the centre of a voxel lies in a box, its faces included.
inline bool holds(const Pose& box, const Grid& grid, const Vec3i& at) {
  const Vec3d in_box = box_from_world(box, world_from_index(grid, at.cast<double>()));
  return std::max({std::abs(in_box.x), std::abs(in_box.y), std::abs(in_box.z)}) <= 0.5;
}

/// Returns the first voxel and the one after the last along each axis that can lie in a box.
inline std::pair<Vec3i, Vec3i> voxels_around(const Pose& box, const Grid& grid) {
  std::pair<Vec3i, Vec3i> range{grid.size, {0, 0, 0}};
  for (int number = 0; number < 8; ++number) {
    const Vec3d at = index_from_world(grid, corner(box, number));
    for (int axis = 0; axis < 3; ++axis) {
      const double size = grid.size[axis];
      const auto low = static_cast<int>(std::clamp(std::floor(at[axis]), 0.0, size));
      const auto end = static_cast<int>(std::clamp(std::ceil(at[axis]) + 1, 0.0, size));
      range.first[axis] = std::min(range.first[axis], low);
      range.second[axis] = std::max(range.second[axis], end);
    }
  }
  return range;
}

/// Calls body(voxel) for each voxel of a grid that a box holds, slices side by side.
template <class Body>
void for_voxels_in(const Pose& box, const Grid& grid, int threads, const Body& body) {
  const std::pair<Vec3i, Vec3i> range = voxels_around(box, grid);
  const Vec3i first = range.first, end = range.second;
  parallel_for_each(threads, std::max(end.z - first.z, 0), 1, [&](int64_t slice) {
    const int z = first.z + static_cast<int>(slice);
    for (int y = first.y; y < end.y; ++y) {
      for (int x = first.x; x < end.x; ++x) {
        if (holds(box, grid, {x, y, z})) body(Vec3i{x, y, z});
      }
    }
  });
}

}  // namespace larch::pose
