// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/features/haar.h"
#include "larch/features/tap.h"
#include "larch/image/integral.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::features;
using fixtures::context_of;
using fixtures::noise_volume;

HaarPoolSpec small_pool(int features = 3000, int window = 9) {
  HaarPoolSpec spec;
  spec.features = features;
  spec.window = window;
  spec.sizes = {1, 2, 3, 4};
  spec.seed = 11;
  return spec;
}

HaarFeature feature_of(std::initializer_list<Cuboid> cuboids) {
  HaarFeature feature;
  for (const Cuboid& c : cuboids) {
    feature.cuboids[static_cast<size_t>(feature.cuboid_count++)] = c;
  }
  return feature;
}

/// The first feature of a family whose parts are larger than one voxel along every axis.
HaarFeature first_of(HaarType type) {
  HaarPoolSpec spec = small_pool(12 * 4000, 9);
  spec.sizes = {2};
  for (const HaarFeature& feature : make_haar_pool(spec)) {
    if (feature.type == type) return feature;
  }
  FAIL("no feature of this family");
  return {};
}

bool same(const HaarFeature& a, const HaarFeature& b) {
  if (a.type != b.type || a.channel != b.channel || a.pool_index != b.pool_index ||
      a.cuboid_count != b.cuboid_count) {
    return false;
  }
  for (size_t c = 0; c < static_cast<size_t>(a.cuboid_count); ++c) {
    if (a.cuboids[c].lo != b.cuboids[c].lo || a.cuboids[c].hi != b.cuboids[c].hi ||
        a.cuboids[c].weight != b.cuboids[c].weight) {
      return false;
    }
  }
  return true;
}

/// Sum of weighted voxels, read one by one with clamped or zero padding.
int64_t brute_force(const HaarFeature& feature, const Volume<int16_t>& v, const Vec3i& at,
                    image::Padding padding) {
  int64_t sum = 0;
  for (size_t c = 0; c < static_cast<size_t>(feature.cuboid_count); ++c) {
    const Cuboid& box = feature.cuboids[c];
    for (int z = box.lo.z; z < box.hi.z; ++z)
      for (int y = box.lo.y; y < box.hi.y; ++y)
        for (int x = box.lo.x; x < box.hi.x; ++x)
          sum += static_cast<int64_t>(box.weight) *
                 fixtures::padded_channel_value(v.view(), image::ChannelKind::kIntensity, padding,
                                                at.x + x, at.y + y, at.z + z);
  }
  return sum;
}

}  // namespace

TEST_CASE("corner taps merge where cuboids touch") {
  const HaarFeature edge = feature_of({{{-4, -2, -2}, {0, 2, 2}, 1}, {{0, -2, -2}, {4, 2, 2}, -1}});
  const std::vector<Tap> taps = corner_taps(edge);
  CHECK(taps.size() == 12);
  for (const Tap& tap : taps) {
    CHECK(std::abs(tap.weight) == (tap.dx == 0 ? 2 : 1));
  }
  CHECK(corner_taps(first_of(HaarType::kBox)).size() == 8);
  for (const HaarType type : {HaarType::kEdgeX, HaarType::kEdgeY, HaarType::kEdgeZ}) {
    CHECK(corner_taps(first_of(type)).size() == 12);
  }
  for (const HaarType type : {HaarType::kLineX, HaarType::kLineY, HaarType::kLineZ}) {
    CHECK(corner_taps(first_of(type)).size() == 16);
  }
  for (const HaarType type : {HaarType::kCheckerXY, HaarType::kCheckerXZ, HaarType::kCheckerYZ}) {
    CHECK(corner_taps(first_of(type)).size() == 18);
  }
  CHECK(corner_taps(first_of(HaarType::kCentreSurround)).size() == 16);
  CHECK(corner_taps(feature_of({{{0, 0, 0}, {2, 2, 2}, 1}, {{0, 0, 0}, {2, 2, 2}, -1}})).empty());
}

TEST_CASE("The families balance, stay in the window and differ") {
  const std::vector<HaarFeature> pool = make_haar_pool(small_pool());
  std::set<HaarType> seen;
  for (const HaarFeature& feature : pool) {
    seen.insert(feature.type);
    int64_t weighted = 0, bound = 0;
    for (size_t c = 0; c < static_cast<size_t>(feature.cuboid_count); ++c) {
      const Cuboid& box = feature.cuboids[c];
      weighted += box.weight * box.voxels();
      bound += std::abs(box.weight) * box.voxels() * 1000;
      for (int axis = 0; axis < 3; ++axis) {
        CHECK(box.lo[axis] >= -4);
        CHECK(box.hi[axis] <= 5);
        CHECK(box.lo[axis] < box.hi[axis]);
      }
    }
    if (feature.type != HaarType::kBox) CHECK(weighted == 0);
    CHECK(value_bound(feature, 1000) == bound);
    CHECK(reach(feature) <= 4);
    if (feature.type == HaarType::kOffsetPair) {
      CHECK(feature.cuboids[0].lo != feature.cuboids[1].lo);
      CHECK_FALSE(corner_taps(feature).empty());
    }
  }
  CHECK(seen.size() == static_cast<size_t>(HaarType::kCount));
  CHECK(std::string(to_string(HaarType::kCheckerYZ)) == "checker-yz");
}

