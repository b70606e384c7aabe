// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
//
// Decision forests on tables of numbers: nothing here or below knows of images.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/tree/train/forest_split.h"
#include "tests/unit/learning/half_moons.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace {

using namespace larch;
using fixtures::cpu_context;
using fixtures::ForestTable;
using fixtures::grow_forest;
using fixtures::Table;

/// The best test on counts [class][bin], every class with weight 1.
tree::LeafSplit best_of(const std::vector<std::vector<int>>& counts, bool intervals,
                        tree::Criterion criterion = tree::Criterion::kInformation) {
  tree::SplitRule rule;
  rule.classes = static_cast<uint32_t>(counts.size());
  rule.bins = static_cast<int32_t>(counts[0].size());
  rule.intervals = intervals ? 1 : 0;
  rule.criterion = criterion;
  const auto upto = [&](uint32_t c, int32_t b) -> uint64_t {
    return static_cast<uint64_t>(std::accumulate(counts[c].begin(), counts[c].begin() + b + 1, 0));
  };
  return tree::best_test(
      rule, 7, upto, [](uint32_t) -> uint64_t { return 1; }, tree::entropy_terms().data());
}

/// Gain in bits (or of the index) of 16 samples of two equal classes.
double gain(const tree::LeafSplit& split, double whole) {
  return whole - static_cast<double>(split.impurity) / tree::kGainUnit / 16;
}

TEST_CASE("Gains of intervals and thresholds are those computed by hand") {
  const std::vector<std::vector<int>> counts{{4, 1, 0, 3}, {0, 3, 4, 1}};
  const tree::LeafSplit interval = best_of(counts, true), threshold = best_of(counts, false);
  CHECK(interval.begin == 1);
  CHECK(interval.end == 3);
  CHECK(gain(interval, 1) == Approx(0.456435557).margin(1e-4));
  CHECK(threshold.begin == 1);
  CHECK(threshold.end == 4);
  CHECK(gain(threshold, 1) == Approx(0.311278124).margin(1e-4));
  // The same split by the Gini index: the left side is pure, the right one has 4 and 8.
  const tree::LeafSplit gini = best_of(counts, false, tree::Criterion::kGini);
  CHECK(gini.begin == 1);
  CHECK(gain(gini, 0.5) == Approx(0.5 - 12.0 / 16 * (1 - (16.0 + 64) / 144)).margin(1e-4));
}

TEST_CASE("Where nothing is gained there is no test") {
  CHECK_FALSE(best_of({{4, 4}, {4, 4}}, false).found());
  CHECK_FALSE(best_of({{4, 3, 1}, {0, 0, 0}}, true).found());
  CHECK_FALSE(best_of({{8, 0}, {8, 0}}, false).found());
}

TEST_CASE("The first of equal tests wins, whatever other classes there are") {
  const tree::LeafSplit two = best_of({{5, 0, 0, 0}, {0, 0, 0, 5}}, false);
  CHECK(two.begin == 1);
  const tree::LeafSplit four =
      best_of({{0, 0, 0, 0}, {5, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 5}}, false);
  CHECK(four.begin == 1);
  CHECK(four.impurity == two.impurity);
}

TEST_CASE("Thresholds are the smallest value of a bin, to the last value") {
  for (const auto& [lo, hi] :
       {std::pair{-7000, 12345}, {0, 20}, {INT32_MIN, INT32_MAX}, {5, 300}}) {
    const learning::CodeMap map = learning::make_code_map(lo, hi);
    for (const int bins : {2, 3, 30, 64}) {
      const uint32_t factor = tree::bin_factor(map, bins);
      for (int b = 1; b < bins; ++b) {
        const uint32_t first = tree::first_code(factor, static_cast<uint32_t>(b));
        if (first > learning::code_of(map, map.hi)) continue;
        const int32_t value = tree::first_value(map, first);
        const auto bin = [&](int32_t v) { return (learning::code_of(map, v) * factor) >> 16; };
        REQUIRE(bin(value) >= static_cast<uint32_t>(b));
        REQUIRE(bin(value - 1) < static_cast<uint32_t>(b));
      }
    }
  }
}

// Test accuracy of sklearn.tree.DecisionTreeClassifier(criterion="entropy", max_depth=d,
// random_state=0) on the same table, by scikit-learn 1.2.1.
struct Reference {
  int depth;
  double accuracy;
};
constexpr Reference kReferences[] = {{4, 0.8990}, {6, 0.9230}, {8, 0.9215}};

