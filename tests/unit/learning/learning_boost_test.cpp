// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/learning/boost.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/ensemble.h"
#include "tests/unit/learning/table_source.h"

namespace {

using namespace larch;
using namespace larch::learning;
using fixtures::cpu_context;
using fixtures::RangedTable;
using fixtures::Table;

/// All samples of a table as one problem.
BoostProblem problem_of(const Table& table, const RangedTable& ranged, int rounds) {
  BoostProblem problem;
  problem.columns = ranged.columns.get();
  problem.samples = table.index;
  problem.positive = table.positive;
  problem.weight = table.weight;
  problem.rounds = rounds;
  return problem;
}

std::vector<BoostRound> boost_table(const Table& table, int rounds,
                                    WeakKind kind = WeakKind::kHist64) {
  const RangedTable ranged(table);
  BoostProblem problem = problem_of(table, ranged, rounds);
  problem.kind = kind;
  return boost(ranged.source, problem, cpu_context());
}

/// Bins 0,0,1,1,2,2,3,3 and classes + + + - - - + -.
Table known_answer() {
  Table table(8, 1);
  const int32_t bins[] = {0, 0, 1, 1, 2, 2, 3, 3};
  const uint8_t classes[] = {1, 1, 1, 0, 0, 0, 1, 0};
  for (size_t i = 0; i < 8; ++i) {
    table.at(i, 0) = bins[i];
    table.positive[i] = classes[i];
  }
  return table;
}

Table random_table(size_t samples, size_t features, uint64_t seed) {
  Table table(samples, features);
  for (size_t i = 0; i < samples; ++i) {
    table.positive[i] = hash64(seed, 1, i) & 1;
    for (size_t f = 0; f < features; ++f) {
      const uint32_t spread = 3 + static_cast<uint32_t>(f * 97 % 900);
      const auto noise = static_cast<int32_t>(hash_below(seed, 2, i * features + f, spread));
      const int32_t shift = table.positive[i] ? static_cast<int32_t>(f % 5) : 0;
      table.at(i, f) = noise + shift - 20;
    }
    table.weight[i] = 1 + hash_unit(seed, 3, i);
  }
  const double sum = std::accumulate(table.weight.begin(), table.weight.end(), 0.0);
  for (double& w : table.weight) w /= sum;
  return table;
}

double alpha_of(double error) {
  return 0.5 * std::log((1 - error) / error);
}

/// One round by the definition: doubles, no matrix, no quantisation.
struct ReferenceRound {
  size_t feature = 0;
  double error = 1;
};
ReferenceRound reference_round(const Table& table, const RangedTable& ranged,
                               const std::vector<double>& weight, WeakKind kind) {
  ReferenceRound best;
  for (size_t f = 0; f < table.columns; ++f) {
    if (ranged.maps[f].lo == ranged.maps[f].hi) continue;
    std::vector<uint32_t> codes;
    for (size_t i = 0; i < table.index.size(); ++i) {
      const auto value = table.values[i * table.columns + f];
      codes.push_back(code_of(ranged.maps[f], value));
    }
    const auto [low, high] = std::minmax_element(codes.begin(), codes.end());
    const BinMap map = make_bin_map(*low, *high);
    double error = 1;
    if (kind == WeakKind::kHist64) {
      double of[64][2] = {};
      for (size_t i = 0; i < codes.size(); ++i)
        of[bin_of(map, codes[i])][table.positive[i]] += weight[i];
      error = 0;
      for (const auto& bin : of) error += std::min(bin[0], bin[1]);
    } else {
      for (uint32_t cut = 0; cut <= 64; ++cut) {
        double above = 0;
        for (size_t i = 0; i < codes.size(); ++i) {
          const bool vote = bin_of(map, codes[i]) >= cut;
          above += vote != (table.positive[i] != 0) ? weight[i] : 0;
        }
        error = std::min({error, above, 1 - above});
      }
    }
    if (error < best.error - 1e-9) best = {f, error};
  }
  return best;
}

}  // namespace

TEST_CASE("ties and empty bins take the sign of the nearest bin, the lower one first") {
  const Table table = known_answer();
  const RangedTable ranged(table);
  const auto rounds = boost_table(table, 1);
  CHECK(rounds[0].error() == Approx(0.25).margin(1e-8));
  CHECK((rounds[0].mask & 0xf) == 0b0011);  // bin 1 like bin 0, bin 3 like bin 2
  CHECK((rounds[0].mask >> 4) == 0);

  std::vector<int32_t> d(64, 0);
  d[10] = 5;
  d[14] = -7;
  d[20] = 1;
  uint64_t expected = 0;
  for (int b = 0; b < 64; ++b) {
    if (b <= 12 || b >= 18) expected |= uint64_t{1} << b;  // 12 and 17 are ties of distance
  }
  expected &= ~(uint64_t{1} << 17);
  CHECK(histogram_mask(d.data(), 1) == expected);
  CHECK(histogram_agreement(d.data(), 1) == 13);
}

