// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

#include "catch2/catch.hpp"

#include "larch/core/error.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::pbt {
namespace {

using image::ChannelKind;

Volume<uint8_t> random_roi(const Grid& grid, uint64_t seed) {
  Volume<uint8_t> roi(grid);
  for (int64_t i = 0; i < roi.voxels(); ++i) {
    roi[i] = hash_below(seed, 3, static_cast<uint64_t>(i), 3) == 0 ? 0 : 7;
  }
  return roi;
}

bool same(const Volume<float>& a, const Volume<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

SlabProblem problem_of(const Vec3i& size, int64_t memory, bool roi = false) {
  return {size, 4, roi, false, memory};
}

bool fits(const Model& model, const SlabProblem& problem) {
  try {
    plan_slabs(model, problem);
    return true;
  } catch (const MemoryError&) {
    return false;
  }
}

/// The least memory that a plan accepts.
int64_t least_memory(const Model& model, const Vec3i& size, bool roi) {
  int64_t low = 0, high = int64_t{1} << 40;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits(model, problem_of(size, middle, roi)) ? high : low) = middle;
  }
  return high;
}

Volume<float> in_one_piece(const Model& model, const Volume<int16_t>& voxels,
                           const EvaluateConfig& config, const Volume<uint8_t>* roi) {
  const Context context = fixtures::context_of(2);
  const auto set = image::integral_set(voxels.view(), model.channels, model.padding,
                                       std::max(1, model.reach()), context);
  return evaluate({model, {}}, set, voxels.grid(), config, context, roi);
}

/// Compares slabs of several thicknesses between the thinnest and the whole; the numbers of slabs.
std::set<int> compare(const Model& model, const Volume<int16_t>& voxels,
                      const EvaluateConfig& config = {}, const Volume<uint8_t>* roi = nullptr) {
  const Volume<float> whole = in_one_piece(model, voxels, config, roi);
  const int64_t least = least_memory(model, voxels.size(), roi != nullptr);
  std::set<int> counts;
  for (int64_t memory = least; memory < 2 * least; memory += least / 200 + 1) {
    const SlabProblem problem = problem_of(voxels.size(), memory, roi != nullptr);
    const SlabPlan plan = plan_slabs(model, problem);
    REQUIRE(plan.bytes <= memory);
    REQUIRE(int64_t{plan.core} * plan.count >= voxels.size().z);
    REQUIRE(int64_t{plan.core} * (plan.count - 1) < voxels.size().z);
    if (!counts.empty() && plan.count > 1 && 3 * plan.count > 2 * *counts.begin()) continue;
    if (!counts.insert(plan.count).second) continue;
    const auto slabs =
        evaluate_volume({model, {}}, {&voxels, 1}, config, memory, fixtures::context_of(2), roi);
    CHECK(same(slabs, whole));
    if (plan.count == 1) break;
  }
  return counts;
}

TEST_CASE("slabs give the bytes of the whole: levels, channels and padding") {
  for (const image::Padding padding : {image::Padding::kClamp, image::Padding::kZero}) {
    for (const int levels : {1, 2, 4}) {
      fixtures::RandomTree tree;
      tree.channels.clear();
      for (int level = 0; level < levels; ++level) {
        tree.channels.push_back({ChannelKind::kIntensity, level});
        tree.channels.push_back({ChannelKind::kGaussian, level});
      }
      tree.channels.push_back({ChannelKind::kGradientMagnitude, levels - 1});
      tree.channels.push_back({ChannelKind::kDerivativeZ, levels - 1});
      Model model = fixtures::random_model(static_cast<uint64_t>(10 + levels), tree);
      model.padding = padding;
      const auto voxels = fixtures::noise_volume({21, 18, 203}, static_cast<uint64_t>(levels));
      INFO("levels " << levels << ", padding " << static_cast<int>(padding) << ", halo "
                     << slab_halo(model));
      const std::set<int> counts = compare(model, voxels);
      CHECK(counts.size() >= 3);
      CHECK(*counts.rbegin() >= 203 / (8 << levels));
    }
  }
}

TEST_CASE("slabs: types of the result, walks and a region of interest") {
  const Model model = fixtures::random_model(5);
  const auto voxels = fixtures::noise_volume({30, 21, 160}, 5);
  const auto roi = random_roi(voxels.grid(), 5);
  EvaluateConfig stack;
  stack.walk = Walk::kStack;
  EvaluateConfig hard;
  hard.hard = true;
  CHECK(compare(model, voxels).size() >= 3);
  CHECK(compare(model, voxels, stack).size() >= 3);
  CHECK(compare(model, voxels, hard).size() >= 3);
  CHECK(compare(model, voxels, {}, &roi).size() >= 3);
}

