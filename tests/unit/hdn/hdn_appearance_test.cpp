// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The last step of detection: a structure is moved to where the image looks like the mean of the
// training cases.
#include <cmath>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/hdn/appearance.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::hdn {
namespace {

using pose::RelativePose;

constexpr double kMm = 1.5;
constexpr int kSide = 48;

/// A ball without symmetry, brighter towards two places, on a background.
double intensity(const Vec3d& box) {
  const auto bump = [&](const Vec3d& at, double width) {
    return exp_of(-dot(box - at, box - at) / (width * width));
  };
  return 200 + 500 / (1 + exp_of(40 * (norm(box) - 0.45))) + 300 * bump({0.25, 0.1, 0}, 0.15) -
         250 * bump({-0.1, -0.2, 0.2}, 0.2);
}

Volume<int16_t> image_of(const Pose& truth) {
  Grid grid;
  grid.size = {kSide, kSide, kSide};
  grid.spacing_mm = {kMm, kMm, kMm};
  Volume<int16_t> image(grid);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    const Vec3d box = box_from_world(truth, grid.voxel(i).cast<double>() * kMm);
    image[i] = static_cast<int16_t>(std::lround(intensity(box)));
  }
  return image;
}

/// Numbers around 0, a new one for each `k`.
double draw(uint64_t k) {
  return 2 * hash_unit(7, 3, k) - 1;
}

Pose true_pose(uint64_t n) {
  return {{36 + 4 * draw(9 * n), 36 + 4 * draw(9 * n + 1), 36 + 4 * draw(9 * n + 2)},
          from_rotation_vector(Vec3d{draw(9 * n + 3), draw(9 * n + 4), draw(9 * n + 5)} * 0.5),
          {36, 28 + draw(9 * n + 6), 22 + draw(9 * n + 7)}};
}

Pose found_pose(uint64_t n) {
  RelativePose off;
  for (size_t k = 0; k < 9; ++k) {
    off[k] = draw(1000 + 9 * n + k) * (k < 3 ? 2 : k < 6 ? 0.1 : 0.05);
  }
  return pose::pose_from_relative(true_pose(n), off);
}

/// The cases that an appearance is learned from.
struct Training {
  std::vector<Volume<int16_t>> volumes;
  std::vector<FinestImage> images;
  pose::CorrectionCases cases;
  std::vector<Pose> poses;

  explicit Training(size_t count, size_t folds = 2) {
    volumes.reserve(count);
    for (size_t n = 0; n < count; ++n) {
      volumes.push_back(image_of(true_pose(n)));
      images.push_back({&volumes[n], {}});
      cases.truth.push_back(true_pose(n));
      cases.fold_of.push_back(n % folds);
      poses.push_back(found_pose(n));
    }
  }
  Appearance learn(int threads = 2) {
    return learn_appearance(images, cases, {}, poses, fixtures::context_of(threads));
  }
};

double off_mm(const Pose& a, const Pose& b) {
  return norm(a.centre_mm - b.centre_mm);
}

TEST_CASE("a structure moves to where the image looks like the mean of the training cases") {
  Training training(12);
  const Appearance appearance = training.learn();
  REQUIRE(appearance.exists());
  for (const double gain : appearance.gains) CHECK((gain > 0.7 && gain <= 1));
  for (uint64_t n = 0; n < 20; ++n) {
    CAPTURE(n);
    const Pose truth = true_pose(n), found = found_pose(n);
    const Volume<int16_t> volume = image_of(truth);
    const Pose refined = n < 12 ? training.poses[n]  // by what the other fold knows
                                : refined_pose(appearance, {&volume, {}}, found);
    CHECK(off_mm(refined, truth) < 0.3);
    CHECK(off_mm(refined, truth) < off_mm(found, truth));
    CHECK(angle_between(refined.rotation, truth.rotation) < 0.03);
    for (int axis = 0; axis < 3; ++axis) {
      CHECK(refined.edges_mm[axis] == Approx(truth.edges_mm[axis]).epsilon(0.03));
    }
  }
  Appearance none = appearance;
  none.gains = {};
  CHECK(refined_pose(none, training.images[0], found_pose(0)) == found_pose(0));
}

TEST_CASE("what lies outside of the image counts for nothing") {
  Training training(12);
  const Appearance appearance = training.learn();
  const Pose truth = true_pose(50), found = found_pose(50);
  Volume<int16_t> volume = image_of(truth);
  // The image ends a quarter of the box below its centre.
  const int end = static_cast<int>((truth.centre_mm.z - truth.edges_mm.z / 4) / kMm);
  FinestImage image{&volume, {}};
  image.extent.is_part = 1;
  image.extent.first = {0, 0, -static_cast<double>(end)};
  for (int axis = 0; axis < 3; ++axis) image.extent.step[axis][axis] = 1 / kMm;
  image.extent.size = {kSide, kSide, static_cast<double>(kSide - end)};
  const Pose wanted = refined_pose(appearance, image, found);
  CHECK(off_mm(wanted, truth) < 0.5);
  for (int64_t i = 0; i < int64_t{end - 1} * kSide * kSide; ++i) volume[i] = 20000;
  CHECK(refined_pose(appearance, image, found) == wanted);
  image.extent = {};
  CHECK_FALSE(refined_pose(appearance, image, found) == wanted);
  // Of a structure that lies elsewhere there is nothing to see, nor in an image of one intensity.
  Pose elsewhere = found;
  elsewhere.centre_mm.x = -15;
  CHECK(refined_pose(appearance, image, elsewhere) == elsewhere);
  std::fill(volume.begin(), volume.end(), int16_t{300});
  CHECK(refined_pose(appearance, image, found) == found);
}

TEST_CASE("an appearance does not depend on threads, and has to pay in held-out cases") {
  Training training(12), other(12), few(9), one_fold(12, 1), found_well(12);
  const Appearance appearance = training.learn(1), same = other.learn(3);
  CHECK(same.mean == appearance.mean);
  CHECK(same.weight == appearance.weight);
  CHECK(same.gains == appearance.gains);
  CHECK(other.poses == training.poses);
  found_well.poses = found_well.cases.truth;
  for (Training* in_vain : {&few, &one_fold, &found_well}) {
    const std::vector<Pose> before = in_vain->poses;
    CHECK(in_vain->learn().gains == RelativePose{});
    CHECK(in_vain->poses == before);
  }
}

}  // namespace
}  // namespace larch::hdn
