// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/hdn/train/stage_training.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::hdn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Vec3i kSize{7, 6, 5};
constexpr double kSpacing = 2;

TEST_CASE("keys order by segment, then by descending score, then by number") {
  const std::vector<uint64_t> keys{sort_key(0, kInfinity, 0),
                                   sort_key(0, 1, 0),
                                   sort_key(0, 1, 1),
                                   sort_key(0, 1, kMaximumSlots - 1),
                                   sort_key(0, 0.5F, 7),
                                   sort_key(0, 1e-40F, 7),
                                   sort_key(0, 0.0F, 7),
                                   sort_key(0, -0.0F, 3),
                                   sort_key(0, -1e-40F, 2),
                                   sort_key(0, -700, 1),
                                   sort_key(0, -kInfinity, 0),
                                   sort_key(0, kNan, 0),
                                   sort_key(0, -kNan, 1),
                                   empty_key(0),
                                   sort_key(1, kInfinity, 0),
                                   sort_key(1, kNan, kMaximumSlots - 1),
                                   empty_key(1),
                                   sort_key(254, 1, 0),
                                   sort_key(255, -kInfinity, 500),
                                   empty_key(255)};
  CHECK(std::adjacent_find(keys.begin(), keys.end(), std::less_equal<>()) == keys.end());
  for (const uint64_t key : {keys[11], keys[10], keys[15], keys[18]})
    CHECK_FALSE(is_empty_key(key));
  CHECK(is_empty_key(empty_key(17)));
  for (const uint64_t number : {uint64_t{0}, uint64_t{12345}, kMaximumSlots - 1}) {
    CHECK(number_of_key(sort_key(3, 0.25F, number)) == number);
  }
}

/// A position detector of random trees; of depth 0 it gives all nodes the same probability.
ResidentDetector detector(int keep, int depth) {
  fixtures::RandomTree spec;
  spec.depth = depth;
  pbt::Model trees = fixtures::random_ensemble(5, depth == 0 ? 1 : 2, spec);
  Detector d;
  d.stage.keep = keep;
  d.haar = trees.features;
  d.trees = std::move(static_cast<tree::Ensemble&>(trees));
  return make_resident(d, {}, Device::cpu());
}

CaseImages images() {
  CaseImages made;
  const auto voxels = fixtures::noise_volume(kSize, 8);
  made.pyramid = image::make_levels(voxels.view(), features::kSteerableLevels - 1, 0, {});
  const std::vector<image::ChannelSpec> channels = fixtures::RandomTree{}.channels;
  made.level = make_level_images(made.pyramid, 0, image::level_scale(kSpacing / 2, 1),
                                 {channels, image::Padding::kClamp, {8, 8, 8}, 1023}, {});
  return made;
}

/// The numbers of the nodes where candidates are.
std::vector<int> nodes_of(const std::vector<Candidate>& kept) {
  std::vector<int> numbers;
  for (const Candidate& c : kept) {
    const Vec3i v = nearest_voxel(c.pose.centre_mm, image::level_scale(kSpacing / 2, 1));
    numbers.push_back(v.x + kSize.x * (v.y + kSize.y * v.z));
  }
  return numbers;
}

TEST_CASE(
    "a stage keeps the best in their order, equal ones by number, and no more than there are") {
  const int count = kSize.x * kSize.y * kSize.z;
  const CaseImages level = images();
  const CaseSearch root;
  const auto all = search_case(root, detector(512, 4), level, {});
  REQUIRE(all.size() == static_cast<size_t>(count));
  const std::vector<int> order = nodes_of(all);
  CHECK(std::set<int>(order.begin(), order.end()).size() == all.size());
  std::set<float> scores;
  for (size_t k = 0; k < all.size(); ++k) {
    scores.insert(all[k].score);
    CHECK(all[k].score == all[k].probability);
    if (k == 0) continue;
    CHECK(all[k - 1].score >= all[k].score);
    if (all[k - 1].score == all[k].score) CHECK(order[k - 1] < order[k]);
  }
  CHECK(scores.size() > 20);
  const std::vector<int> some = nodes_of(search_case(root, detector(17, 4), level, {}));
  CHECK(some == std::vector<int>(order.begin(), order.begin() + 17));

  const std::vector<int> equal = nodes_of(search_case(root, detector(30, 0), level, {}));
  std::vector<int> first(30);
  std::iota(first.begin(), first.end(), 0);
  CHECK(equal == first);

  CaseSearch outside;
  outside.search = SearchKind::kAround;
  outside.seeds.push_back({{{500, 500, 500}, {}, {1, 1, 1}}, {}, 1});
  CHECK(search_case(outside, detector(30, 4), level, {}).empty());
}

