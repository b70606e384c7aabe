// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/digest.h"
#include "larch/phantom/noise_math.h"
#include "larch/phantom/organs.h"

namespace {

using namespace larch;
using namespace larch::phantom;

std::string digest(const OrgansCase& c) {
  Sha256 sha;
  sha.update(c.image.data(), c.image.voxels() * sizeof(int16_t));
  sha.update(c.labels.data(), c.labels.voxels() * sizeof(int32_t));
  return hex(sha.digest());
}

}  // namespace

TEST_CASE("a sample depends on seed and number, not on the threads") {
  const std::string first = digest(make_organs({}, 0, 0, 1));
  CHECK(first == digest(make_organs({}, 0, 0, 3)));
  CHECK(first != digest(make_organs({}, 0, 1, 1)));
  CHECK(first != digest(make_organs({}, 1, 0, 1)));
}

TEST_CASE("the organ lies inside the volume and has the size it should have") {
  for (int number = 0; number < 16; ++number) {
    const OrgansCase c = make_organs({}, 0, number, 2);
    const Vec3i size = c.labels.size();
    int64_t voxels = 0, at_border = 0;
    for (int64_t i = 0; i < c.labels.voxels(); ++i) {
      const Vec3i at = c.labels.grid().voxel(i);
      voxels += c.labels[i] == 1;
      for (int axis = 0; axis < 3; ++axis) {
        at_border += c.labels[i] == 1 && (at[axis] == 0 || at[axis] == size[axis] - 1);
      }
    }
    CHECK(at_border == 0);
    CHECK(voxels > 2500);
    CHECK(voxels < 12000);
  }
}

TEST_CASE("no intensity window finds the organ") {
  double best_sum = 0;
  for (int number = 0; number < 4; ++number) {
    const OrgansCase c = make_organs({}, 0, number, 2);
    // Histograms in steps of 10, then every window.
    std::vector<int64_t> organ(200, 0), all(200, 0);
    for (int64_t i = 0; i < c.image.voxels(); ++i) {
      const int bin = std::clamp(c.image[i] / 10, 0, 199);
      ++all[bin];
      if (c.labels[i] == 1) ++organ[bin];
    }
    int64_t size = 0;
    for (const int64_t n : organ) size += n;
    double best = 0;
    for (int low = 0; low < 200; ++low) {
      int64_t hits = 0, taken = 0;
      for (int high = low; high < 200; ++high) {
        hits += organ[high];
        taken += all[high];
        best = std::max(best, 2.0 * hits / (size + taken));
      }
    }
    best_sum += best;
  }
  CHECK(best_sum / 4 < 0.7);
  CHECK(best_sum / 4 > 0.3);  // intensity says something, as in real images
}

TEST_CASE("noise and bias do what their options say") {
  OrgansConfig quiet, loud;
  quiet.noise = 0;
  quiet.bias = loud.bias = 0;
  loud.noise = 40;
  const OrgansCase a = make_organs(quiet, 3, 0, 2), b = make_organs(loud, 3, 0, 2);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < a.image.voxels(); ++i) {
    const double d = b.image[i] - a.image[i];
    sum += d;
    squares += d * d;
  }
  const auto n = static_cast<double>(a.image.voxels());
  CHECK(sum / n == Approx(0).margin(0.5));
  CHECK(std::sqrt(squares / n) == Approx(40).epsilon(0.02));
  OrgansConfig tilted = quiet;
  tilted.bias = 0.5;
  CHECK(digest(make_organs(tilted, 3, 0, 2)) != digest(a));
}

TEST_CASE("a sample has the size and spacing asked for, centred at the origin") {
  OrgansConfig config;
  config.size = {20, 24, 17};
  config.spacing_mm = {4, 4, 6};
  const OrgansCase c = make_organs(config, 0, 0, 1);
  CHECK(c.image.size() == Vec3i{20, 24, 17});
  CHECK(c.image.grid().spacing_mm == Vec3d{4, 4, 6});
  CHECK(norm(world_from_index(c.image.grid(), {9.5, 11.5, 8})) == Approx(0).margin(1e-9));
}

TEST_CASE("value noise is continuous, centred and bounded") {
  double sum = 0, squares = 0;
  for (int i = 0; i < 4000; ++i) {
    const Vec3d p{0.37 * i - 700, 0.11 * i, -0.23 * i};
    const double v = value_noise(1, 2, p);
    REQUIRE(std::fabs(v) <= 1);
    REQUIRE(std::fabs(v - value_noise(1, 2, p + Vec3d{1e-6, 0, 0})) < 1e-5);
    sum += v;
    squares += v * v;
  }
  CHECK(sum / 4000 == Approx(0).margin(0.03));
  CHECK(std::sqrt(squares / 4000) == Approx(0.37).margin(0.03));
}
