// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
//
// The learner on a table of numbers: nothing here or below knows of images, volumes or box
// features.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/learning/boost.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/score.h"
#include "tests/unit/learning/half_moons.h"

namespace {

using namespace larch;
using fixtures::cpu_context;
using fixtures::Table;

constexpr size_t kSamples = 4000;

tree::Samples samples_of(const Table& table) {
  tree::Samples samples;
  for (uint64_t i = 0; i < table.index.size(); ++i) samples.id.push_back(i);
  samples.positive = table.positive;
  samples.mass.assign(table.index.size(), uint64_t{1} << 32);
  return samples;
}

tree::Ensemble tree_on(const Table& table, const tree::TreeConfig& config) {
  const auto source = table.source();
  const auto maps = source.range(table.index, cpu_context(2));
  const tree::Samples samples = samples_of(table), none;
  const tree::ValidationConfig validation;
  const tree::GrowTask task{config, validation, {source, samples}, {source, none}, maps};
  return tree::grow(tree::start_tree(config, samples), task, cpu_context(2)).tree;
}

double tree_loss(const tree::Ensemble& trees, const Table& test) {
  const auto p = tree::posteriors_by_depth(trees, test.source(), test.index.size(), cpu_context(2));
  return tree::score(p.back(), samples_of(test)).log_loss;
}

/// Of a single strong classifier of thresholds, which are depth-1 trees.
double strong_loss(const Table& training, const Table& test, int rounds) {
  const fixtures::RangedTable ranged(training);
  learning::BoostProblem problem;
  problem.columns = ranged.columns.get();
  problem.samples = training.index;
  problem.positive = training.positive;
  problem.weight = training.weight;
  problem.rounds = rounds;
  problem.kind = learning::WeakKind::kThreshold;
  const auto strong = learning::strong_classifier(
      learning::boost(ranged.source, problem, cpu_context(2)), 0.5, problem.samples.size());
  const auto scores =
      learning::strong_scores(test.source(), {{strong.weaks, test.index}}, cpu_context(2))[0];
  std::vector<double> p;
  for (const int32_t h : scores) p.push_back(1 / (1 + std::exp(-2 * h * 0x1p-20)));
  return tree::score(p, samples_of(test)).log_loss;
}

}  // namespace

TEST_CASE("Half-moons: the samples are those of the reference") {
  const Table training = fixtures::half_moons(kSamples, 1);
  const Table test = fixtures::half_moons(kSamples, 2);
  const auto sum = [](const auto& values) {
    return std::accumulate(values.begin(), values.end(), int64_t{0});
  };
  CHECK(sum(training.values) == 150155552);
  CHECK(sum(training.positive) == 2002);
  CHECK(sum(test.values) == 150273086);
  CHECK(sum(test.positive) == 1976);
}

// Test log-loss of histogram boosting of depth-1 trees with 64 bins, printed by
// scikit-learn 1.2.2. AdaBoost takes whole steps, so that the reference
// with learning rate 1 is its counterpart. With a rate of 0.3 and 200 rounds the reference comes to
// 0.16243, 7 % below the strong classifier; with fewer than 40 rounds at rate 1 it is 7 to 9 %
// below.
struct Reference {
  int rounds;
  double log_loss;
};
constexpr Reference kReferences[] = {{40, 0.16834}, {100, 0.17029}, {200, 0.17522}};

TEST_CASE("Half-moons: a strong classifier comes within 5 % of the reference's log-loss") {
  const Table training = fixtures::half_moons(kSamples, 1);
  const Table test = fixtures::half_moons(kSamples, 2);
  for (const Reference& reference : kReferences) {
    const double loss = strong_loss(training, test, reference.rounds);
    CAPTURE(reference.rounds, loss);
    CHECK(loss < 1.05 * reference.log_loss);
  }
}

TEST_CASE("Half-moons: a tree betters the reference and the strong classifier") {
  const Table training = fixtures::half_moons(kSamples, 1);
  const Table test = fixtures::half_moons(kSamples, 2);
  const Reference reference = kReferences[2];
  tree::TreeConfig config;
  config.depth = 4;
  config.rounds = {reference.rounds};
  config.weak = learning::WeakKind::kThreshold;
  config.worst_error = 0.5;
  config.selected_positives = config.selected_negatives = static_cast<int>(kSamples);
  config.routing_band = 0.5;  // every sample goes both ways, its mass split by the posterior
  config.e2 = 0.5;            // and so does every item that is evaluated
  const double loss = tree_loss(tree_on(training, config), test);
  CAPTURE(loss);
  CHECK(loss < reference.log_loss);
  CHECK(loss < strong_loss(training, test, reference.rounds));
}
