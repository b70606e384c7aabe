// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/tree/flat_tree.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::tree {
namespace {

/// Feature values that are numbers of a hash: not linear in anything.
struct HashResponse {
  uint64_t seed;
  int32_t spread;
  LARCH_HD int32_t operator()(uint32_t feature, size_t item) const {
    return static_cast<int32_t>(
               hash_below(seed, feature, item, 2 * static_cast<uint32_t>(spread) + 1)) -
           spread;
  }
};

std::vector<float> posteriors(const Ensemble& trees, const EvaluationRule& rule,
                              const HashResponse& response, size_t items) {
  const std::vector<FlatTree> flat = flatten(trees, rule);
  std::vector<TreeView> views;
  for (const FlatTree& tree : flat) views.push_back(tree.view());
  std::vector<float> found;
  for (size_t item = 0; item < items; ++item) {
    found.push_back(
        probability_float(ensemble_posterior(views.data(), views.size(), response, item)));
  }
  return found;
}

void compare(const Ensemble& trees, size_t features, const EvaluationRule& rule) {
  constexpr size_t kItems = 700;
  const HashResponse response{3, 15000};
  const std::vector<float> found = posteriors(trees, rule, response, kItems);
  const std::vector<uint32_t> q = node_probabilities(trees);
  REQUIRE(found.size() == kItems);
  std::vector<int32_t> responses(features);
  for (size_t item = 0; item < kItems; ++item) {
    for (uint32_t f = 0; f < features; ++f) responses[f] = response(f, item);
    REQUIRE(found[item] == probability_float(posterior_q60(trees, rule, q, responses)));
  }
}

TEST_CASE("the posterior of items agrees with the reference, by every rule") {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const pbt::Model one = fixtures::random_model(seed);
    const pbt::Model three = fixtures::random_ensemble(seed, 3);
    for (const bool hard : {false, true}) {
      compare(one, one.features.size(), {-1, hard});
      compare(three, three.features.size(), {0.05, hard, 0.02});
    }
  }
}

TEST_CASE("e2 of a rule stands for that of the trees") {
  pbt::Model model = fixtures::random_model(2);
  const auto found = [&](const EvaluationRule& rule) {
    return posteriors(model, rule, {3, 15000}, 700);
  };
  const std::vector<float> usual = found({}), narrow = found({-1, false, 0.01});
  CHECK(usual != narrow);
  model.e2 = 0.01;
  CHECK(found({}) == narrow);
}

TEST_CASE("the posterior of a tree that is one leaf is its probability") {
  fixtures::RandomTree spec;
  spec.depth = 0;
  const pbt::Model leaf = fixtures::random_model(5, spec);
  compare(leaf, leaf.features.size(), {});
}

}  // namespace
}  // namespace larch::tree
