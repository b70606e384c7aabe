// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "larch/core/parallel.h"
#include "larch/levelset/brick_layout.h"

namespace larch::levelset::cpu {

/// Calls body(first) on several threads for each row of bricks along x; `first`: the first voxel of
/// its first brick.
template <class Body>
void for_brick_rows(const BrickLayout& layout, int threads, const Body& body) {
  const int64_t rows = int64_t{layout.count.y} * layout.count.z;
  parallel_for(threads, rows, fair_grain(threads, rows, 8), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      body(Vec3i{0, static_cast<int32_t>(row % layout.count.y) * kBrick,
                 static_cast<int32_t>(row / layout.count.y) * kBrick});
    }
  });
}

/// Calls body(y, z) for the voxels' rows of the bricks that start at `first`, as far as they lie in
/// the image.
template <class Body>
void for_rows_of_bricks(const BrickLayout& layout, const Vec3i& first, const Body& body) {
  const int32_t end_y = std::min(first.y + kBrick, layout.size.y);
  const int32_t end_z = std::min(first.z + kBrick, layout.size.z);
  for (int32_t z = first.z; z < end_z; ++z) {
    for (int32_t y = first.y; y < end_y; ++y) body(y, z);
  }
}

}  // namespace larch::levelset::cpu
