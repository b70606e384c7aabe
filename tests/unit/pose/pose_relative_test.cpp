// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/portable_math.h"
#include "larch/pose/correction.h"
#include "larch/pose/relative.h"

namespace larch::pose {
namespace {

Pose random_pose(uint64_t seed) {
  const auto drawn = [&](uint64_t k) { return draw_normal(seed, 2, k); };
  return {Vec3d{drawn(0), drawn(1), drawn(2)} * 50,
          from_rotation_vector({drawn(3), drawn(4), drawn(5)}),
          {30 + 20 * hash_unit(seed, 3, 0), 20, 10}};
}

/// Parents anywhere and children at (10, -5, 20) mm in their frames, give or take 2 mm.
using Pair = std::pair<Pose, Pose>;
std::vector<Pair> pairs(size_t count) {
  std::vector<Pair> all;
  for (uint64_t i = 0; i < count; ++i) {
    const auto drawn = [&](uint64_t k) { return draw_normal(9, k, i); };
    const Pose parent = random_pose(100 + i);
    all.emplace_back(
        parent, pose_from_relative(parent, {10 + 2 * drawn(0), -5 + 2 * drawn(1), 20 + 2 * drawn(2),
                                            0.3 + 0.1 * drawn(3), 0.1 * drawn(4), 0.1 * drawn(5),
                                            -0.7, 0.1 * drawn(6), 0.2}));
  }
  return all;
}

RelativeGaussian fit(const std::vector<Pair>& all, const RelativeFloor& floor = {}) {
  std::vector<RelativePose> relative;
  relative.reserve(all.size());
  for (const auto& [parent, child] : all) relative.push_back(relative_pose(parent, child));
  return fit_gaussian(relative, floor);
}

TEST_CASE("a pose that is seen from another comes back from there") {
  for (uint64_t i = 0; i < 50; ++i) {
    const Pose parent = random_pose(i), child = random_pose(1000 + i);
    const Pose back = pose_from_relative(parent, relative_pose(parent, child));
    CHECK(norm(back.centre_mm - child.centre_mm) < 1e-9);
    CHECK(angle_between(back.rotation, child.rotation) < 1e-9);
    CHECK(norm(back.edges_mm - child.edges_mm) < 1e-9);
  }
  const Pose parent{{1, 2, 3}, from_rotation_vector({0, 0, 1.5707963267948966}), {4, 4, 4}};
  const RelativePose r = relative_pose(parent, {{1, 7, 3}, parent.rotation, {8, 4, 2}});
  CHECK(r[0] == Approx(5));  // the parent's x axis points along y of the world
  CHECK(r[1] == Approx(0).margin(1e-12));
  CHECK(r[6] == Approx(std::log(2)));
  CHECK(r[8] == Approx(-std::log(2)));
}

TEST_CASE("the Gaussian of 200 pairs is that which they were drawn from") {
  const RelativeGaussian g = fit(pairs(200));
  CHECK(g.count == 200);
  const double mean[9] = {10, -5, 20, 0.3, 0, 0, -0.7, 0, 0.2};
  const double sigma[9] = {2, 2, 2, 0.1, 0.1, 0.1, 0, 0.1, 0};
  for (size_t i = 0; i < 9; ++i) {
    CAPTURE(i);
    CHECK(g.mean[i] == Approx(mean[i]).margin(sigma[i] / 4 + 1e-9));
    CHECK(std::sqrt(g.covariance[10 * i]) == Approx(sigma[i]).epsilon(0.2).margin(1e-7));
    for (size_t k = 0; k < 9; ++k) CHECK(g.covariance[9 * i + k] == g.covariance[9 * k + i]);
  }
}

TEST_CASE("few pairs give no correlations, and no deviation below the floor") {
  const RelativeFloor floor{1, 0.2, 0.3};
  const RelativeGaussian g = fit(pairs(10), floor), without = fit(pairs(10));
  for (size_t i = 0; i < 9; ++i)
    for (size_t k = 0; k < 9; ++k) {
      const double least = i < 3 ? 1 : i < 6 ? 0.2 : 0.3;
      const double wanted = i == k ? without.covariance[10 * i] + least * least : 0;
      CHECK(g.covariance[9 * i + k] == Approx(wanted).margin(1e-15));
    }
  CHECK(fit(pairs(1), floor).covariance[0] == 1);
  CHECK(fit_gaussian({}, floor) == RelativeGaussian{});
}

TEST_CASE("a common motion of all pairs does not change the Gaussian") {
  const std::vector<Pair> all = pairs(200);
  const Pose motion = random_pose(5);
  std::vector<Pair> moved;
  moved.reserve(all.size());
  for (const auto& [parent, child] : all) {
    moved.emplace_back(compose(motion, parent), compose(motion, child));
  }
  const RelativeGaussian a = fit(all), b = fit(moved);
  for (size_t i = 0; i < 9; ++i) CHECK(b.mean[i] == Approx(a.mean[i]).margin(1e-4));
  for (size_t i = 0; i < 81; ++i) {
    CHECK(b.covariance[i] == Approx(a.covariance[i]).margin(1e-4));
  }
}

TEST_CASE("the ellipsoid of a Gaussian lies within its reach") {
  RelativeGaussian g;
  g.count = 1;
  const double covariance[3][3] = {{9, 4, -2}, {4, 16, 5}, {-2, 5, 4}};
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = 0; k < 3; ++k) g.covariance[9 * i + k] = covariance[i][k];
  const double limit = 11.34;
  const CentreGaussian centre = centre_gaussian(g, limit);
  CHECK(mahalanobis_square(centre, {0, 0, 0}) == 0);
  double farthest = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Vec3d along{draw_normal(1, 0, i), draw_normal(1, 1, i), draw_normal(1, 2, i)};
    const double square = mahalanobis_square(centre, along);
    REQUIRE(square > 0);
    farthest = std::max(farthest, norm(along) * std::sqrt(limit / square));
  }
  CHECK(farthest <= centre.reach_mm);
  CHECK(farthest > centre.reach_mm / 2);

