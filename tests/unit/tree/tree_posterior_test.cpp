// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/tree/posterior.h"
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

void compare(const Ensemble& trees, size_t features, const EvaluationRule& rule) {
  constexpr size_t kItems = 700;
  const HashResponse response{3, 15000};
  const std::vector<float> found =
      cpu::posterior(flatten(trees, rule), response, kItems, fixtures::context_of(2));
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
  const auto posteriors = [&](const EvaluationRule& rule) {
    return cpu::posterior(flatten(model, rule), HashResponse{3, 15000}, 700,
                          fixtures::context_of());
  };
  const std::vector<float> usual = posteriors({}), narrow = posteriors({-1, false, 0.01});
  CHECK(usual != narrow);
  model.e2 = 0.01;
  CHECK(posteriors({}) == narrow);
}

TEST_CASE("the posterior of a tree that is one leaf is its probability") {
  fixtures::RandomTree spec;
  spec.depth = 0;
  const pbt::Model leaf = fixtures::random_model(5, spec);
  compare(leaf, leaf.features.size(), {});
  CHECK(cpu::posterior(flatten(leaf, {}), HashResponse{1, 10}, 0, fixtures::context_of()).empty());
}

}  // namespace
}  // namespace larch::tree