TEST_CASE("Codes and bins cover the whole range of a feature") {
  const CodeMap narrow = make_code_map(-100, 155);
  CHECK(narrow.multiplier == 0);
  CHECK(code_of(narrow, -101) == 0);
  CHECK(code_of(narrow, -99) == 1);
  CHECK(code_of(narrow, 155) == 255);
  CHECK(code_of(narrow, INT32_MAX) == 255);
  for (const auto& [lo, hi] : {std::pair{-100, 156}, std::pair{INT32_MIN, INT32_MAX},
                               std::pair{-5, 2000000000}, std::pair{0, 70000}}) {
    const CodeMap map = make_code_map(lo, hi);
    CHECK(map.multiplier > 0);
    CHECK(code_of(map, lo) == 0);
    CHECK(code_of(map, hi) == 255);
    CHECK(code_of(map, INT32_MIN) == 0);
    CHECK(code_of(map, INT32_MAX) == 255);
    uint32_t previous = 0;
    for (uint64_t i = 0; i <= 1000; ++i) {
      const auto value =
          static_cast<int32_t>(lo + (int64_t{hi} - lo) * static_cast<int64_t>(i) / 1000);
      const uint32_t code = code_of(map, value);
      CHECK(code >= previous);
      previous = code;
    }
  }
  for (uint32_t low = 0; low < 256; low += 15) {
    for (uint32_t high = low; high < 256; ++high) {
      const BinMap map = make_bin_map(low, high);
      CHECK(bin_of(map, high) <= 63);
      CHECK(bin_of(map, low) == 0);
      if (map.shift > 0) CHECK((high - low) >> (map.shift - 1) > 63);
    }
  }
  CHECK(bin_of(make_bin_map(100, 120), 50) == 0);  // below what the node has seen
  CHECK(bin_of(make_bin_map(100, 120), 255) == 63);
}

TEST_CASE("The range of a feature is the order statistics at 0.1 % and 99.9 %") {
  Table table(4001, 2);
  for (size_t i = 0; i < 4001; ++i) {
    table.at(i, 0) = static_cast<uint32_t>(static_cast<int32_t>(i * 1601 % 4001) - 1000);
    table.at(i, 1) = 5;
  }
  table.at(7, 1) = 6;  // rarer than 0.1 %: the feature counts as constant
  const RangedTable ranged(table);
  CHECK(ranged.maps[0].lo == -1000 + 4);
  CHECK(ranged.maps[0].hi == 3000 - 4);
  CHECK(ranged.maps[1].lo == ranged.maps[1].hi);
  CHECK_FALSE(boost_table(table, 1)[0].feature == 1);
}

TEST_CASE("Boosting agrees with its definition, for both kinds of weak classifiers") {
  for (const WeakKind kind : {WeakKind::kHist64, WeakKind::kThreshold}) {
    const Table table = random_table(211, 70, 17);
    const RangedTable ranged(table);
    const auto rounds = boost_table(table, 6, kind);
    REQUIRE(rounds.size() == 6);
    std::vector<double> weight = table.weight;
    for (const BoostRound& round : rounds) {
      const ReferenceRound expected = reference_round(table, ranged, weight, kind);
      CHECK(round.error() == Approx(expected.error).margin(1e-6));
      CHECK(round.feature == expected.feature);
      double wrong = 0;
      std::vector<bool> correct;
      for (size_t i = 0; i < weight.size(); ++i) {
        const auto value = static_cast<int32_t>(table.values[i * 70 + round.feature]);
        const bool vote = weak_vote(ranged.maps[round.feature], round.bins, round.mask, value);
        correct.push_back(vote == (table.positive[i] != 0));
        if (!correct.back()) wrong += weight[i];
      }
      CHECK(wrong == Approx(round.error()).margin(1e-6));
      double sum = 0, wrong_after = 0;
      for (size_t i = 0; i < weight.size(); ++i) {
        weight[i] = updated_weight(weight[i], correct[i], round.error());
        sum += weight[i];
        if (!correct[i]) wrong_after += weight[i];
      }
      CHECK(sum == Approx(1).margin(1e-5));
      CHECK(wrong_after == Approx(0.5).margin(1e-5));
    }
  }
}

