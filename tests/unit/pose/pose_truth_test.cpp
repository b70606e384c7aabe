// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/portable_math.h"
#include "larch/pose/mean_rotation.h"
#include "larch/pose/truth.h"
#include "tests/unit/box_mask.h"

namespace larch::pose {
namespace {

constexpr double kDegree = 0.017453292519943295;

Quaternion random_turn(double most_degrees, uint64_t seed) {
  const Vec3d axis{draw_normal(seed, 0, 0), draw_normal(seed, 0, 1), draw_normal(seed, 0, 2)};
  return from_rotation_vector(axis * (hash_unit(seed, 1, 0) * most_degrees * kDegree / norm(axis)));
}

/// Where a shape was put: x = centre + scale R m.
struct Placed {
  Vec3d centre_mm;
  Quaternion rotation;
  double scale;
  Volume<uint8_t> mask;
};

/// An ellipsoid with semi-axes of 14, 9 and 5 mm and, with a bump, a ball that sticks out of it.
Placed placed(const Quaternion& rotation, double scale, bool bump, uint64_t seed) {
  Grid grid = test::grid_of({44, 40, 42});
  grid.origin_mm = {10.0 * hash_unit(seed, 2, 0), -50, 7};
  const Vec3d centre =
      world_from_index(grid, {21.3 + hash_unit(seed, 3, 0), 19.2, 20 + hash_unit(seed, 3, 1)});
  Placed out{centre, rotation, scale, Volume<uint8_t>(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d world_mm = world_from_index(grid, grid.voxel(i).cast<double>());
    const Vec3d m = rotate(conjugate(rotation), world_mm - centre) / scale;
    const bool in_ball = norm(m - Vec3d{6, 7, 3}) < 5;
    out.mask[i] = norm(Vec3d{m.x / 14, m.y / 9, m.z / 5}) < 1 || (bump && in_ball);
  }
  return out;
}

std::vector<Volume<uint8_t>> masks_of(const std::vector<Placed>& cases) {
  std::vector<Volume<uint8_t>> masks;
  masks.reserve(cases.size());
  for (const Placed& c : cases) masks.push_back(c.mask);
  return masks;
}

TEST_CASE("the mean of rotations does not see signs, is the middle and finds a centre") {
  const auto about_z = [](double degrees) {
    return from_rotation_vector({0, 0, degrees * kDegree});
  };
  const std::vector<double> equal{1, 1};
  const Quaternion a = about_z(-20), b = about_z(20), q = about_z(70);
  CHECK(angle_between(mean_rotation(std::vector{a, b}, equal), Quaternion{}) < 1e-12);
  CHECK(angle_between(mean_rotation(std::vector{q, {-q.w, -q.x, -q.y, -q.z}}, equal), q) < 1e-12);
  CHECK(rotation_vector(mean_rotation(std::vector{a, b}, std::vector{1.0, 3.0})).z > 9 * kDegree);

  const Quaternion centre = canonical({0.2, -0.7, 0.5, 0.4});
  RotationSum sum;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Vec3d turn{draw_normal(1, 0, i), draw_normal(1, 1, i), draw_normal(1, 2, i)};
    sum.add(centre * from_rotation_vector(turn * (10 * kDegree)), 1);
  }
  CHECK(angle_between(mean_rotation(sum), centre) < 1.5 * kDegree);
}

TEST_CASE("poses that shapes were put in are found up to a common turn") {
  std::vector<Placed> cases;
  for (uint64_t i = 0; i < 7; ++i)
    cases.push_back(placed(random_turn(35, 20 + i), 0.9 + 0.2 * hash_unit(5, 0, i), true, i));
  const std::vector<Volume<uint8_t>> masks = masks_of(cases);
  Context context;
  const PoseTruth truth = fit_poses(masks, OrientationKind::kFit, context);
  REQUIRE(truth.cases.size() == cases.size());
  CHECK(truth.symmetries.empty());

  RotationSum rotations, turns;
  for (size_t i = 0; i < cases.size(); ++i) {
    rotations.add(truth.cases[i].pose.rotation, 1);
    turns.add(conjugate(truth.cases[i].pose.rotation) * cases[i].rotation, 1);
  }
  CHECK(angle_between(mean_rotation(rotations), Quaternion{}) < 1e-6);
  const Quaternion common = mean_rotation(turns);
  const auto centre_in_shape = [&](size_t i) {
    return rotate(conjugate(cases[i].rotation),
                  truth.cases[i].pose.centre_mm - cases[i].centre_mm) /
           cases[i].scale;
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const Pose& pose = truth.cases[i].pose;
    CHECK(angle_between(pose.rotation * common, cases[i].rotation) < 1.5 * kDegree);
    CHECK(norm(centre_in_shape(i) - centre_in_shape(0)) < 0.5);
    CHECK(pose.edges_mm.x / cases[i].scale ==
          Approx(truth.cases[0].pose.edges_mm.x / cases[0].scale).epsilon(0.05));
    CHECK(truth.cases[i].residual_mm < 0.3);
  }

  // A case that is fitted alone comes out as it does among the others.
  const Pose alone = fit_pose(masks[2], truth.mean_distance_mm).pose;
  CHECK(angle_between(alone.rotation, truth.cases[2].pose.rotation) < 0.5 * kDegree);

  context.threads = 3;
  const PoseTruth again = fit_poses(masks, OrientationKind::kFit, context);
  for (size_t i = 0; i < cases.size(); ++i) {
    CHECK(again.cases[i].pose == truth.cases[i].pose);
    CHECK(again.cases[i].residual_mm == truth.cases[i].residual_mm);
  }
  CHECK(std::equal(again.mean_distance_mm.begin(), again.mean_distance_mm.end(),
                   truth.mean_distance_mm.begin(), truth.mean_distance_mm.end()));
}

TEST_CASE("thin bows that have no place in common are fitted to one of them") {
  std::vector<Placed> cases;
  for (uint64_t i = 0; i < 9; ++i) {
    Placed bow = placed(random_turn(60, 70 + i), 1, false, i);
    const Grid& grid = bow.mask.grid();
    for (int64_t v = 0; v < grid.voxels(); ++v) {
      const Vec3d world_mm = world_from_index(grid, grid.voxel(v).cast<double>());
      const Vec3d m = rotate(conjugate(bow.rotation), world_mm - bow.centre_mm);
      const double off_circle = std::hypot(m.x, m.y) - 14;
      bow.mask[v] = std::hypot(off_circle, m.z) < 1.3 && (m.x > 0 || m.y > 6);
    }
    cases.push_back(std::move(bow));
  }
  const PoseTruth truth = fit_poses(masks_of(cases), OrientationKind::kFit, {});
  RotationSum turns;
  for (size_t i = 0; i < cases.size(); ++i) {
    turns.add(conjugate(truth.cases[i].pose.rotation) * cases[i].rotation, 1);
  }
  const Quaternion common = mean_rotation(turns);
  for (size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    const Quaternion& found = truth.cases[i].pose.rotation;
    CHECK(angle_between(found * common, cases[i].rotation) < 4 * kDegree);
    CHECK(truth.cases[i].residual_mm < 0.6);
  }
}

TEST_CASE("an ellipsoid has the three half turns about its axes as symmetries") {
  std::vector<Placed> cases;
  for (uint64_t i = 0; i < 3; ++i)
    cases.push_back(placed({}, 1 + 0.05 * static_cast<double>(i), false, i));
  const PoseTruth truth = fit_poses(masks_of(cases), OrientationKind::kFit, Context{});
  REQUIRE(truth.symmetries.size() == 3);
  for (const Symmetry& symmetry : truth.symmetries) {
    const Quaternion& q = symmetry.rotation;
    CHECK(std::max({q.x, q.y, q.z}) == Approx(1));
    CHECK(symmetry.distance_mm < 0.5);
  }
}

TEST_CASE("a small ellipsoid whose axes are not those of the box has no more symmetries") {
  std::vector<Placed> cases;
  for (uint64_t i = 0; i < 4; ++i) cases.push_back(placed(random_turn(15, 40 + i), 0.45, false, i));
  CHECK(fit_poses(masks_of(cases), OrientationKind::kFit, Context{}).symmetries.size() == 3);
}

TEST_CASE("without an orientation the box has the axes of the world and the extents of the mask") {
  const std::vector masks{test::box_mask({12, 12, 12}, {2, 3, 4}, {5, 9, 7}, {1, 2, 3}),
                          test::box_mask({12, 12, 12}, {0, 3, 4}, {5, 9, 7})};
  const PoseTruth truth = fit_poses(masks, OrientationKind::kNone, Context{});
  CHECK(truth.cases[0].pose == Pose{{3.5, 12, 16.5}, {}, {4, 14, 12}});
  CHECK_FALSE(truth.cases[0].touches_border);
  CHECK(truth.cases[1].touches_border);
  CHECK(truth.mean_distance_mm.empty());
  CHECK(fit_pose(masks[0], truth.mean_distance_mm).pose == truth.cases[0].pose);
}

TEST_CASE("a mask of seven voxels is named") {
  const std::vector masks{test::box_mask({9, 9, 9}, {2, 2, 2}, {3, 3, 3}),
                          test::box_mask({9, 9, 9}, {1, 2, 2}, {7, 2, 2})};
  CHECK_THROWS_AS(fit_poses(masks, OrientationKind::kFit, Context{}), InputError);
  CHECK_THROWS_WITH(fit_poses(masks, OrientationKind::kFit, Context{}),
                    Catch::Contains("mask 1 has 7 voxels"));
}

}  // namespace
}  // namespace larch::pose
