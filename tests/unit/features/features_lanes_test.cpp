// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/features/lane_kernels.h"
#include "larch/features/linear/linear_source.h"
#include "larch/features/linear/patches.h"
#include "larch/learning/boost.h"
#include "larch/learning/feature_source.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using fixtures::context_of;

constexpr size_t kElements = 4000, kMiddle = 2000;

/// Says which features have taps whose weights are those of the other half with the other sign.
bool is_odd(uint64_t f) {
  return f % 7 == 0;
}

/// Random elements of an "integral volume", samples spread over its middle, and features of up to
/// 20 taps that read it there; every third feature has a narrow range of values.
struct Scene {
  std::vector<uint32_t> integral;
  std::vector<int64_t> bases;  ///< [channel][sample]
  std::vector<uint32_t> index;
  features::LinearColumns columns;
  std::vector<learning::CodeMap> maps;

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
    std::vector<features::LinearFeature> all;
    for (uint64_t f = 0; f < features; ++f) {
      features::LinearFeature feature;
      feature.first_tap = static_cast<int32_t>(taps.size());
      feature.channel = static_cast<uint16_t>(f * static_cast<size_t>(channels) / features);
      feature.n_tap = static_cast<uint16_t>(1 + hash_below(seed, 3, f, 20));
      for (uint64_t t = 0; t < feature.n_tap; ++t) {
        taps.push_back(
            {static_cast<int32_t>(hash_below(seed, 4, f * 32 + t, 1000)) - 500,
             static_cast<int16_t>(static_cast<int>(hash_below(seed, 5, f * 32 + t, 60)) - 27),
             feature.channel});
      }
      for (size_t t = 0; is_odd(f) && t < feature.n_tap; ++t) {
        int16_t& back = taps[taps.size() - 1 - t].weight;
        const int16_t front = taps[taps.size() - feature.n_tap + t].weight;
        back = static_cast<int16_t>(2 * t + 1 == feature.n_tap ? 0 : -front);
      }
      if (f % 5 == 4) feature.n_tap = 0;
      const auto lo = static_cast<int32_t>(hash64(seed, 6, f));
      maps.push_back(f % 3 == 0
                         ? learning::make_code_map(lo / 2, lo / 2 + static_cast<int32_t>(f % 256))
                     : f % 3 == 1 ? learning::make_code_map(INT32_MIN, INT32_MAX)
                                  : learning::make_code_map(-1000000000, 700000000));
      all.push_back(feature);
    }
    columns = features::make_linear_columns(std::move(all), std::move(taps), {}, Device::cpu());
  }
  features::SamplePlaces places() const { return {integral.data(), bases.data(), index.size()}; }
  features::LinearSource source() const { return {columns, places()}; }
  std::vector<features::cpu::PatchPlan> plan() const {
    std::vector<uint32_t> list(columns.features.size());
    std::iota(list.begin(), list.end(), 0u);
    return features::cpu::plan_patches(columns, list, maps);
  }
  /// By the definition.
  int32_t value(size_t f, size_t k) const {
    const features::LinearFeature& feature = columns.features[f];
    const int64_t base = bases[feature.channel * index.size() + index[k]];
    return features::linear_response(columns.taps.data() + feature.first_tap, feature.n_tap,
                                     integral.data() + base);
  }
};

features::cpu::VoteRule random_rule(const Scene& scene, uint64_t seed, size_t f) {
  const features::LinearFeature& feature = scene.columns.features[f];
  features::cpu::VoteRule rule;
  rule.taps = scene.columns.taps.data() + feature.first_tap;
  rule.n_tap = feature.n_tap;
  rule.is_odd = is_odd(f);
  rule.integral = scene.integral.data();
  rule.value = static_cast<uint32_t>(hash64(seed, 1, f));
  rule.codes = scene.maps[f];
  const uint32_t first = hash_below(seed, 2, f, 100);
  rule.bins = learning::make_bin_map(first, first + hash_below(seed, 3, f, 156));
  rule.mask = hash64(seed, 4, f);
  if (f % 2 != 0) {  // a threshold, with the votes +1 on either side
    rule.mask = (~uint64_t{0} << rule.mask % learning::kBins) ^ (f % 4 == 1 ? 0 : ~uint64_t{0});
  }
  find_step(rule);
  return rule;
}

}  // namespace

