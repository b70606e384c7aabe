// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/digest.h"
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

TEST_CASE("other axes give the same voxels in another order, at the same places") {
  OrgansConfig config;
  config.size = {20, 24, 17};
  config.spacing_mm = {4, 3, 6};
  config.rotation_deg = {10, -20, 15};
  const OrgansCase plain = make_organs(config, 5, 0, 2);
  for (const char* axes : {"RAI", "SRP", "LAS", "PIL"}) {
    OrgansConfig other = config;
    other.axes = axes;
    for (size_t k = 0; k < 3; ++k) {
      const size_t to = std::string("LPSRAI").find(axes[k]) % 3;
      other.size[k] = config.size[to];
      other.spacing_mm[k] = config.spacing_mm[to];
    }
    const OrgansCase turned = make_organs(other, 5, 0, 2);
    int64_t different = 0;
    for (int64_t i = 0; i < turned.image.voxels(); ++i) {
      const Vec3d p =
          world_from_index(turned.image.grid(), turned.image.grid().voxel(i).cast<double>());
      const Vec3d at = index_from_world(plain.image.grid(), p);
      const Vec3i voxel{static_cast<int>(std::lround(at.x)), static_cast<int>(std::lround(at.y)),
                        static_cast<int>(std::lround(at.z))};
      different += norm(at - voxel.cast<double>()) > 1e-9 ||
                   turned.image[i] != plain.image(voxel) || turned.labels[i] != plain.labels(voxel);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("a turned grid shows the same body") {
  OrgansConfig config, turned;
  turned.rotation_deg = {12, 25, -30};
  const OrgansCase a = make_organs(config, 5, 0, 2), b = make_organs(turned, 5, 0, 2);
  CHECK(determinant(b.image.grid().direction) == Approx(1).margin(1e-12));
  // Columns of the product of rotations about x, y and z, in this order.
  CHECK(b.image.grid().direction.m[2][0] == Approx(-std::sin(25 * M_PI / 180)).margin(1e-6));
  int64_t both = 0, one = 0;
  for (int64_t i = 0; i < b.labels.voxels(); ++i) {
    const Vec3d p = world_from_index(b.labels.grid(), b.labels.grid().voxel(i).cast<double>());
    const Vec3d at = index_from_world(a.labels.grid(), p);
    const Vec3i voxel{static_cast<int>(std::lround(at.x)), static_cast<int>(std::lround(at.y)),
                      static_cast<int>(std::lround(at.z))};
    const bool in_a = a.labels.grid().contains(voxel) && a.labels(voxel) == 1;
    both += in_a && b.labels[i] == 1;
    one += in_a || b.labels[i] == 1;
  }
  CHECK(both > 0.8 * static_cast<double>(one));
}