  // The density integrates to 1.
  double sum = 0;
  const double step = 0.7;
  for (int x = -30; x <= 30; ++x)
    for (int y = -30; y <= 30; ++y)
      for (int z = -30; z <= 30; ++z) {
        const Vec3d at = Vec3i{x, y, z}.cast<double>() * step;
        sum += std::exp(centre.log_density - 0.5 * mahalanobis_square(centre, at));
      }
  CHECK(sum * step * step * step == Approx(1).epsilon(1e-3));
}

/// Mean distance of the held-out poses of 120 cases from the truth, divided by that of the poses as
/// they were found: 2 mm off, beside five structures that are `noise_mm` from their place.
double share_of_error(double noise_mm) {
  constexpr size_t kStructures = 6;
  std::vector<std::vector<Pose>> found;
  CorrectionCases cases;
  double before = 0, after = 0;
  for (uint64_t i = 0; i < 120; ++i) {
    const auto drawn = [&](uint64_t k) { return draw_normal(11, k, i); };
    const Pose truth = random_pose(500 + i);
    std::vector<Pose>& poses = found.emplace_back();
    poses.push_back(pose_from_relative(truth, {2 * drawn(0), 2 * drawn(1), 2 * drawn(2)}));
    for (uint64_t s = 1; s < kStructures; ++s) {
      poses.push_back(
          pose_from_relative(truth, {noise_mm * drawn(3 * s), noise_mm * drawn(3 * s + 1),
                                     20 + noise_mm * drawn(3 * s + 2)}));
    }
    cases.truth.push_back(truth);
    cases.fold_of.push_back(i % 4);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    FoundPoses& all = cases.found.emplace_back();
    for (const Pose& pose : found[i]) all.push_back(&pose);
    // A structure that is missing counts as being where it is in the mean.
    if (i % 10 == 0) all[5] = nullptr;
  }
  const std::vector<Pose> poses = learn_correction(cases, 0).held_out;
  for (size_t i = 0; i < poses.size(); ++i) {
    before += norm(found[i][0].centre_mm - cases.truth[i].centre_mm);
    after += norm(poses[i].centre_mm - cases.truth[i].centre_mm);
  }
  return after / before;
}

TEST_CASE("a pose is corrected by what else was found, where that tells something") {
  CHECK(share_of_error(0.2) < 0.3);
  CHECK(share_of_error(30) == Approx(1).margin(0.03));
}

}  // namespace
}  // namespace larch::pose
