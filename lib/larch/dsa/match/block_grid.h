// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "larch/data/vec.h"

namespace larch::dsa {

/// Where the blocks of an image lie: whole blocks, evenly spread, that cover it. A picture has one
/// block along z, of one pixel.
struct BlockGrid {
  Vec3i image{}, block{}, count{};
  std::array<std::vector<int32_t>, 3> starts{};  ///< first pixel of the blocks along each axis

  int32_t blocks() const { return count.x * count.y * count.z; }
  /// Block i, counted along x first, along each axis.
  Vec3i at(int32_t i) const { return {i % count.x, i / count.x % count.y, i / count.x / count.y}; }
  /// Its first pixel.
  Vec3i start(int32_t i) const {
    const Vec3i a = at(i);
    return {starts[0][static_cast<size_t>(a.x)], starts[1][static_cast<size_t>(a.y)],
            starts[2][static_cast<size_t>(a.z)]};
  }
  /// Twice the position of its centre, a whole number: 63 for the first block of 64 pixels.
  Vec3i twice_centre(int32_t i) const {
    const Vec3i s = start(i);
    return {2 * s.x + block.x - 1, 2 * s.y + block.y - 1, 2 * s.z + block.z - 1};
  }
};

/// Along an axis of W pixels with blocks of B and a step P: 1 + ceil((W - B) / P) blocks that begin
/// at floor(i (W - B) / (n - 1) + 1/2), or one of all W pixels if W <= B. For W a multiple of B and
/// P = B that is the partition of US 2008/0037845. Throws UsageError for sizes below 1.
BlockGrid make_block_grid(const Vec3i& image, const Vec3i& block, const Vec3i& step);

}  // namespace larch::dsa