TEST_CASE("slabs: volumes thinner than the halo, and of one voxel") {
  fixtures::RandomTree tree;
  tree.channels = {{ChannelKind::kIntensity, 0}, {ChannelKind::kLaplacian, 3}};
  const Model model = fixtures::random_model(6, tree);
  REQUIRE(slab_halo(model) > 24);
  for (const int32_t slices : {1, 2, 7, 9, 24}) {
    compare(model, fixtures::noise_volume({13, 11, slices}, 6));
  }
  compare(model, fixtures::noise_volume({1, 1, 1}, 6));
}

/// A tree of one strong classifier on a box of 2 `reach` + 1 voxels along z of a smoothed channel.
Model column_model(int reach, int level) {
  fixtures::RandomTree spec;
  spec.depth = 1;
  spec.weaks = 1;
  spec.channels = {{ChannelKind::kGaussian, level}};
  features::HaarFeature column;
  column.cuboid_count = 1;
  column.cuboids[0] = {{0, 0, -reach}, {1, 1, reach + 1}, 1};
  spec.pool = {column};
  Model model = fixtures::random_model(1, spec);
  // Codes of a few values in the middle of those that occur, whose votes alternate.
  const int32_t middle = (2 * reach + 1) * 511;
  model.weaks.at(0).codes = learning::make_code_map(middle - 127, middle + 128);
  model.weaks.at(0).bins = learning::make_bin_map(0, 255);
  model.weaks.at(0).mask = 0x5555555555555555u;
  model.self_tests.clear();
  return model;
}

TEST_CASE("slabs: the halo is enough, and a smaller one is not") {
  for (const int level : {0, 1, 2}) {
    for (const int reach : {1, 3}) {
      const Model model = column_model(reach, level);
      const auto voxels = fixtures::noise_volume({24, 24, 64}, 7);
      const Volume<float> whole = in_one_piece(model, voxels, {}, nullptr);
      SlabPlan plan;
      plan.core = 16;
      plan.count = 4;
      plan.halo = slab_halo(model);
      const Context context = fixtures::context_of(2);
      INFO("level " << level << ", reach " << reach << ", halo " << plan.halo);
      CHECK(same(evaluate_slabs({model, {}}, std::span(&voxels, 1), {}, plan, context), whole));
      plan.halo -= 1 << level;
      CHECK_FALSE(
          same(evaluate_slabs({model, {}}, std::span(&voxels, 1), {}, plan, context), whole));
    }
  }
}

TEST_CASE("slabs: too little memory is an error that says how much is needed") {
  const Model model = fixtures::random_model(8);
  const auto voxels = fixtures::noise_volume({30, 30, 90}, 8);
  const int64_t least = least_memory(model, voxels.size(), false);
  CHECK_NOTHROW(evaluate_volume({model, {}}, {&voxels, 1}, {}, least, fixtures::context_of()));
  try {
    evaluate_volume({model, {}}, {&voxels, 1}, {}, least - 1, fixtures::context_of());
    FAIL("no error");
  } catch (const MemoryError& error) {
    CHECK(std::string(error.what()).find("(" + std::to_string(least) + " bytes)") !=
          std::string::npos);
  }
  // The numbers of a large volume do not overflow, and its plan is within the budget.
  const SlabPlan plan = plan_slabs(model, problem_of({1024, 1024, 1000}, int64_t{4} << 30));
  CHECK(plan.count > 1);
  CHECK(plan.bytes <= int64_t{4} << 30);
  CHECK(plan.bytes > int64_t{3} << 30);
}

TEST_CASE("slabs: a stop is seen between slabs") {
  const Model model = fixtures::random_model(9);
  const auto voxels = fixtures::noise_volume({30, 30, 90}, 9);
  const std::atomic<int> stop{143};
  Context context = fixtures::context_of();
  context.stop = &stop;
  const int64_t least = least_memory(model, voxels.size(), false);
  CHECK_THROWS_AS(evaluate_volume({model, {}}, {&voxels, 1}, {}, least, context), Stopped);
}

}  // namespace
}  // namespace larch::pbt
