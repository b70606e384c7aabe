// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "larch/core/error.h"
#include "larch/data/volume.h"

namespace larch::phantom {

/// An image and the truth about it.
template <class Image>
struct Sample {
  Image image;
  LabelVolume labels;
};

/// Returns the grid of these voxels with axes LPS whose centre is the world's origin.
inline Grid centred_grid(const std::array<int, 3>& size, const std::array<double, 3>& spacing_mm) {
  Grid grid;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<size_t>(axis);
    grid.size[axis] = size[k];
    grid.spacing_mm[axis] = spacing_mm[k];
    grid.origin_mm[axis] = -0.5 * (size[k] - 1) * spacing_mm[k];
  }
  return grid;
}

/// Returns a case whose image and labels lie on this grid and hold 0. Throws MemoryError if they do
/// not fit.
template <class Made>
Made blank_case(const Grid& grid) {
  Made made;
  try {
    made.image = decltype(made.image)(grid);
    made.labels = LabelVolume(grid);
  } catch (const std::bad_alloc&) {
    const int64_t bytes = sizeof(*made.image.data()) + sizeof(int32_t);
    throw MemoryError("a sample of " + describe(grid) + " needs " +
                      std::to_string((bytes * grid.voxels()) >> 20) +
                      " MiB; choose a smaller size");
  }
  return made;
}

/// Goes from `before` to `inside` over about a voxel across the surface (partial volume).
inline double blend(double before, double inside, double distance_mm, double edge_mm) {
  const double share = std::clamp(0.5 - distance_mm / edge_mm, 0.0, 1.0);
  return before + share * (inside - before);
}

}  // namespace larch::phantom
