// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/features/lane_kernels.h"
#include "larch/learning/bin_matrix.h"
#include "larch/learning/patches.h"
#include "larch/learning/votes.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::pbt;
using fixtures::context_of;

constexpr size_t kElements = 4000, kMiddle = 2000;

/// Random elements of an "integral volume", samples spread over its middle, and features of up to
/// 20 taps that read it there; every third feature has a narrow range of values.
struct Scene {
  std::vector<uint32_t> integral;
  std::vector<int64_t> bases;  ///< [channel][sample]
  std::vector<uint32_t> index;
  learning::FeaturePool pool;

  Scene(size_t samples, size_t features, uint64_t seed, int channels = 2) {
    for (uint64_t i = 0; i < kElements; ++i) {
      integral.push_back(static_cast<uint32_t>(hash64(seed, 1, i)));
    }
    for (uint64_t i = 0; i < samples * static_cast<size_t>(channels); ++i) {
      bases.push_back(static_cast<int64_t>(kMiddle - 500 + hash_below(seed, 2, i, 1000)));
    }
    index.resize(samples);
    std::iota(index.begin(), index.end(), 0u);
    std::reverse(index.begin(), index.end());
    std::vector<features::LinearTap> taps;
    for (uint64_t f = 0; f < features; ++f) {
      learning::PoolFeature feature;
      feature.first_tap = static_cast<int32_t>(taps.size());
      feature.channel = static_cast<uint16_t>(f * static_cast<size_t>(channels) / features);
      feature.n_tap = static_cast<uint16_t>(1 + hash_below(seed, 3, f, 20));
      for (uint64_t t = 0; t < feature.n_tap; ++t) {
        taps.push_back({static_cast<int32_t>(hash_below(seed, 4, f * 32 + t, 1000)) - 500,
                        static_cast<int32_t>(hash_below(seed, 5, f * 32 + t, 60)) - 27});
      }
      if (f % 5 == 4) feature.n_tap = 0;
      const auto lo = static_cast<int32_t>(hash64(seed, 6, f));
      feature.codes = f % 3 == 0
                          ? learning::make_code_map(lo / 2, lo / 2 + static_cast<int32_t>(f % 256))
                      : f % 3 == 1 ? learning::make_code_map(INT32_MIN, INT32_MAX)
                                   : learning::make_code_map(-1000000000, 700000000);
      pool.host.push_back(feature);
    }
    const Device device = context_of().device;
    pool.features =
        Buffer<learning::PoolFeature>(device, std::span<const learning::PoolFeature>(pool.host));
    pool.taps = Buffer<features::LinearTap>(device, std::span<const features::LinearTap>(taps));
  }
  learning::SamplePlaces places() const {
    return {integral.data(), bases.data(), index.size(), index};
  }
  /// By the definition.
  int32_t value(size_t f, size_t k) const {
    const learning::PoolFeature& feature = pool.host[f];
    const int64_t base = bases[feature.channel * index.size() + index[k]];
    return features::linear_response(pool.taps.data() + feature.first_tap, feature.n_tap,
                                     integral.data() + base);
  }
};

features::cpu::VoteRule random_rule(const Scene& scene, uint64_t seed, size_t f) {
  const learning::PoolFeature& feature = scene.pool.host[f];
  features::cpu::VoteRule rule;
  rule.taps = scene.pool.taps.data() + feature.first_tap;
  rule.n_tap = feature.n_tap;
  rule.value = static_cast<uint32_t>(hash64(seed, 1, f));
  rule.codes = feature.codes;
  const uint32_t first = hash_below(seed, 2, f, 100);
  rule.bins = learning::make_bin_map(first, first + hash_below(seed, 3, f, 156));
  rule.mask = hash64(seed, 4, f);
  return rule;
}

}  // namespace

TEST_CASE("Rows of lanes and single voxels vote as the definition says, on every instruction set") {
  const Scene scene(64, 60, 1, 1);
  REQUIRE(features::cpu::all_lane_kernels().size() >= 1);
  CHECK(features::cpu::all_lane_kernels().front().name == std::string("portable"));
  size_t positive = 0, all = 0;
  for (const features::cpu::LaneKernels& kernels : features::cpu::all_lane_kernels()) {
    INFO(kernels.name);
    for (const size_t n : {size_t{0}, size_t{1}, size_t{3}, size_t{4}, size_t{7}, size_t{8}}) {
      std::vector<int32_t> slots;
      for (size_t i = 0; i < n; ++i) slots.push_back(static_cast<int32_t>((i * 5 + 2) % 8));
      for (size_t f = 0; f < 60; ++f) {
        const features::cpu::VoteRule rule = random_rule(scene, 9, f);
        std::vector<uint32_t> rows(8 * features::cpu::kLanes, 7),
            points(8 * features::cpu::kLanes, 7);
        std::vector<uint32_t> expected = rows, expected_points = points;
        kernels.vote_rows(rule, scene.integral.data(), scene.bases.data(), slots, rows.data());
        const auto vote_at = [&](int64_t element) {
          return weak_vote(
              rule.codes, rule.bins, rule.mask,
              features::linear_response(rule.taps, rule.n_tap, scene.integral.data() + element));
        };
        for (const int32_t slot : slots) {
          for (size_t lane = 0; lane < features::cpu::kLanes; ++lane) {
            const auto s = static_cast<size_t>(slot);
            const bool vote = vote_at(scene.bases[s] + static_cast<int64_t>(lane));
            if (vote) expected[s * features::cpu::kLanes + lane] += rule.value;
            positive += vote;
            ++all;
          }
        }
        CHECK(rows == expected);
        const std::span<const int64_t> base(scene.bases.data(), n * 3);
        kernels.vote_points(rule, scene.integral.data(), base, points.data());
        for (size_t i = 0; i < base.size(); ++i) {
          if (vote_at(base[i])) expected_points[i] += rule.value;
        }
        CHECK(points == expected_points);
      }
    }
  }
  CHECK(positive > all / 5);
  CHECK(positive < all * 4 / 5);
}

