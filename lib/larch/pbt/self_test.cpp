// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/self_test.h"

#include <string>

#include "larch/core/error.h"
#include "larch/core/random_math.h"

namespace larch::pbt {
namespace {
constexpr uint64_t kStream = 0x73656c66;  // "self"
constexpr size_t kCount = 64;
}  // namespace

std::vector<SelfTest> make_self_tests(const Model& model, uint64_t seed) {
  std::vector<CodeMap> range(model.features.size());
  for (const WeakClassifier& weak : model.weaks) range[weak.feature] = weak.codes;
  const std::vector<uint32_t> q = node_probabilities(model);
  std::vector<SelfTest> tests(kCount);
  for (size_t t = 0; t < kCount; ++t) {
    for (size_t f = 0; f < range.size(); ++f) {
      const uint32_t span = static_cast<uint32_t>(range[f].hi) - static_cast<uint32_t>(range[f].lo);
      const uint32_t step = hash_below(seed, kStream, t * range.size() + f, span);
      tests[t].responses.push_back(static_cast<int32_t>(static_cast<uint32_t>(range[f].lo) + step));
    }
    tests[t].probability_q32 = probability_q32(posterior_q60(model, {}, q, tests[t].responses));
  }
  return tests;
}

void run_self_tests(const Model& model) {
  const std::vector<uint32_t> q = node_probabilities(model);
  for (size_t t = 0; t < model.self_tests.size(); ++t) {
    const SelfTest& test = model.self_tests[t];
    if (test.responses.size() != model.features.size()) {
      throw InputError("self-test vector " + std::to_string(t) + " has a wrong length");
    }
    const uint32_t p = probability_q32(posterior_q60(model, {}, q, test.responses));
    if (p != test.probability_q32) {
      throw InputError("self-test vector " + std::to_string(t) + " gives " + std::to_string(p) +
                       " instead of " + std::to_string(test.probability_q32) +
                       ": the model file is damaged or this build computes wrongly");
    }
  }
}

}  // namespace larch::pbt
