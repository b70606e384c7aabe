// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/self_test.h"

#include <string>

#include "larch/core/error.h"
#include "larch/core/random_math.h"

namespace larch::tree {
namespace {
constexpr uint64_t kStream = 0x73656c66;  // "self"
}  // namespace

std::vector<SelfTest> make_self_tests(const Ensemble& trees, size_t features, uint64_t seed,
                                      size_t count) {
  std::vector<learning::CodeMap> range(features);
  for (const WeakClassifier& weak : trees.weaks) range[weak.feature] = weak.codes;
  const std::vector<uint32_t> q = node_probabilities(trees);
  std::vector<SelfTest> tests(count);
  for (size_t t = 0; t < count; ++t) {
    for (size_t f = 0; f < range.size(); ++f) {
      const uint32_t span = static_cast<uint32_t>(range[f].hi) - static_cast<uint32_t>(range[f].lo);
      const uint32_t step = hash_below(seed, kStream, t * range.size() + f, span);
      tests[t].responses.push_back(static_cast<int32_t>(static_cast<uint32_t>(range[f].lo) + step));
    }
    tests[t].probability_q32 = probability_q32(posterior_q60(trees, {}, q, tests[t].responses));
  }
  return tests;
}

void run_self_tests(const Ensemble& trees, size_t features) {
  const std::vector<uint32_t> q = node_probabilities(trees);
  for (size_t t = 0; t < trees.self_tests.size(); ++t) {
    const SelfTest& test = trees.self_tests[t];
    if (test.responses.size() != features) {
      throw InputError("self-test vector " + std::to_string(t) + " has a wrong length");
    }
    const uint32_t p = probability_q32(posterior_q60(trees, {}, q, test.responses));
    if (p != test.probability_q32) {
      throw InputError("self-test vector " + std::to_string(t) + " gives " + std::to_string(p) +
                       " instead of " + std::to_string(test.probability_q32) +
                       ": the model file is damaged or this build computes wrongly");
    }
  }
}

}  // namespace larch::tree