TEST_CASE("Patches give the values and codes of the definition") {
  for (const size_t samples : {size_t{1}, size_t{8}, size_t{21}}) {
    const Scene scene(samples, 300, samples);
    const auto plans =
        learning::cpu::plan_patches(scene.pool.features.data(), scene.pool.taps.data(), 300);
    REQUIRE(plans.size() == 2);  // one a channel
    for (const features::cpu::LaneKernels& kernels : features::cpu::all_lane_kernels()) {
      std::vector<uint32_t> patch;
      size_t checked = 0;
      for (const learning::cpu::PatchPlan& plan : plans) {
        CHECK(std::is_sorted(plan.offsets.begin(), plan.offsets.end()));
        for (size_t first = 0; first < samples; first += features::cpu::kLanes) {
          learning::cpu::fill_patch(plan, scene.places(), first, patch);
          std::vector<int32_t> values(plan.rules.size() * features::cpu::kLanes);
          std::vector<uint8_t> codes(values.size());
          kernels.patch_values(plan.rules, patch.data(), values.data());
          kernels.patch_codes(plan.rules, patch.data(), codes.data());
          for (size_t i = 0; i < plan.rules.size(); ++i) {
            for (size_t k = 0; k < features::cpu::kLanes && first + k < samples; ++k, ++checked) {
              const size_t f = plan.first_feature + i;
              const int32_t value = scene.value(f, first + k);
              REQUIRE(values[i * features::cpu::kLanes + k] == value);
              REQUIRE(codes[i * features::cpu::kLanes + k] ==
                      code_of(scene.pool.host[f].codes, value));
            }
          }
        }
      }
      CHECK(checked == samples * 300);
    }
  }
}

TEST_CASE("A patch that would be too large is cut into several") {
  Scene scene(9, 4, 3, 1);
  const size_t long_feature = 5000;
  std::vector<features::LinearTap> taps;
  for (size_t f = 0; f < 4; ++f) {
    scene.pool.host[f].first_tap = static_cast<int32_t>(taps.size());
    scene.pool.host[f].n_tap = long_feature;
    for (size_t t = 0; t < long_feature; ++t) {
      taps.push_back({static_cast<int32_t>(f * long_feature + t), 1});
    }
  }
  const auto plans = learning::cpu::plan_patches(scene.pool.host.data(), taps.data(), 4);
  REQUIRE(plans.size() == 4);
  for (size_t f = 0; f < 4; ++f) {
    CHECK(plans[f].first_feature == f);
    CHECK(plans[f].offsets.size() == long_feature);
  }
  // The same elements for all features fit one patch.
  for (learning::PoolFeature& feature : scene.pool.host) {
    feature.first_tap = 0;
    feature.n_tap = 2000;
  }
  CHECK(learning::cpu::plan_patches(scene.pool.host.data(), taps.data(), 4).size() == 1);
}

TEST_CASE("The matrix holds zoomed codes, for sample and feature counts beside the blocks") {
  for (const auto& [samples, features] :
       {std::pair<size_t, size_t>{1, 1}, {8, 16}, {13, 37}, {67, 47}, {255, 300}}) {
    const Scene scene(samples, features, samples + features);
    learning::BoostProblem problem;
    problem.places = scene.places();
    const learning::cpu::BinMatrix matrix = learning::cpu::build_matrix(
        {scene.pool.features.data(), scene.pool.taps.data(), features, &problem, 3});
    std::vector<int32_t> weights;
    for (uint64_t i = 0; i < samples; ++i) {
      weights.push_back(static_cast<int32_t>(hash64(5, 5, i)) >> 9);
    }
    for (size_t f = 0; f < features; ++f) {
      std::vector<uint32_t> codes;
      for (size_t k = 0; k < samples; ++k) {
        codes.push_back(code_of(scene.pool.host[f].codes, scene.value(f, k)));
      }
      const auto [low, high] = std::minmax_element(codes.begin(), codes.end());
      const BinMap map = learning::make_bin_map(*low, *high);
      REQUIRE(matrix.maps[f].first_code == map.first_code);
      REQUIRE(matrix.maps[f].shift == map.shift);
      std::vector<int32_t> sums(learning::kBins, 0);
      for (size_t k = 0; k < samples; ++k) {
        REQUIRE(matrix.at(f, k) == bin_of(map, codes[k]));
        sums[matrix.at(f, k)] += weights[k];
      }
      const learning::cpu::BlockHistogram d =
          learning::cpu::block_histogram(matrix, f / learning::cpu::kBlock, weights);
      const auto begin =
          d.begin() + static_cast<std::ptrdiff_t>(f % learning::cpu::kBlock * learning::kBins);
      REQUIRE(std::equal(sums.begin(), sums.end(), begin));
    }
  }
}

