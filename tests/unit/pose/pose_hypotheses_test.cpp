// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/pose/hypotheses.h"

namespace larch::pose {
namespace {

constexpr double kDegree = 3.141592653589793 / 180;

Quaternion random_turn(uint64_t seed, double most) {
  const auto part = [&](uint64_t k) { return (2 * hash_unit(seed, 1, k) - 1) * most; };
  return from_rotation_vector({part(0), part(1), part(2)});
}

/// Whether every one of the rotations has a member of the set within the radius.
bool covers(const std::vector<Quaternion>& set, const std::vector<Quaternion>& rotations,
            double radius) {
  return std::all_of(rotations.begin(), rotations.end(), [&](const Quaternion& q) {
    return std::any_of(set.begin(), set.end(), [&](const Quaternion& member) {
      return angle_between(member, q) <= radius + 1e-9;
    });
  });
}

TEST_CASE("a ball of rotations begins with the identity and is the same turned back") {
  struct Ball {
    double radius_deg, step_deg;
    size_t members;
  };
  const auto ball = GENERATE(values<Ball>({{15, 10, 27},
                                           {20, 10, 65},
                                           {30, 12, 137},
                                           {30, 10, 259},
                                           {45, 15, 259},
                                           {45, 12, 459},
                                           {60, 15, 537}}));
  CAPTURE(ball.radius_deg, ball.step_deg);
  const auto set = ball_of_rotations(ball.radius_deg * kDegree, ball.step_deg * kDegree);
  REQUIRE(set.size() == ball.members);
  CHECK(set[0] == Quaternion{});
  for (const Quaternion& q : set) {
    CHECK(angle_between(q, {}) <= ball.radius_deg * kDegree + 1e-9);
    CHECK(covers(set, {conjugate(q)}, 1e-6));
  }
}

// The figures are those of another program. Its greatest distance and that of 4000 draws here are
// both those of the farthest rotation that was drawn, and no draw reaches the farthest there is.
TEST_CASE("sets of rotations cover as evenly as they should") {
  struct Known {
    double radius_deg, step_deg;  ///< of a ball; a radius of 180: of `members` that are uniform
    size_t members;
    double mean_deg, p95_deg, most_deg;
  };
  const auto known = GENERATE(values<Known>({{15, 10, 27, 4.1, 6.2, 7.6},
                                             {20, 10, 65, 3.9, 5.8, 7.3},
                                             {30, 12, 137, 4.6, 6.5, 9.3},
                                             {30, 10, 259, 3.8, 5.2, 7.2},
                                             {45, 15, 259, 5.6, 7.7, 11.3},
                                             {180, 0, 1000, 11.7, 16.7, 20.2},
                                             {180, 0, 4000, 7.8, 11.4, 13.3},
                                             {180, 0, 8000, 6.1, 8.8, 10.5}}));
  CAPTURE(known.radius_deg, known.step_deg, known.members);
  const auto set = known.radius_deg == 180
                       ? uniform_rotations(known.members)
                       : ball_of_rotations(known.radius_deg * kDegree, known.step_deg * kDegree);
  CHECK(set.size() == known.members);
  const Covering covering = measure_covering(set, known.radius_deg * kDegree);
  CHECK(covering.mean / kDegree == Approx(known.mean_deg).margin(0.2));
  CHECK(covering.p95 / kDegree == Approx(known.p95_deg).margin(0.2));
  CHECK(covering.most / kDegree > known.most_deg - 0.4);
  CHECK(covering.most / kDegree < known.most_deg + 2);
}

TEST_CASE("a ball of too many rotations is refused before it is made") {
  CHECK_THROWS_AS(ball_of_rotations(180 * kDegree, 5 * kDegree), UsageError);
  CHECK_THROWS_AS(ball_of_rotations(180 * kDegree, 0.001 * kDegree), UsageError);
}

TEST_CASE("few rotations stand for many, none of them for another") {
  std::vector<Quaternion> all;
  for (uint64_t i = 0; i < 300; ++i) all.push_back(random_turn(i, 0.5));
  const double radius = 15 * kDegree;
  const std::vector<Quaternion> few = cover_rotations(all, radius);
  CHECK(few.size() < 150);
  CHECK(few[0] == all[0]);
  CHECK(covers(few, all, radius));
  for (size_t i = 0; i < few.size(); ++i)
    for (size_t k = 0; k < i; ++k) CHECK(angle_between(few[i], few[k]) > radius - 1e-9);
}

TEST_CASE("a grid of scales holds its range, evenly about the middle") {
  const Vec3d low{-0.31, -0.1, 0.05}, high{0.2, 0.1, 0.05};
  const double step = 0.1;
  const std::vector<Vec3d> grid = scale_grid(low, high, step);
  CHECK(grid.size() == 7 * 3 * 1);  // 5.1 steps are 6, and 2 steps stay 2
  Vec3d sum, least = grid[0], most = grid[0];
  for (const Vec3d& v : grid) {
    sum += v;
    for (int axis = 0; axis < 3; ++axis) {
      least[axis] = std::min(least[axis], v[axis]);
      most[axis] = std::max(most[axis], v[axis]);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(least[axis] <= low[axis] + 1e-9);
    CHECK(least[axis] > low[axis] - step);
    CHECK(most[axis] >= high[axis] - 1e-9);
    CHECK(most[axis] < high[axis] + step);
    CHECK(sum[axis] / static_cast<double>(grid.size()) ==
          Approx((low[axis] + high[axis]) / 2).margin(1e-12));
  }
  CHECK_THROWS_AS(scale_grid({-4, -4, -4}, {4, 4, 4}, 0.01), UsageError);
}

TEST_CASE("few scales stand for many, none of them for another") {
  std::vector<Vec3d> all;
  for (uint64_t i = 0; i < 300; ++i) {
    all.push_back({hash_unit(1, 0, i), hash_unit(1, 1, i), hash_unit(1, 2, i)});
  }
  const auto apart = [](const Vec3d& a, const Vec3d& b) {
    return std::max({std::abs(a.x - b.x), std::abs(a.y - b.y), std::abs(a.z - b.z)});
  };
  const std::vector<Vec3d> few = cover_scales(all, 0.3);
  CHECK(few.size() < 60);
  for (const Vec3d& s : all) {
    CHECK(std::any_of(few.begin(), few.end(), [&](const Vec3d& t) { return apart(s, t) <= 0.3; }));
  }
  for (size_t i = 0; i < few.size(); ++i)
    for (size_t k = 0; k < i; ++k) CHECK(apart(few[i], few[k]) > 0.3);
}

}  // namespace
}  // namespace larch::pose
