// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/data/volume.h"
#include "larch/pose/box_voxels.h"

namespace larch::pose {

TEST_CASE(
    "a box takes the voxels of an oblique grid whose centres it holds, once for all threads") {
  Grid grid{{17, 13, 11}, {1.5, 2, 3}, {-8, 5, 20}};
  grid.direction = rotation_matrix(from_rotation_vector({0.3, -0.5, 2.2}));
  for (int row = 0; row < 3; ++row) grid.direction.m[row][1] *= -1;
  // In the middle, across the border, and far away.
  const auto [away, most] = GENERATE(table<double, int64_t>({{0, 1000}, {5, 500}, {1e7, 0}}));
  const Vec3d centre = world_from_index(grid, {8 + away, 6 - away, 5});
  const Pose box = widened({centre, from_rotation_vector({0.7, 0.2, -0.4}), {9, 12, 15}}, 2.5);
  Volume<uint8_t> found(grid);
  for_voxels_in(box, grid, 3, [&](const Vec3i& at) { ++found(at); });
  int64_t inside = 0;
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d mm = box_mm_from_world(box, world_from_index(grid, grid.voxel(i).cast<double>()));
    const bool is_in = std::abs(mm.x) <= 7 && std::abs(mm.y) <= 8.5 && std::abs(mm.z) <= 10;
    inside += is_in ? 1 : 0;
    REQUIRE(found[i] == (is_in ? 1 : 0));
  }
  CHECK(inside <= most);
  CHECK(inside >= most / 8);
}

}  // namespace larch::pose