TEST_CASE("Votes of more than one word, on sample counts beside the lanes") {
  for (const size_t samples : {size_t{1}, size_t{9}, size_t{300}, size_t{1031}}) {
    const Scene scene(samples, 70, 4);
    std::vector<WeakClassifier> weaks;
    for (size_t t = 0; t < 67; ++t) {
      const features::cpu::VoteRule rule = random_rule(scene, 2, t);
      WeakClassifier weak;
      weak.feature = static_cast<uint32_t>(t);
      weak.codes = rule.codes;
      weak.bins = rule.bins;
      weak.mask = rule.mask;
      weak.alpha_q20 = static_cast<int32_t>(hash64(7, t, samples) >> 42);
      weaks.push_back(weak);
    }
    for (const int threads : {1, 3}) {
      const learning::Votes votes =
          learning::cast_votes(scene.pool, weaks, scene.places(), context_of(threads));
      const std::vector<int32_t> scores =
          learning::strong_scores(scene.pool, weaks, scene.places(), context_of(threads));
      REQUIRE(votes.words == 3);
      for (size_t k = 0; k < samples; ++k) {
        int32_t h = 0;
        for (size_t t = 0; t < weaks.size(); ++t) {
          const bool vote =
              weak_vote(weaks[t].codes, weaks[t].bins, weaks[t].mask, scene.value(t, k));
          REQUIRE(votes.at(k, t) == vote);
          h += vote ? weaks[t].alpha_q20 : -weaks[t].alpha_q20;
        }
        REQUIRE(scores[k] == h);
      }
    }
  }
}

TEST_CASE("The ends of a feature's values, against sorting") {
  for (const size_t samples : {size_t{1}, size_t{6}, size_t{1000}, size_t{1001}, size_t{2503}}) {
    Scene scene(samples, 40, 8);
    learning::range_pool(scene.pool, scene.places(), context_of(2));
    for (size_t f = 0; f < 40; ++f) {
      std::vector<int32_t> values;
      for (size_t k = 0; k < samples; ++k) values.push_back(scene.value(f, k));
      std::sort(values.begin(), values.end());
      REQUIRE(scene.pool.host[f].codes.lo == values[learning::low_rank(samples)]);
      REQUIRE(scene.pool.host[f].codes.hi == values[learning::high_rank(samples)]);
    }
  }
}

TEST_CASE("Tiles of any shape on images of any width, with coarse channels and a region") {
  fixtures::RandomTree spec;
  spec.depth = 5;
  spec.weaks = 9;
  spec.channels = {{image::ChannelKind::kIntensity, 1},
                   {image::ChannelKind::kIntensity, 0},
                   {image::ChannelKind::kLaplacian, 2},
                   {image::ChannelKind::kGaussian, 0}};
  spec.self_tests = false;
  for (const Vec3i size : {Vec3i{1, 1, 1}, Vec3i{7, 3, 2}, Vec3i{8, 5, 3}, Vec3i{15, 4, 4},
                           Vec3i{19, 9, 5}, Vec3i{41, 6, 7}}) {
    const Model model = fixtures::random_model(static_cast<uint64_t>(size.x), spec);
    const Volume<int16_t> v = fixtures::noise_volume(size, 5);
    const image::IntegralSet set =
        image::integral_set(v.view(), model.channels, model.padding, model.reach(), context_of());
    Volume<uint8_t> roi(v.grid());
    for (int64_t i = 0; i < roi.voxels(); ++i) {
      roi[i] = hash64(3, 9, static_cast<uint64_t>(i)) % 4 == 0;
    }
    EvaluateConfig config;
    config.walk = Walk::kStack;
    const Volume<float> expected = evaluate<float>(model, set, v.grid(), config, context_of());
    config.walk = Walk::kTile;
    for (const std::vector<int>& tile :
         {std::vector<int>{1, 1, 1}, {3, 2, 1}, {9, 1, 4}, {13, 7, 5}, {64, 16, 16}}) {
      config.tile = tile;
      for (const bool early : {false, true}) {
        config.early_rejection = early;
        const Volume<float> p = evaluate<float>(model, set, v.grid(), config, context_of(2));
        const Volume<float> inside =
            evaluate<float>(model, set, v.grid(), config, context_of(), &roi);
        CHECK(std::equal(p.begin(), p.end(), expected.begin()));
        for (int64_t i = 0; i < roi.voxels(); ++i) {
          REQUIRE(inside[i] == (roi[i] ? expected[i] : 0.0F));
        }
      }
    }
  }
}
