// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/levelset/initial/first_surfaces.h"
#include "larch/levelset/initial/spheres.h"
#include "tests/unit/levelset/problems.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;
using Catch::Contains;

TEST_CASE("a ball is given in LPS mm or by index") {
  Grid grid = levelset_grid({20, 20, 20}, {2, 1, 1});
  grid.origin_mm = {10, -5, 3};
  const Ball in_mm = ball_of({.centre = {16, 0, 7}, .radius = 3}, grid, "seed 1");
  CHECK(in_mm.index == Vec3d{3, 5, 4});
  CHECK(in_mm.radius_mm == 3);
  const Sphere by_index{.centre = {3, 5, 4}, .radius = 3, .is_index = true};
  CHECK(ball_of(by_index, grid, "seed 1").radius_mm == 3);  // the smallest spacing is 1 mm
  // The outermost voxels reach half a voxel beyond their centres.
  CHECK_NOTHROW(ball_of({.centre = {9.01, 0, 7}, .radius = 3}, grid, "seed 1"));
  CHECK_THROWS_AS(ball_of({.centre = {8.99, 0, 7}, .radius = 3}, grid, "seed 1"), UsageError);
  CHECK_THROWS_WITH(ball_of({.centre = {0, 0, 500}, .radius = 3}, grid, "seed 2"),
                    Contains("seed 2") && Contains("outside"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(ball_of({.centre = {nan, 0, 7}, .radius = 3}, grid, "seed 1"), UsageError);
  CHECK_THROWS_AS(ball_of({.centre = {16, 0, 7}, .radius = 0}, grid, "seed 1"), UsageError);
  CHECK_THROWS_AS(ball_of({.centre = {16, 0, 7}, .radius = nan}, grid, "seed 1"), UsageError);
}

TEST_CASE("a ball in LPS mm is found on grids that are turned, flipped or sheared") {
  Grid grid = levelset_grid({20, 24, 30}, {2, 1, 0.5});
  grid.origin_mm = {10, -5, 3};
  // As RAS, with axes exchanged, oblique, and of a tilted gantry.
  const std::array<Mat3, 4> directions{Mat3{{{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}},
                                       Mat3{{{0, 0, 1}, {1, 0, 0}, {0, -1, 0}}},
                                       Mat3{{{0.8, -0.6, 0}, {0.6, 0.8, 0}, {0, 0, 1}}},
                                       Mat3{{{1, 0, 0}, {0, 1, -0.6}, {0, 0, 0.8}}}};
  const Vec3d index{7, 11, 13.25};
  for (const Mat3& direction : directions) {
    grid.direction = direction;
    Vec3d world = grid.origin_mm;
    for (int row = 0; row < 3; ++row) {
      for (int axis = 0; axis < 3; ++axis) {
        world[row] += direction.m[row][axis] * index[axis] * grid.spacing_mm[axis];
      }
    }
    const Ball ball = ball_of({.centre = world, .radius = 3}, grid, "seed 1");
    for (int axis = 0; axis < 3; ++axis) CHECK(ball.index[axis] == Approx(index[axis]));
    CHECK(ball.radius_mm == 3);
  }
}

TEST_CASE("the distance to balls is that to the nearest, in mm") {
  const Grid grid = levelset_grid({20, 16, 9}, {1, 1, 2.5});
  const std::vector<Ball> balls{{{5, 5, 4}, 3}, {{14, 8, 4}, 2.5}};
  const Volume<float> distance = distance_to_balls(balls, grid, 6, 2);
  for (int64_t i = 0; i < distance.voxels(); ++i) {
    const Vec3d at = grid.voxel(i).cast<double>();
    double nearest = 6;
    for (const Ball& ball : balls) {
      const Vec3d d = at - ball.index;
      nearest = std::min(nearest, norm(Vec3d{d.x, d.y, 2.5 * d.z}) - ball.radius_mm);
    }
    REQUIRE(static_cast<double>(distance[i]) == Approx(nearest).margin(1e-6));
  }
}

TEST_CASE("the distance to labels runs from the faces of their voxels") {
  SECTION("a slab, half a spacing beside its face") {
    const Grid grid = levelset_grid({4, 4, 12}, {1, 1, 2.5});
    const auto slab = volume_of<uint8_t>(grid, [](const Vec3d& at) { return at.z < 14 ? 1 : 0; });
    const Volume<float> distance = distance_to_faces(slab, 8, 1);
    CHECK(distance({2, 2, 5}) == -1.25F);
    CHECK(distance({2, 2, 6}) == 1.25F);
    CHECK(distance({2, 2, 8}) == 6.25F);
    CHECK(distance({2, 2, 9}) == 8);   // held
    CHECK(distance({2, 2, 0}) == -8);  // the border of the image is no face
  }
  SECTION("any mask, against all boxes one after the other") {
    const auto size = GENERATE(Vec3i{9, 8, 7}, Vec3i{13, 11, 1}, Vec3i{1, 7, 1});
    const Grid grid = levelset_grid(size, {1, 1.3, 2.1});
    Volume<uint8_t> mask(grid);
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      mask[i] = hash_below(5, 0, static_cast<uint64_t>(i), 6) == 0 ? 1 : 0;
    }
    const double most = 3.7;
    const Volume<float> distance = distance_to_faces(mask, most, 2);
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      double nearest = most;
      for (int64_t j = 0; j < mask.voxels(); ++j) {
        if (mask[j] == mask[i]) continue;
        const Vec3i d = grid.voxel(j) - grid.voxel(i);
        Vec3d mm{};
        for (int axis = 0; axis < 3; ++axis) {
          mm[axis] = std::max(std::abs(d[axis]) - 0.5, 0.0) * grid.spacing_mm[axis];
        }
        nearest = std::min(nearest, norm(mm));
      }
      REQUIRE(static_cast<double>(distance[i]) ==
              Approx(mask[i] != 0 ? -nearest : nearest).margin(1e-5));
    }
  }
  SECTION("without a surface") {
    const Grid grid = levelset_grid({3, 3, 3});
    for (const float value : distance_to_faces(Volume<uint8_t>(grid), 4, 1)) CHECK(value == 4);
    for (const float value : distance_to_faces(Volume<uint8_t>(grid, 1), 4, 1)) CHECK(value == -4);
  }
}

TEST_CASE("arrival times are distances over speeds") {
  SECTION("around a ball, at a speed of 1 and of a half") {
    const Grid grid = levelset_grid({41, 41, 41}, {1, 1, 1});
    const Volume<float> phi = sphere(grid, middle_mm(grid), 6);
    const double speed = GENERATE(1.0, 0.5);
    const Volume<float> times =
        arrival_times(phi, test::speed_of(grid, [&](const Vec3d&) { return speed; }), 30);
    double worst = 0;
    for (int64_t i = 0; i < times.voxels(); ++i) {
      if (phi[i] < 0) {
        REQUIRE(times[i] == 0);
      } else if (phi[i] < 12) {
        worst = std::max(
            worst, std::abs(static_cast<double>(times[i]) * speed - static_cast<double>(phi[i])));
      }
    }
    CHECK(worst < 0.6);  // first differences
  }
  SECTION("in mm along every axis, and aslant") {
    const Grid grid = levelset_grid({41, 21, 61}, {1, 2, 0.5});
    const Vec3d middle = middle_mm(grid);
    const auto speed = test::speed_of(grid, [](const Vec3d&) { return 0.5; });
    const Volume<float> times = arrival_times(sphere(grid, middle, 5), speed, 60);
    for (int axis = 0; axis < 3; ++axis) {
      Vec3i at{20, 10, 30};
      at[axis] = grid.size[axis] - 1;
      const double mm = (at[axis] - (grid.size[axis] - 1) / 2) * grid.spacing_mm[axis] - 5;
      CAPTURE(axis);
      CHECK(times(at) == Approx(2 * mm).margin(2.5));
    }
    const Vec3i corner{30, 15, 50};
    CHECK(times(corner) == Approx(2 * (10 * std::sqrt(3.0) - 5)).margin(2.5));
  }
  SECTION("through a gap in a wall, and never beyond a closed one") {
    const Grid grid = levelset_grid({30, 21, 1}, {1, 1, 1});
    const bool has_gap = GENERATE(true, false);
    const auto speed = test::speed_of(
        grid, [&](const Vec3d& at) { return at.x == 15 && !(has_gap && at.y == 20) ? -1.0 : 1.0; });
    const auto phi = volume_of<float>(grid, [](const Vec3d& at) { return at.x - 4.5; });
    const Volume<float> times = arrival_times(phi, speed, 1000);
    CHECK(times({14, 0, 0}) == Approx(9.5));
    if (has_gap) {
      // Straight to the gap, then up along the wall.
      CHECK(times({16, 0, 0}) > 28);
      CHECK(times({16, 0, 0}) < 34);
    } else {
      CHECK(std::isinf(times({16, 0, 0})));
      CHECK(std::isinf(times({29, 20, 0})));
    }
    CHECK(std::isinf(times({15, 0, 0})));
    CHECK(std::isinf(arrival_times(phi, speed, 5)({14, 0, 0})));
  }
}

TEST_CASE("first surfaces are the union of what is given, by label") {
  SegmentRequest request;
  const Grid grid = levelset_grid({30, 30, 30});
  request.image = Volume<float>(grid, 100);
  request.spheres = {{.centre = {8, 8, 8}, .radius = 3, .label = 5},
                     {.centre = {20, 8, 8}, .radius = 3, .label = 5},
                     {.centre = {8, 20, 20}, .radius = 3, .label = 2}};
  request.initial_labels = LabelVolume(grid);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    if (at.x > 20 && at.y > 20 && at.z > 20) request.initial_labels[i] = 5;
  }
  request.initial_phi = {{3, sphere(grid, {15, 15, 15}, 4)}};
  request.initial_level_mm = -1;
  const auto surfaces = first_surfaces(request, 3, 40, 1);
  REQUIRE(surfaces.size() == 3);
  CHECK(surfaces[0].label == 2);
  CHECK(surfaces[1].label == 3);
  CHECK(surfaces[2].label == 5);
  CHECK(surfaces[1].phi_mm({15, 15, 18}) == 0);  // the level at -1 mm: a radius of 3
  CHECK(surfaces[1].phi_mm({15, 15, 20}) == 2);
  CHECK(surfaces[2].phi_mm({8, 8, 8}) == -3);
  CHECK(surfaces[2].phi_mm({20, 8, 8}) == -3);
  CHECK(surfaces[2].phi_mm({25, 25, 21}) == -0.5F);
  CHECK(surfaces[0].reach_mm({8, 20, 8}) == 9);
  CHECK(surfaces[2].reach_mm({25, 25, 8}) > 10);

  SECTION("phi that is nowhere below the level, or no number") {
    request.initial_level_mm = -100;
    CHECK_THROWS_WITH(first_surfaces(request, 3, 0, 1), Contains("inside is negative"));
    request.initial_phi[0].phi_mm[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH(first_surfaces(request, 3, 0, 1), Contains("not a number"));
  }
}

}  // namespace
