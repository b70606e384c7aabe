// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/filters/components.h"
#include "tests/unit/box_mask.h"

namespace larch::filters {
namespace {

using test::box_mask;

int64_t count(const Volume<uint8_t>& mask) {
  return std::count(mask.begin(), mask.end(), uint8_t{1});
}

/// Background that no path through faces leads out of, by repeated sweeps.
Volume<uint8_t> filled_by_sweeps(const Volume<uint8_t>& mask) {
  const Vec3i size = mask.size();
  Volume<uint8_t> outside(mask.grid());
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      if (mask[i] != 0 || outside[i] != 0) continue;
      const Vec3i at = mask.grid().voxel(i);
      bool reached = false;
      for (int axis = 0; axis < 3; ++axis) {
        if (axis == 2 && size.z == 1) continue;
        for (const int step : {-1, 1}) {
          Vec3i next = at;
          next[axis] += step;
          reached = reached || !mask.grid().contains(next) || outside(next) != 0;
        }
      }
      if (reached) outside[i] = 1;
      changed = changed || reached;
    }
  }
  for (uint8_t& voxel : outside) voxel = static_cast<uint8_t>(voxel == 0);
  return outside;
}

/// Components in the order of their first voxel, by flooding: the voxel indices of each.
std::vector<std::vector<int64_t>> flooded(const Volume<uint8_t>& mask) {
  std::vector<std::vector<int64_t>> all;
  Volume<uint8_t> seen(mask.grid());
  for (int64_t start = 0; start < mask.voxels(); ++start) {
    if (mask[start] == 0 || seen[start] != 0) continue;
    std::vector<int64_t> component{start};
    seen[start] = 1;
    for (size_t done = 0; done < component.size(); ++done) {
      for (int axis = 0; axis < 3; ++axis) {
        for (const int step : {-1, 1}) {
          Vec3i next = mask.grid().voxel(component[done]);
          next[axis] += step;
          if (!mask.grid().contains(next) || mask(next) == 0 || seen(next) != 0) continue;
          seen(next) = 1;
          component.push_back(mask.grid().linear(next));
        }
      }
    }
    all.push_back(component);
  }
  return all;
}

TEST_CASE("the largest components of random masks are those that flooding finds") {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    Grid grid;
    grid.size = {1 + below(12), 1 + below(9), 1 + below(7)};
    Volume<uint8_t> mask(grid);
    const int often = 2 + below(4);
    for (uint8_t& voxel : mask) voxel = below(often) == 0 ? 9 : 0;
    auto components = flooded(mask);
    const int threads = 1 + round % 4;
    std::stable_sort(components.begin(), components.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const int n : {1, 3}) {
      Volume<uint8_t> wanted(grid);
      for (size_t c = 0; c < components.size() && c < static_cast<size_t>(n); ++c) {
        for (const int64_t voxel : components[c]) wanted[voxel] = 1;
      }
      const Volume<uint8_t> kept = keep_largest_component(mask, n, threads);
      CHECK(std::equal(wanted.begin(), wanted.end(), kept.begin()));
    }
  }
}

TEST_CASE("holes of random masks, wherever in the volume they lie") {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    const Vec3i size{1 + below(9), 1 + below(9), round % 3 == 0 ? 1 : 1 + below(9)};
    auto mask = box_mask(size, {1, 1, 1}, {0, 0, 0});
    const Vec3i low{below(size.x), below(size.y), below(size.z)};
    const int often = 2 + below(5);
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      const Vec3i at = mask.grid().voxel(i);
      const bool inside = at.x >= low.x && at.y >= low.y && at.z >= low.z;
      mask[i] = inside && below(often) > 0 ? 3 : 0;
    }
    const Volume<uint8_t> wanted = filled_by_sweeps(mask), filled = fill_holes(mask);
    CHECK(std::equal(wanted.begin(), wanted.end(), filled.begin()));
    const Volume<uint8_t> all = keep_largest_component(mask, 1000);
    CHECK(std::equal(all.begin(), all.end(), mask.begin(),
                     [](uint8_t a, uint8_t b) { return (a != 0) == (b != 0); }));
  }
}

TEST_CASE("the largest components of each class are kept, and none of 0") {
  auto mask = box_mask({10, 10, 10}, {0, 0, 0}, {3, 3, 3});
  mask({4, 4, 4}) = 1;  // touches the box at a corner only
  for (int x = 6; x < 9; ++x) mask({x, 8, 8}) = 7;
  CHECK(count(keep_largest_component(mask, 0)) == 0);
  CHECK_THROWS_AS(keep_largest_component(mask, -1), UsageError);
  // Two classes: the box is the largest of class 0, the bar of class 1, the voxel of neither.
  LabelVolume classes(mask.grid());
  for (int x = 6; x < 9; ++x) classes({x, 8, 8}) = 1;
  classes({1, 1, 1}) = 1;
  const auto kept = keep_largest_component(mask, 1, 2, &classes);
  CHECK(count(kept) == 67);
  CHECK(kept({4, 4, 4}) == 0);
}

TEST_CASE("components that go through many blocks of rows are found by any number of threads") {
  // A spiral in each slice that is one voxel wide, every third of them joined with the one above;
  // and dust between them.
  std::mt19937 random(11);
  Grid grid;
  grid.size = {40, 67, 31};
  for (const unsigned rare : {2U, 3U, 30U}) {
    Volume<uint8_t> mask(grid);
    for (uint8_t& voxel : mask) voxel = random() % rare == 0 ? 1 : 0;
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      const Vec3i at = grid.voxel(i);
      if (at.z % 3 != 2 && (at.y % 2 == 0 || at.x == (at.y % 4 < 2 ? 0 : 39))) mask[i] = 1;
    }
    const Volume<uint8_t> kept = keep_largest_component(mask, 3), filled = fill_holes(mask);
    for (const int threads : {2, 3, 5, 16, 1000}) {
      const Volume<uint8_t> kept_too = keep_largest_component(mask, 3, threads);
      const Volume<uint8_t> filled_too = fill_holes(mask, threads);
      CHECK(std::equal(kept.begin(), kept.end(), kept_too.begin()));
      CHECK(std::equal(filled.begin(), filled.end(), filled_too.begin()));
    }
  }
}

TEST_CASE("dilation reaches as far as it says, and not round the edges") {
  std::vector<uint8_t> labels(20 * 10, 0);
  labels[4 * 20 + 6] = labels[9 * 20 + 19] = 1;
  const auto out = dilated(labels, {20, 10, 1}, 3);
  for (int32_t y = 0; y < 10; ++y) {
    for (int32_t x = 0; x < 20; ++x) {
      const bool near = (std::abs(x - 6) <= 3 && std::abs(y - 4) <= 3) || (x >= 16 && y >= 6);
      CHECK(int{out[static_cast<size_t>(y * 20 + x)]} == (near ? 1 : 0));
    }
  }
}

}  // namespace
}  // namespace larch::filters
