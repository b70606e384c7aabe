// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/filters/distance.h"
#include "tests/unit/box_mask.h"

namespace larch::filters {
namespace {

using test::box_mask;

/// By its definition: all pairs of voxels.
Volume<float> slow_distance(const Volume<uint8_t>& mask) {
  const Grid& grid = mask.grid();
  std::vector<Vec3i> layer;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    const Vec3i at = grid.voxel(i);
    bool touches = false;
    for (int n = 0; n < 27; ++n) {
      const Vec3i next = at + Vec3i{n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1};
      touches = touches || (grid.contains(next) && mask(next) == 0);
    }
    if (touches) layer.push_back(at);
  }
  Volume<float> out(grid);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (const Vec3i& other : layer) {
      const Vec3i d = grid.voxel(i) - other;
      least = std::min(least, norm(Vec3d{d.x * grid.spacing_mm.x, d.y * grid.spacing_mm.y,
                                         d.z * grid.spacing_mm.z}));
    }
    out[i] = static_cast<float>(mask[i] != 0 ? -least : least);
  }
  return out;
}

TEST_CASE("signed distances of random masks are those of all pairs of voxels") {
  std::mt19937 random(4);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 150; ++round) {
    Grid grid;
    grid.size = {1 + below(11), 1 + below(9), round % 3 == 0 ? 1 : 1 + below(8)};
    grid.spacing_mm = {0.3 + below(20) / 7.0, 0.5 + below(9), 0.25 + below(3) * 1.25};
    Volume<uint8_t> mask(grid);
    const int often = 2 + below(40);
    for (uint8_t& voxel : mask) voxel = below(often) == 0 ? 5 : 0;
    const int64_t inside = std::count(mask.begin(), mask.end(), uint8_t{5});
    if (inside == 0 || inside == mask.voxels()) continue;
    if (round % 2 == 0) {
      for (uint8_t& voxel : mask) voxel = voxel == 0;
    }
    const Volume<float> wanted = slow_distance(mask), one = signed_distance_mm(mask);
    for (int64_t i = 0; i < mask.voxels(); ++i) REQUIRE(one[i] == Approx(wanted[i]).margin(1e-6));
    const Volume<float> three = signed_distance_mm(mask, 3);
    CHECK(std::equal(one.begin(), one.end(), three.begin()));
  }
}

TEST_CASE("signed distances are Euclidean, in mm") {
  const auto mask = box_mask({21, 21, 21}, {10, 0, 0}, {20, 20, 20}, {0.5, 1, 2});
  const auto distance = signed_distance_mm(mask);
  CHECK(distance({9, 5, 5}) == Approx(0.5));
  CHECK(distance({0, 5, 5}) == Approx(5));
  CHECK(distance({10, 5, 5}) == Approx(0).margin(1e-6));
  CHECK(distance({20, 5, 5}) == Approx(-5));
  const auto point = box_mask({15, 15, 15}, {7, 7, 7}, {7, 7, 7}, {1, 1, 3});
  const auto around = signed_distance_mm(point);
  CHECK(around({10, 3, 7}) == Approx(5));
  CHECK(around({7, 11, 8}) == Approx(5));
  CHECK_THROWS_WITH(signed_distance_mm(Volume<uint8_t>(mask.grid())), Catch::Contains("empty"));
  CHECK_THROWS_WITH(signed_distance_mm(Volume<uint8_t>(mask.grid(), 1)), Catch::Contains("full"));
}

}  // namespace
}  // namespace larch::filters