TEST_CASE("The threshold classifier against brute force over cuts and polarities") {
  for (uint64_t trial = 0; trial < 200; ++trial) {
    std::vector<int32_t> d(64);
    for (size_t b = 0; b < 64; ++b) {
      d[b] = static_cast<int32_t>(hash_below(trial, 1, b, 2000)) - 1000;
      if (trial % 3 == 0 && b % 4 != 0) d[b] = 0;
      if (trial % 7 == 0) d[b] *= 2000000 / 4;  // sums leave 32 bits
    }
    int64_t best = -1;
    for (int cut = 0; cut <= 64; ++cut) {
      int64_t below = 0, above = 0;
      for (int b = 0; b < 64; ++b) (b < cut ? below : above) += d[static_cast<size_t>(b)];
      best = std::max(best, std::abs(above - below));
    }
    uint64_t mask = 0;
    CHECK(threshold_agreement(d.data(), 1, &mask) == static_cast<uint64_t>(best));
    int64_t by_mask = 0;
    for (size_t b = 0; b < 64; ++b) by_mask += mask >> b & 1 ? d[b] : -int64_t{d[b]};
    CHECK(by_mask == best);
    const uint64_t steps = mask ^ (mask >> 1);  // bits where neighbours differ, without the last
    CHECK(__builtin_popcountll(steps & ~(uint64_t{1} << 63)) <= 1);
  }
}

TEST_CASE("Equal errors go to the simpler feature, then to the smaller index") {
  Table table = known_answer();
  Table three(8, 3);
  three.positive = table.positive;
  for (size_t i = 0; i < 8; ++i) {
    for (size_t f = 0; f < 3; ++f) three.at(i, f) = table.at(i, 0);
  }
  CHECK(boost_table(three, 1)[0].feature == 0);
  three.prices[0].complexity = 2;
  CHECK(boost_table(three, 1)[0].feature == 1);
  three.prices[1].cost_units = 1u << 20;
  CHECK(boost_table(three, 1)[0].feature == 2);
}

TEST_CASE("duplicates with both labels and constant features") {
  Table contradictory(6, 2);
  for (size_t i = 0; i < 6; ++i) {
    contradictory.at(i, 0) = static_cast<int32_t>(i / 2);
    contradictory.at(i, 1) = 9;
    contradictory.positive[i] = i % 2;
  }
  const RangedTable ranged(contradictory);
  const auto rounds = boost_table(contradictory, 3);
  CHECK(rounds[0].feature == 0);
  CHECK(rounds[0].error() == Approx(0.5));
  CHECK(strong_classifier(rounds, 0.45, 6).weaks.empty());

  Table constant(4, 1);
  constant.positive = {0, 1, 0, 1};
  const auto none = boost_table(constant, 3);
  REQUIRE(none.size() == 1);
  CHECK_FALSE(none[0].found);
  CHECK(strong_classifier(none, 0.45, 4).weaks.empty());
}

TEST_CASE("A perfect weak classifier ends the rounds with the alpha of half a sample") {
  Table table(10, 1);
  for (size_t i = 0; i < 10; ++i) {
    table.at(i, 0) = static_cast<int32_t>(i);
    table.positive[i] = i >= 4;
  }
  const RangedTable ranged(table);
  const auto rounds = boost_table(table, 4, WeakKind::kThreshold);
  CHECK(rounds[0].error() == 0);
  const StrongClassifier strong = strong_classifier(rounds, 0.45, 10);
  REQUIRE(strong.weaks.size() == 1);
  CHECK(strong.weaks[0].alpha_q20 == std::llround(alpha_of(0.05) * 1048576));
}

TEST_CASE("A price prefers cheap features") {
  const Table table = random_table(150, 20, 3);
  Table priced = table;
  const uint32_t favourite = boost_table(table, 1)[0].feature;
  priced.prices[favourite].cost_units = UINT32_MAX;
  CHECK(boost_table(priced, 1)[0].feature != favourite);
}

TEST_CASE("A node may be given a part of the columns to choose from") {
  const Table table = random_table(120, 40, 5);
  const RangedTable ranged(table);
  const auto all = boost_table(table, 1);
  std::vector<uint32_t> others;
  for (uint32_t f = 1; f < 40; f += 2) {
    if (f != all[0].feature) others.push_back(f);
  }
  const auto boost_on = [&](const std::vector<uint32_t>& columns) {
    std::vector<CodeMap> maps;
    for (const uint32_t column : columns) maps.push_back(ranged.maps[column]);
    const auto prepared = ranged.source.prepare({columns, maps}, cpu_context());
    BoostProblem problem = problem_of(table, ranged, 3);
    problem.columns = prepared.get();
    return boost(ranged.source, problem, cpu_context());
  };
  for (const BoostRound& round : boost_on(others)) {
    CHECK(std::find(others.begin(), others.end(), round.feature) != others.end());
    CHECK(round.error() >= 0);
  }
  CHECK(boost_on({all[0].feature})[0].mask == all[0].mask);
}

