// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/data/volume.h"

namespace larch::filters {

// Both take time linear in the voxels, give the same result for any number of threads, and
// need 24 bytes for each run of voxels along x, twice that while the runs of several threads are
// joined. The masks of structures have far fewer runs than voxels; at worst, where every second
// voxel along x is set, that is 12 bytes per voxel, and 24 while they are joined.

/// Returns the `n` largest connected components (face neighbours) as 1, the rest as 0. Of
/// components of equal size the one whose first voxel comes first in memory counts as larger.
/// Throws UsageError if n is negative. With `classes`, of the grid of the mask, the components that
/// are kept are the n for each class that have the most voxels of it.
Volume<uint8_t> keep_largest_component(const Volume<uint8_t>& mask, int n = 1, int threads = 1,
                                       const LabelVolume* classes = nullptr);

/// 1 where the mask is not 0 or where background is enclosed by it: not connected through faces to
/// the border of the volume (2-D volumes: through edges, in the plane).
Volume<uint8_t> fill_holes(const Volume<uint8_t>& mask, int threads = 1);

/// Returns the lowest and the highest index, along each axis, of the voxels whose value `is`
/// accepts; where there is none the size and -1.
template <class T, class Is>
std::array<Vec3i, 2> box_of(const Volume<T>& volume, const Is& is) {
  const Vec3i size = volume.size();
  Vec3i low = size, high{-1, -1, -1};
  int64_t i = 0;
  for (int32_t z = 0; z < size.z; ++z) {
    for (int32_t y = 0; y < size.y; ++y) {
      for (int32_t x = 0; x < size.x; ++x, ++i) {
        if (!is(volume[i])) continue;
        widen(low, high, Vec3i{x, y, z});
      }
    }
  }
  return {low, high};
}

/// Returns 1 within `radius` voxels along each axis of a voxel that is not 0.
std::vector<uint8_t> dilated(std::span<const uint8_t> labels, const Vec3i& size, int radius);

}  // namespace larch::filters