TEST_CASE(
    "every node of cubes and ellipsoids that overlap is tried once, around the nearest seed") {
  LevelViews level;
  level.size = {20, 18, 16};
  level.scale = image::level_scale(kSpacing / 2, 1);
  level.extent.is_part = GENERATE(0, 1);  // then x + y is at most 38.5 mm
  level.extent.step[0] = level.extent.step[1] = {1, 0, 0};
  level.extent.size = {39, 1, 1};
  const auto seed_at = [](double x, double y, double z) {
    return Seed{{{x, y, z}, {}, {1, 1, 1}}, from_rotation_vector({0.1 * x, 0, 0.2}), 1};
  };
  CaseSearch search;
  search.search = GENERATE(SearchKind::kAround, SearchKind::kPrior);
  // The second one lies where the first does, the last one at a corner of the image.
  search.seeds = {seed_at(17, 17, 15), seed_at(17, 17, 15), seed_at(22, 19, 15),
                  seed_at(17, 17, 26), seed_at(0, 0, 0)};
  search.to_parent.count = 1;
  for (size_t i = 0; i < 9; ++i) search.to_parent.covariance[10 * i] = i == 0 ? 9 : 4;
  ResidentDetector any;
  HostSegment host;
  make_segment(search, any, level, host);
  const Segment& s = host.segment;
  const auto nearness = [&](const Vec3i& node, size_t k) {
    return seed_distance(s, search.seeds[k], node, level.scale);
  };
  std::vector<int> tried(static_cast<size_t>(level.size.x * level.size.y * level.size.z), 0);
  std::array<int, 5> of{};
  for (uint64_t number = 0; number < s.slots; ++number) {
    const Node node = node_of(s, level, number);
    if (node.seed < 0) continue;
    const auto own = static_cast<size_t>(node.seed);
    const int row = node.voxel.y + level.size.y * node.voxel.z;
    const int place = node.voxel.x + level.size.x * row;
    ++tried[static_cast<size_t>(place)];
    ++of[own];
    for (size_t k = 0; k < of.size(); ++k) {
      if (nearness(node.voxel, k) < nearness(node.voxel, own)) FAIL_CHECK("another one is nearer");
    }
  }
  const double reach = search.search == SearchKind::kAround ? s.half_width : s.limit;
  size_t differ = 0, i = 0;
  Vec3i v;
  for (v.z = 0; v.z < level.size.z; ++v.z)
    for (v.y = 0; v.y < level.size.y; ++v.y)
      for (v.x = 0; v.x < level.size.x; ++v.x, ++i) {
        bool is_near = false;
        for (size_t k = 0; k < of.size(); ++k) is_near = is_near || nearness(v, k) <= reach;
        is_near = is_near && level.extent.holds(mm_of_voxel(v, level.scale));
        differ += tried[i] != (is_near ? 1 : 0) ? 1 : 0;
      }
  CHECK(differ == 0);
  CHECK(of[0] > 0);
  CHECK(of[1] == 0);
  CHECK((of[2] > 0 && of[3] > 0 && of[4] > 0));
  CHECK(image::ImageExtent{1, {}, {{1, 0, 0}, {1, 0, 0}, {}}, {39, 1, 1}}.holds({20, 18.5, 99}));
  CHECK_FALSE(image::ImageExtent{1, {}, {{1, 0, 0}, {1, 0, 0}, {}}, {39, 1, 1}}.holds({20, 19, 0}));
}

TEST_CASE("candidates that agree win over a surer one that is alone") {
  const auto turned = [](double degrees) {
    return from_rotation_vector({0, 0, degrees * 3.141592653589793 / 180});
  };
  std::vector<Candidate> candidates{{{{90, 0, 0}, {}, {10, 10, 10}}, 0.99F, 0.99F}};
  for (const double x : {-1.0, 0.0, 1.0}) {
    candidates.push_back({{{x, 5, 0}, turned(10 + 6 * x), {20, 5, 8}}, 0.5F, 0.5F});
  }
  candidates.push_back({{{0, 5, 0}, turned(100), {20, 5, 8}}, 0.4F, 0.4F});
  const double cosine = 0.99;  // of 8 degrees, half the angle within which they agree
  const std::vector<Cluster> found = cluster_candidates(candidates, {{4, cosine}});
  REQUIRE(found.size() == 3);
  CHECK(found[0].members == 3);
  CHECK(norm(found[0].pose.centre_mm - Vec3d{0, 5, 0}) < 1e-12);
  CHECK(angle_between(found[0].pose.rotation, turned(10)) < 1e-6);
  CHECK(found[0].pose.edges_mm.x == Approx(20));
  CHECK(found[0].confidence == Approx(0.5));
  CHECK(found[0].weight == Approx(1.5));
  CHECK(found[0].spread_mm == Approx(std::sqrt(2.0 / 3)));
  CHECK(found[0].spread_rad == Approx(angle_between(turned(0), turned(6)) * std::sqrt(2.0 / 3)));
  CHECK(found[1].pose.centre_mm.x == 90);
  CHECK(found[2].members == 1);
  CHECK(angle_between(found[2].pose.rotation, turned(100)) < 1e-6);

  // Of the first four, the plain mean of those that are near the mode; the others follow.
  candidates[1].probability = 0.6F;
  candidates[1].pose.edges_mm.x = 160;
  candidates.push_back({{{3, 5, 0}, turned(10), {20, 5, 8}}, 0.3F, 0.3F});
  const std::vector<Cluster> plain = cluster_candidates(candidates, {{4, cosine}, 4, {8, 0.7}});
  CHECK(plain[0].members == 3);
  CHECK(norm(plain[0].pose.centre_mm - Vec3d{0, 5, 0}) < 1e-12);
  CHECK(plain[0].pose.edges_mm.x == Approx(40));  // the cube root of 160 * 20 * 20
  CHECK(plain[0].confidence == Approx(1.6 / 3));
  CHECK(plain[1].members == 1);
  CHECK(plain[1].pose.centre_mm.x == 90);
  CHECK(plain.size() == 4);
  CHECK(cluster_candidates({}, {{4, cosine}}).empty());
}

}  // namespace
}  // namespace larch::hdn
