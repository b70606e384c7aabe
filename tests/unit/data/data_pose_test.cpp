// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/data/pose.h"

namespace larch {
namespace {

constexpr double kPi = 3.14159265358979323846;

double distance(const Vec3d& a, const Vec3d& b) {
  return norm(a - b);
}

Quaternion random_rotation(std::mt19937& random) {
  std::normal_distribution<double> normal;
  return canonical({normal(random), normal(random), normal(random), normal(random)});
}

Pose random_pose(std::mt19937& random) {
  std::uniform_real_distribution<double> place(-200, 200), length(1, 90);
  return {{place(random), place(random), place(random)},
          random_rotation(random),
          {length(random), length(random), length(random)}};
}

TEST_CASE("a quaternion and its matrix are the same rotation") {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    Quaternion q = random_rotation(random);
    // Half of them close to a rotation by 180 degrees, where w vanishes.
    if (round % 2 == 0) q = canonical({q.w * 1e-9, q.x, q.y, q.z});
    const Mat3 m = rotation_matrix(q);
    CHECK(determinant(m) == Approx(1));
    CHECK(norm(m.column(0)) == Approx(1));
    CHECK(dot(m.column(0), m.column(1)) == Approx(0).margin(1e-12));
    CHECK(angle_between(q, quaternion_of(m)) < 1e-7);
    CHECK(quaternion_of(m).w >= 0);
  }
}

TEST_CASE("a quarter turn about z takes x to y") {
  const Quaternion q = from_rotation_vector({0, 0, kPi / 2});
  CHECK(distance(rotate(q, {1, 0, 0}), {0, 1, 0}) < 1e-15);
  CHECK(distance(rotate(q, {0, 1, 0}), {-1, 0, 0}) < 1e-15);
  // First the turn about z, then one about x: y goes to z.
  const Quaternion both = from_rotation_vector({kPi / 2, 0, 0}) * q;
  CHECK(distance(rotate(both, {1, 0, 0}), {0, 0, 1}) < 1e-15);
}

TEST_CASE("one rotation has one canonical quaternion") {
  CHECK(canonical({-1, 0, 0, 0}) == Quaternion{1, 0, 0, 0});
  CHECK(canonical({0, -3, 4, 0}) == Quaternion{0, 0.6, -0.8, 0});
  CHECK(canonical({0, 0, 0, -2}) == Quaternion{0, 0, 0, 1});
  CHECK_FALSE(std::signbit(canonical({-1, 0, 0, 0}).x));
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const Quaternion q = random_rotation(random);
    CHECK(canonical({-q.w, -q.x, -q.y, -q.z}) == canonical(q));
  }
}

TEST_CASE("angles between rotations do not depend on signs and are exact when small") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Quaternion q = random_rotation(random);
    Vec3d axis = rotation_vector(random_rotation(random));
    axis = axis / norm(axis);
    for (const double angle : {1e-9, 1e-3, 1.0, 3.1}) {
      const Quaternion turned = q * from_rotation_vector(axis * angle);
      CHECK(angle_between(q, turned) == Approx(angle).epsilon(1e-6));
      CHECK(angle_between(q, {-turned.w, -turned.x, -turned.y, -turned.z}) ==
            Approx(angle).epsilon(1e-6));
      CHECK(distance(rotation_vector(from_rotation_vector(axis * angle)), axis * angle) <
            1e-12 + angle * 1e-9);
    }
  }
  CHECK(rotation_vector({}) == Vec3d{0, 0, 0});
  CHECK(from_rotation_vector({0, 0, 0}) == Quaternion{});
}

TEST_CASE("points go from the box to the world and back") {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const Pose pose = random_pose(random);
    CHECK(world_from_box(pose, {0, 0, 0}) == pose.centre_mm);
    for (int number = 0; number < 8; ++number) {
      const Vec3d at = corner(pose, number);
      const Vec3d box = box_from_world(pose, at);
      CHECK(distance(box, {number & 1 ? 0.5 : -0.5, number & 2 ? 0.5 : -0.5,
                           number & 4 ? 0.5 : -0.5}) < 1e-12);
    }
    CHECK(distance(corner(pose, 0), corner(pose, 1)) == Approx(pose.edges_mm.x));
    CHECK(distance(corner(pose, 0), corner(pose, 4)) == Approx(pose.edges_mm.z));
  }
}

TEST_CASE("a pose relative to another one, composed with it, is the pose again") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const Pose parent = random_pose(random), child = random_pose(random);
    const Pose back = compose(parent, relative(parent, child));
    CHECK(distance(back.centre_mm, child.centre_mm) < 1e-10);
    CHECK(angle_between(back.rotation, child.rotation) < 1e-7);
    CHECK(back.edges_mm == child.edges_mm);
    // The corners of the child in the frame of the parent are those of the relative pose.
    const Vec3d seen = box_mm_from_world(parent, corner(child, 6));
    CHECK(distance(seen, corner(relative(parent, child), 6)) < 1e-10);
  }
}

TEST_CASE("poses that cannot be are refused") {
  CHECK_NOTHROW(check_pose({}, "x"));
  Pose pose;
  pose.edges_mm.y = 0;
  CHECK_THROWS_WITH(check_pose(pose, "x"), Catch::Contains("x: an edge of the box"));
  pose = {};
  pose.centre_mm.z = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(check_pose(pose, "x"), InputError);
  for (const double mm : {1e7 + 1, -1e301}) {
    pose = {};
    pose.centre_mm.x = mm;
    CHECK_THROWS_WITH(check_pose(pose, "x"), Catch::Contains("more than 1e7 mm"));
  }
  pose = {};
  pose.edges_mm.z = 1e308;
  CHECK_THROWS_WITH(check_pose(pose, "x"), Catch::Contains("more than 1e7 mm"));
  pose = {};
  pose.rotation.w = 1.1;
  CHECK_THROWS_WITH(check_pose(pose, "x"), Catch::Contains("not of length 1"));
}

}  // namespace
}  // namespace larch
