// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/data/volume.h"
#include "larch/pose/box_voxels.h"

namespace larch::pose {
namespace {

/// An oblique grid whose axes are turned over as well.
Grid oblique() {
  Grid grid{{17, 13, 11}, {1.5, 2, 3}, {-8, 5, 20}};
  grid.direction = rotation_matrix(from_rotation_vector({0.3, -0.5, 2.2}));
  for (int row = 0; row < 3; ++row) grid.direction.m[row][1] *= -1;
  return grid;
}

TEST_CASE("a box takes the voxels whose centres it holds, for any number of threads") {
  const Grid grid = oblique();
  const Vec3d middle = world_from_index(grid, {8, 6, 5});
  const Vec3d centre = GENERATE_COPY(values<Vec3d>({middle, middle + Vec3d{14, -9, 6}}));
  const Pose box = widened({centre, from_rotation_vector({0.7, 0.2, -0.4}), {9, 12, 15}}, 2.5);
  CHECK(box.edges_mm == Vec3d{14, 17, 20});
  Volume<uint8_t> found(grid), alone(grid);
  for_voxels_in(box, grid, 3, [&](const Vec3i& at) { ++found(at); });
  for_voxels_in(box, grid, 1, [&](const Vec3i& at) { ++alone(at); });
  int64_t inside = 0;
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d mm = box_mm_from_world(box, world_from_index(grid, grid.voxel(i).cast<double>()));
    const bool is_in = std::abs(mm.x) <= 7 && std::abs(mm.y) <= 8.5 && std::abs(mm.z) <= 10;
    inside += is_in ? 1 : 0;
    REQUIRE(found[i] == (is_in ? 1 : 0));
    REQUIRE(alone[i] == found[i]);
  }
  CHECK(inside > 50);
}

TEST_CASE("a box beyond the grid takes none of its voxels, however far and large it is") {
  const Pose box{{1e6, -1e6, 3e6}, {}, {1e5, 1e5, 1e5}};
  for_voxels_in(box, oblique(), 2, [](const Vec3i&) { FAIL("a voxel"); });
  int64_t all = 0;
  for_voxels_in(widened(box, 1e7), oblique(), 1, [&](const Vec3i&) { ++all; });
  CHECK(all == oblique().voxels());
}

}  // namespace
}  // namespace larch::pose