TEST_CASE("The pool has its size, equal quotas and the same members every time") {
  HaarPoolSpec spec = small_pool(2400);
  spec.channels = 2;
  const std::vector<HaarFeature> pool = make_haar_pool(spec), again = make_haar_pool(spec);
  REQUIRE(pool.size() == 2400);
  REQUIRE(again.size() == pool.size());
  std::map<std::pair<int, HaarType>, int> count;
  for (size_t i = 0; i < pool.size(); ++i) {
    CHECK(pool[i].pool_index == i);
    CHECK(same(pool[i], again[i]));
    ++count[{pool[i].channel, pool[i].type}];
  }
  const int quota = 1200 / 12;
  int small_families = 0;
  for (const auto& [key, members] : count) {
    if (key.second == HaarType::kOffsetPair) {
      CHECK(members >= quota);
    } else {
      CHECK(members <= quota);
      if (members < quota) ++small_families;
    }
  }
  // Centre-surround has 7^3 + 4^3 + 1 members with these sizes; nothing is short of the quota.
  CHECK(small_families == 0);
  // What is left when families give all their members goes to the pairs.
  spec = small_pool(60000, 5);
  spec.sizes = {1, 2};
  std::map<HaarType, int> large;
  for (const HaarFeature& feature : make_haar_pool(spec)) ++large[feature.type];
  CHECK(large[HaarType::kCentreSurround] == 27);
  CHECK(large[HaarType::kBox] == 9 * 9 * 9);
  CHECK(large[HaarType::kEdgeX] == (4 + 2) * 9 * 9);
  int all = 0;
  for (const auto& [type, members] : large) all += members;
  CHECK(all == 60000);

  spec = small_pool(2400);
  const std::vector<HaarFeature> one = make_haar_pool(spec);
  spec.seed = 12;
  const std::vector<HaarFeature> other = make_haar_pool(spec);
  size_t differ = 0;
  for (size_t i = 0; i < one.size(); ++i) differ += !same(one[i], other[i]);
  CHECK(differ > one.size() / 4);
}

TEST_CASE("No feature of a pool is 0 whatever the image") {
  HaarPoolSpec spec;
  spec.features = 2000;
  spec.channels = 2;
  spec.window = 5;
  spec.sizes = {1, 4, 5};  // two boxes of 5 in a window of 5 are the same
  const auto pool = make_haar_pool(spec);
  CHECK(pool.size() == 2000);
  for (const HaarFeature& feature : pool) CHECK_FALSE(corner_taps(feature).empty());
  spec.sizes = {5, 7};
  CHECK_THROWS_WITH(make_haar_pool(spec), Catch::Contains("give a smaller size"));
}

TEST_CASE("Impossible pools are refused") {
  HaarPoolSpec spec = small_pool();
  spec.window = 8;
  CHECK_THROWS_AS(make_haar_pool(spec), UsageError);
  spec.window = 1;
  CHECK_THROWS_AS(make_haar_pool(spec), UsageError);
  spec = small_pool();
  spec.sizes = {};
  CHECK_THROWS_AS(make_haar_pool(spec), UsageError);
  spec.sizes = {0};
  CHECK_THROWS_AS(make_haar_pool(spec), UsageError);
  spec = small_pool(1 << 24);
  CHECK_THROWS_AS(make_haar_pool(spec), UsageError);
}

TEST_CASE("Features that could leave 32 bits are refused") {
  // 65537 voxels of 16 bits are the last that 32 bits without a sign can hold; int32 holds half.
  const HaarFeature box = feature_of({{{0, 0, 0}, {32, 32, 32}, 1}});
  CHECK(value_bound(box, 65535) == 32768LL * 65535);
  CHECK_NOTHROW(check_exact({box}, {65535}));
  const HaarFeature larger = feature_of({{{0, 0, 0}, {33, 32, 32}, 1}});
  CHECK_THROWS_AS(check_exact({larger}, {65535}), UsageError);
  const HaarFeature heavy =
      feature_of({{{0, 0, 0}, {32, 32, 32}, 1}, {{0, 0, 0}, {1, 1, 1}, -32768}});
  CHECK_THROWS_AS(check_exact({heavy}, {65535}), UsageError);
  HaarFeature other_channel = larger;
  other_channel.channel = 1;
  CHECK_NOTHROW(check_exact({other_channel}, {65535, 100}));
}

TEST_CASE("Every family equals a sum over its voxels, also across the border") {
  const Volume<int16_t> v = noise_volume({9, 8, 7}, 3, -500, 1500);
  const std::vector<HaarFeature> pool = make_haar_pool(small_pool(600));
  int pad = 0;
  for (const HaarFeature& feature : pool) pad = std::max(pad, reach(feature));
  const std::vector<image::ChannelSpec> channels{{image::ChannelKind::kIntensity, 0}};
  for (const image::Padding padding : {image::Padding::kClamp, image::Padding::kZero}) {
    const image::IntegralSet set =
        image::integral_set(v.view(), channels, padding, pad, context_of());
    size_t wrong = 0;
    for (const HaarFeature& feature : pool) {
      std::vector<LinearTap> taps;
      for (const Tap& tap : corner_taps(feature)) {
        taps.push_back(linear_tap(tap, set.layouts));
      }
      for (const Vec3i& at : {Vec3i{0, 0, 0}, Vec3i{8, 7, 6}, Vec3i{4, 3, 2}, Vec3i{0, 7, 3}}) {
        const int32_t value = linear_response(taps.data(), static_cast<int>(taps.size()),
                                              set.data.data() + set.layouts[0].base(at));
        wrong += value != brute_force(feature, v, at, padding);
      }
    }
    CHECK(wrong == 0);
  }
}