TEST_CASE("Half-moons: one tree comes within 1 % of the reference's accuracy") {
  const ForestTable training(fixtures::half_moons(4000, 1)), test(fixtures::half_moons(4000, 2));
  for (const Reference& reference : kReferences) {
    tree::ForestConfig config;
    config.trees = 1;
    config.depth = reference.depth;
    config.bins = 64;
    config.bootstrap = false;
    const tree::Forest forest = grow_forest(training, config, cpu_context(2));
    const double accuracy = fixtures::accuracy(forest, test);
    CAPTURE(reference.depth, accuracy);
    CHECK(accuracy > reference.accuracy - 0.01);
  }
}

TEST_CASE("Degenerate samples give a forest all the same") {
  tree::ForestConfig config;
  config.trees = 2;
  config.depth = 24;
  config.bootstrap = false;
  ForestTable same(Table(50, 2));  // a constant feature, contradictory samples
  for (size_t i = 0; i < 50; ++i) same.label[i] = i % 3 == 0;
  const tree::Forest root = grow_forest(same, config, cpu_context());
  CHECK(root.nodes.size() == 2);
  CHECK(root.counts == std::vector<uint32_t>{33, 17, 33, 17});

  ForestTable chain(Table(25, 1));  // one sample of another class is told at a time
  for (size_t i = 0; i < 25; ++i) {
    chain.table.at(i, 0) = static_cast<int32_t>(i);
    chain.label[i] = static_cast<uint16_t>(i);
  }
  chain.classes = 25;
  config.bins = 64;
  const tree::Forest all = grow_forest(chain, config, cpu_context());
  CHECK(all.leaves() == 50);
  CHECK(fixtures::accuracy(all, chain) == 1);

  config.depth = 0;
  CHECK(grow_forest(chain, config, cpu_context()).nodes.size() == 2);
  config.depth = 24;
  config.min_leaf = 13;
  CHECK(grow_forest(chain, config, cpu_context()).nodes.size() == 2);
}

TEST_CASE("Weights of classes move leaves and splits, and counts stay what they are") {
  ForestTable table(Table(1000, 1));
  for (size_t i = 0; i < 1000; ++i) {
    table.table.at(i, 0) = static_cast<int32_t>(i % 2);
    table.label[i] = i % 10 == 0;  // one in five of the samples with value 0
  }
  tree::ForestConfig config;
  config.trees = 1;
  config.bootstrap = false;
  const auto p_of = [&](const tree::Forest& forest) {
    return fixtures::distributions(forest, table.response(), 2);
  };
  const tree::Forest plain = grow_forest(table, config, cpu_context());
  CHECK(p_of(plain)[1] == Approx(0.2));
  config.class_weights = tree::ClassWeights::kBalanced;
  const tree::Forest balanced = grow_forest(table, config, cpu_context());
  CHECK(balanced.counts == plain.counts);
  CHECK(p_of(balanced)[1] == Approx(100.0 / 100 / (100.0 / 100 + 400.0 / 900)).margin(1e-3));
}

TEST_CASE("A forest that breaks an invariant is refused") {
  const ForestTable training(fixtures::half_moons(300, 1));
  tree::ForestConfig config;
  config.trees = 2;
  config.depth = 3;
  tree::Forest forest = grow_forest(training, config, cpu_context());
  const size_t features = 8;
  REQUIRE_NOTHROW(tree::check_forest(forest, features));
  const auto refused = [&](const auto& damage) {
    tree::Forest damaged = forest;
    damage(damaged);
    CHECK_THROWS_AS(tree::check_forest(damaged, features), InputError);
  };
  refused([](auto& f) { f.nodes[0].left = 0; });
  refused([](auto& f) { f.nodes[0].left = 100000; });
  refused([](auto& f) { f.nodes[0].feature = 8; });
  refused([](auto& f) { f.nodes[0].low = f.nodes[0].high, --f.nodes[0].high; });
  refused([](auto& f) { f.nodes.pop_back(); });
  refused([](auto& f) { f.roots[1] = 0; });
  refused([](auto& f) { f.counts.pop_back(); });
  refused([](auto& f) { std::fill_n(f.counts.begin(), 2, 0); });
  refused([](auto& f) { f.class_weight[1] = 0; });
  refused([](auto& f) { f.class_weight.assign(2, UINT32_MAX); });
  refused([](auto& f) { f.classes = 0; });
  forest.self_tests = tree::make_self_tests(forest, 1);
  CHECK_NOTHROW(tree::run_self_tests(forest));
  ++forest.self_tests[0].leaves[1];
  CHECK_THROWS_AS(tree::run_self_tests(forest), InputError);
}

}  // namespace
