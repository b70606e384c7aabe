// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "catch2/catch.hpp"

#include "larch/evaluate.h"
#include "larch/metrics/agreement.h"

namespace larch::metrics {
namespace {

Quaternion turned(int axis, double degrees) {
  Vec3d vector{0, 0, 0};
  vector[axis] = degrees * 3.14159265358979324 / 180;
  return from_rotation_vector(vector);
}

/// The scores of a pose by their names.
struct PoseScores : StructureScores {
  PoseScores(const Pose* detected, const Pose& truth, std::span<const Quaternion> symmetries = {})
      : StructureScores(score_pose("liver", detected, &truth, symmetries)) {}
  double operator[](const std::string& name) const {
    const auto at = std::find_if(scores.begin(), scores.end(),
                                 [&](const Score& score) { return name == score.name; });
    REQUIRE(at != scores.end());
    return at->value;
  }
};

/// Both boxes moved and turned together, away from the axes of the world.
double iou_elsewhere(const Pose& a, const Pose& b) {
  const Pose frame{{-120, 37, 411}, canonical({0.3, -0.7, 0.2, 0.4}), {1, 1, 1}};
  return box_iou(compose(frame, a), compose(frame, b));
}

TEST_CASE("known intersections over unions of boxes") {
  const Pose unit{};
  const auto check = [&](const Pose& other, double expected) {
    CHECK(box_iou(unit, other) == Approx(expected).margin(1e-12));
    CHECK(box_iou(other, unit) == Approx(expected).margin(1e-12));
    CHECK(iou_elsewhere(unit, other) == Approx(expected).margin(1e-9));
  };
  check(unit, 1);
  check({{0.5, 0, 0}, {}, {1, 1, 1}}, 1.0 / 3);
  check({{0, -0.25, 0.5}, {}, {1, 1, 1}}, 0.375 / 1.625);
  check({{0, 0, 0}, turned(2, 45), {1, 1, 1}}, std::sqrt(0.5));
  check({{0, 0, 0}, turned(1, 90), {1, 1, 1}}, 1);
  check({{0, 0, 0}, turned(0, 37), {2, 2, 2}}, 0.125);
  // A slab cuts a fifth from the cube, whose section across x stays a square if it turns about x.
  check({{0, 0, 0}, turned(0, 20), {0.2, 5, 5}}, 0.2 / (1 + 5 - 0.2));
  for (const double away : {1.0, 1.5, -3.0}) {
    for (int axis = 0; axis < 3; ++axis) {
      Pose other;
      other.centre_mm[axis] = away;
      CHECK(box_iou(unit, other) == 0);
      CHECK(iou_elsewhere(unit, other) == 0);
    }
  }
}

TEST_CASE("the intersection of turned boxes is the share of points that lie in both") {
  const Pose a{{3, -2, 5}, canonical({0.8, 0.3, -0.4, 0.2}), {30, 18, 11}};
  const Pose b{{7, 1, 2}, canonical({0.5, -0.6, 0.1, 0.7}), {14, 40, 21}};
  int64_t in_both = 0, points = 0;
  constexpr int kSteps = 100;
  for (int i = 0; i < kSteps * kSteps * kSteps; ++i, ++points) {
    const int row = i / kSteps, plane = row / kSteps;
    const Vec3d box{(i % kSteps + 0.5) / kSteps - 0.5, (row % kSteps + 0.5) / kSteps - 0.5,
                    (plane + 0.5) / kSteps - 0.5};
    const Vec3d other = box_from_world(b, world_from_box(a, box));
    in_both += std::abs(other.x) <= 0.5 && std::abs(other.y) <= 0.5 && std::abs(other.z) <= 0.5;
  }
  const double in_a = 30 * 18 * 11, in_b = 14 * 40 * 21;
  const double shared = in_a * double(in_both) / double(points);
  CHECK(box_iou(a, b) == Approx(shared / (in_a + in_b - shared)).epsilon(2e-3));
  CHECK(box_iou(a, b) == Approx(box_iou(b, a)).epsilon(1e-12));
}

TEST_CASE("errors of a pose, and where there is none") {
  const Pose truth{{10, 20, 30}, canonical({0.9, 0.1, -0.3, 0.2}), {60, 30, 40}};
  PoseScores s(&truth, truth);
  CHECK(s["centre_error_mm"] == 0);
  CHECK(s["line_error_mm"] == 0);
  CHECK(s["rotation_error_deg"] == Approx(0).margin(1e-6));
  CHECK(s["scale_error"] == 0);
  CHECK(s["box_iou"] == Approx(1));
  CHECK(s["failure"] == 0);

  Pose found = truth;
  found.centre_mm.x += 10;  // as far as is allowed
  found.edges_mm = {66, 27, 40};
  s = PoseScores(&found, truth);
  CHECK(s["failure"] == 0);
  CHECK(s["scale_error"] == Approx(0.2 / 3));
  found.centre_mm.x += 0.01;
  CHECK(PoseScores(&found, truth)["failure"] == 1);
  const Pose small{{0, 0, 0}, {}, {60, 8, 40}}, off{{0, 4.5, 0}, {}, {60, 8, 40}};
  CHECK(PoseScores(&off, small)["failure"] == 1);

  s = PoseScores(nullptr, truth);
  CHECK(s["failure"] == 1);
  CHECK(s["box_iou"] == 0);
  CHECK(std::isnan(s["centre_error_mm"]));
  CHECK(std::isnan(s["line_error_mm"]));
  CHECK(s["missed"] == 1);
  CHECK(s.structure == "liver");
  CHECK(s.scores.size() == 8);
  const StructureScores absent = score_pose("liver", &truth, nullptr);
  CHECK(std::isnan(absent.scores[5].value));
  CHECK(absent.scores[7].value == 1);  // false_positive
}

TEST_CASE("the axial line follows a turn about z, and declared symmetries") {
  const Pose truth{{0, 0, 0}, turned(0, 25), {60, 20, 20}};
  const auto turned_by = [&](int axis, double degrees) {
    return Pose{truth.centre_mm, truth.rotation * turned(axis, degrees), truth.edges_mm};
  };
  const Pose tilted = turned_by(2, 10), flipped = turned_by(2, 180), rolled = turned_by(0, 90);
  PoseScores s(&tilted, truth);
  CHECK(s["centre_error_mm"] == 0);
  CHECK(s["line_error_mm"] == Approx(5.229).margin(5e-4));
  CHECK(s["rotation_error_deg"] == Approx(10));
  CHECK(PoseScores(&flipped, truth)["line_error_mm"] == Approx(60));
  CHECK(PoseScores(&rolled, truth)["rotation_error_deg"] == Approx(90));
  const std::vector<Quaternion> symmetries{turned(2, 180), turned(0, 90)};
  s = PoseScores(&flipped, truth, symmetries);
  CHECK(s["line_error_mm"] == Approx(0).margin(1e-12));
  CHECK(s["rotation_error_deg"] == Approx(0).margin(1e-6));
  CHECK(PoseScores(&rolled, truth, symmetries)["rotation_error_deg"] == Approx(0).margin(1e-6));

  // The same box with its axes x and y renamed: the length stands on y.
  const Pose renamed{truth.centre_mm, truth.rotation * turned(2, 90), {20, 60, 20}};
  CHECK(PoseScores(&renamed, truth)["scale_error"] > 0.5);
  const std::vector<Quaternion> quarter{turned(2, 90)};
  s = PoseScores(&renamed, truth, quarter);
  CHECK(s["line_error_mm"] == Approx(0).margin(1e-12));
  CHECK(s["scale_error"] == 0);
  CHECK(s["box_iou"] == Approx(1));
}

}  // namespace
}  // namespace larch::metrics