TEST_CASE("Problems that are boosted together come out as each of them alone") {
  const Table table = random_table(120, 40, 5);
  const RangedTable ranged(table);
  const std::vector<uint32_t> some{3, 4, 9, 20};
  const std::vector<CodeMap> maps_of_some{ranged.maps[3], ranged.maps[4], ranged.maps[9],
                                          ranged.maps[20]};
  const auto prepared = ranged.source.prepare({some, maps_of_some}, cpu_context());
  std::vector<BoostProblem> problems(3);
  for (size_t n = 0; n < problems.size(); ++n) {
    BoostProblem& problem = problems[n];
    problem.columns = n == 1 ? prepared.get() : ranged.columns.get();
    problem.samples = std::span(table.index).subspan(20 * n, 60);
    problem.positive = std::span(table.positive).subspan(20 * n, 60);
    problem.weight = std::span(table.weight).subspan(20 * n, 60);
    problem.rounds = static_cast<int>(n) + 2;
  }
  const auto together = boost(ranged.source, problems, cpu_context(2));
  REQUIRE(together.size() == 3);
  for (size_t n = 0; n < problems.size(); ++n) {
    const auto alone = boost(ranged.source, problems[n], cpu_context());
    REQUIRE(together[n].size() == alone.size());
    CHECK(alone.size() == n + 2);
    for (size_t t = 0; t < alone.size(); ++t) {
      CHECK(together[n][t].feature == alone[t].feature);
      CHECK(together[n][t].mask == alone[t].mask);
      CHECK(together[n][t].agreement == alone[t].agreement);
    }
  }
  CHECK(boost(ranged.source, std::span<const BoostProblem>{}, cpu_context()).empty());
}

TEST_CASE("Fewer bins: their number is an argument, and evaluation need not know it") {
  const Table table = random_table(400, 30, 11);
  const RangedTable ranged(table);
  for (const int bins : {2, 5, 16, 64}) {
    BoostProblem problem = problem_of(table, ranged, 4);
    problem.bins = bins;
    const BoostRound round = boost(ranged.source, problem, cpu_context())[0];
    // By the definition: bins of the codes that occur, each with the sign of its weight.
    std::vector<uint32_t> codes;
    for (size_t i = 0; i < table.index.size(); ++i) {
      const int32_t value = table.values[i * table.columns + round.feature];
      codes.push_back(code_of(ranged.maps[round.feature], value));
    }
    const auto [low, high] = std::minmax_element(codes.begin(), codes.end());
    const BinMap map = make_bin_map(*low, *high, bins);
    CHECK(round.bins.shift == map.shift);
    CHECK(bin_of(map, *high) < static_cast<uint32_t>(bins));
    double error = 0;
    for (size_t i = 0; i < codes.size(); ++i) {
      const bool vote = round.mask >> bin_of(map, codes[i]) & 1;
      error += vote == (table.positive[i] != 0) ? 0 : table.weight[i];
    }
    CHECK(error == Approx(round.error()).margin(1e-6));
    for (int b = bins; b < kBins; ++b) {
      CHECK((round.mask >> b & 1) == (round.mask >> (bins - 1) & 1));
    }
  }
  BoostProblem problem = problem_of(table, ranged, 1);
  for (const int bins : {1, 65}) {
    problem.bins = bins;
    CHECK_THROWS_AS(boost(ranged.source, problem, cpu_context()), UsageError);
  }
}

TEST_CASE("Votes and scores through the matrix are those of the definition") {
  const Table table = random_table(700, 90, 17);
  const RangedTable ranged(table);
  BoostProblem problem = problem_of(table, ranged, 70);
  const StrongClassifier strong =
      strong_classifier(boost(ranged.source, problem, cpu_context()), 0.5, problem.samples.size());
  REQUIRE(strong.weaks.size() > 33);
  for (const int threads : {1, 3}) {
    const Votes votes = cast_votes(ranged.source, strong.weaks, table.index, cpu_context(threads));
    const auto scores =
        strong_scores(ranged.source, {{strong.weaks, table.index}}, cpu_context(threads))[0];
    for (size_t i = 0; i < table.index.size(); ++i) {
      int32_t h = 0;
      for (size_t t = 0; t < strong.weaks.size(); ++t) {
        const WeakClassifier& weak = strong.weaks[t];
        const bool vote = weak_vote(weak.codes, weak.bins, weak.mask,
                                    table.values[i * table.columns + weak.feature]);
        REQUIRE(votes.at(i, t) == vote);
        h += vote ? weak.alpha_q20 : -weak.alpha_q20;
      }
      REQUIRE(scores[i] == h);
    }
  }
}