TEST_CASE("Rows of lanes and single voxels vote as the definition says, on every instruction set") {
  const Scene scene(64, 60, 1, 1);
  REQUIRE_FALSE(features::cpu::all_lane_kernels().empty());
  CHECK(features::cpu::all_lane_kernels().front().name == std::string("portable"));
  size_t positive = 0, all = 0;
  for (const features::cpu::LaneKernels& kernels : features::cpu::all_lane_kernels()) {
    INFO(kernels.name);
    for (const size_t n : {size_t{0}, size_t{1}, size_t{3}, size_t{4}, size_t{7}, size_t{8}}) {
      std::vector<int32_t> slots;
      for (size_t i = 0; i < n; ++i) slots.push_back(static_cast<int32_t>((i * 5 + 2) % 8));
      std::vector<features::cpu::VoteRule> rules;
      std::vector<uint32_t> one_by_one(8 * features::cpu::kLanes, 7), together = one_by_one;
      for (size_t f = 0; f < 60; ++f) {
        const features::cpu::VoteRule rule = random_rule(scene, 9, f);
        rules.push_back(rule);
        kernels.vote_rows({&rule, 1}, scene.bases.data(), slots, one_by_one.data());
        std::vector<uint32_t> rows(8 * features::cpu::kLanes, 7),
            points(8 * features::cpu::kLanes, 7);
        std::vector<uint32_t> expected = rows, expected_points = points;
        kernels.vote_rows({&rule, 1}, scene.bases.data(), slots, rows.data());
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
      kernels.vote_rows(rules, scene.bases.data(), slots, together.data());
      CHECK(together == one_by_one);
    }
  }
  CHECK(positive > all / 5);
  CHECK(positive < all * 4 / 5);
}

TEST_CASE("Patches give the values and codes of the definition") {
  for (const size_t samples : {size_t{1}, size_t{8}, size_t{21}}) {
    const Scene scene(samples, 300, samples);
    const auto plans = scene.plan();
    REQUIRE(plans.size() == 1);  // of both channels
    for (const features::cpu::LaneKernels& kernels : features::cpu::all_lane_kernels()) {
      std::vector<uint32_t> patch;
      size_t checked = 0;
      for (const features::cpu::PatchPlan& plan : plans) {
        CHECK(std::is_sorted(plan.rows.begin(), plan.rows.end(), [](const auto& a, const auto& b) {
          return std::pair(a.channel, a.offset) < std::pair(b.channel, b.offset);
        }));
        for (size_t first = 0; first < samples; first += features::cpu::kLanes) {
          features::cpu::fill_patch(plan, scene.places(), scene.index, samples, first, patch);
          std::vector<int32_t> values(plan.rules.size() * features::cpu::kLanes);
          std::vector<uint8_t> codes(values.size());
          kernels.patch_values(plan.rules, patch.data(), values.data());
          kernels.patch_codes(plan.rules, patch.data(), codes.data());
          for (size_t i = 0; i < plan.rules.size(); ++i) {
            for (size_t k = 0; k < features::cpu::kLanes && first + k < samples; ++k, ++checked) {
              const size_t f = plan.first_feature + i;
              const int32_t value = scene.value(f, first + k);
              REQUIRE(values[i * features::cpu::kLanes + k] == value);
              REQUIRE(codes[i * features::cpu::kLanes + k] == code_of(scene.maps[f], value));
            }
          }
        }
      }
      CHECK(checked == samples * 300);
    }
  }
}

TEST_CASE("The matrix holds zoomed codes, for sample and feature counts beside the blocks") {
  for (const auto& [samples, features] :
       {std::pair<size_t, size_t>{1, 1}, {8, 16}, {13, 37}, {67, 47}, {255, 300}}) {
    const Scene scene(samples, features, samples + features);
    const features::LinearSource source = scene.source();
    const auto prepared = learning::prepare_all(source, scene.maps, context_of());
    learning::FeatureMatrix matrix =
        learning::fill_matrix(source, *prepared, scene.index, context_of(3));
    const auto maps = learning::cpu::zoom_codes(matrix, learning::kBins, 3);
    for (size_t s = features; s < prepared->slots.size(); ++s) {
      REQUIRE(prepared->slots[s].column == learning::kFilling);
      for (size_t k = 0; k < samples; ++k) REQUIRE(matrix.at(s, k) == 0);
    }
    std::vector<int32_t> weights;
    for (uint64_t i = 0; i < samples; ++i) {
      weights.push_back(static_cast<int32_t>(hash64(5, 5, i)) >> 9);
    }
    for (size_t f = 0; f < features; ++f) {
      std::vector<uint32_t> codes;
      for (size_t k = 0; k < samples; ++k) {
        codes.push_back(code_of(scene.maps[f], scene.value(f, k)));
      }
      const auto [low, high] = std::minmax_element(codes.begin(), codes.end());
      const learning::BinMap map = learning::make_bin_map(*low, *high);
      REQUIRE(maps[f].first_code == map.first_code);
      REQUIRE(maps[f].shift == map.shift);
      std::vector<int32_t> sums(learning::kBins, 0);
      for (size_t k = 0; k < samples; ++k) {
        REQUIRE(matrix.at(f, k) == bin_of(map, codes[k]));
        sums[matrix.at(f, k)] += weights[k];
      }
      const learning::cpu::BlockHistogram d =
          learning::cpu::block_histogram(matrix, f / learning::kCpuWidth, weights);
      const auto begin =
          d.begin() + static_cast<std::ptrdiff_t>(f % learning::kCpuWidth * learning::kBins);
      REQUIRE(std::equal(sums.begin(), sums.end(), begin));
    }
  }
}

TEST_CASE("Votes of more than one word, on sample counts beside the lanes") {
  for (const size_t samples : {size_t{1}, size_t{9}, size_t{300}, size_t{1031}}) {
    const Scene scene(samples, 70, 4);
    std::vector<learning::WeakClassifier> weaks;
    for (size_t t = 0; t < 67; ++t) {
      const features::cpu::VoteRule rule = random_rule(scene, 2, t);
      learning::WeakClassifier weak;
      weak.feature = static_cast<uint32_t>(t);
      weak.codes = rule.codes;
      weak.bins = rule.bins;
      weak.mask = rule.mask;
      weak.alpha_q20 = static_cast<int32_t>(hash64(7, t, samples) >> 42);
      weaks.push_back(weak);
    }
    for (const int threads : {1, 3}) {
      const learning::Votes votes =
          learning::cast_votes(scene.source(), weaks, scene.index, context_of(threads));
      const std::vector<int32_t> scores =
          learning::strong_scores(scene.source(), {{weaks, scene.index}}, context_of(threads))[0];
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
    const auto maps = scene.source().range(scene.index, context_of(2));
    for (size_t f = 0; f < 40; ++f) {
      std::vector<int32_t> values;
      for (size_t k = 0; k < samples; ++k) values.push_back(scene.value(f, k));
      std::sort(values.begin(), values.end());
      REQUIRE(maps[f].lo == values[learning::low_rank(samples)]);
      REQUIRE(maps[f].hi == values[samples - 1 - learning::low_rank(samples)]);
    }
  }
}
