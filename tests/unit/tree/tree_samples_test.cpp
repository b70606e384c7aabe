// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/train/score.h"
#include "larch/tree/tree_math.h"

namespace {

using namespace larch;
using namespace larch::tree;

}  // namespace

TEST_CASE("Log-loss and AUC of a small example") {
  Samples samples;
  samples.positive = {1, 0, 1, 0};
  samples.mass = {1, 1, 1, 1};
  samples.id = {0, 1, 2, 3};
  const HeldOutScore s = score({0.8, 0.3, 0.4, 0.4}, samples);
  CHECK(s.auc == Approx((2 + 1.5) / 4));
  CHECK(s.log_loss == Approx(-(std::log(0.8) + std::log(0.7) + std::log(0.4) + std::log(0.6)) / 4));
}

TEST_CASE("Selection takes the lowest hashes of each class, and its weights add up to one") {
  Samples samples;
  NodeSamples list;
  for (uint32_t i = 0; i < 100; ++i) {
    samples.id.push_back(i);
    samples.positive.push_back(i % 4 == 0);
    samples.mass.push_back(uint64_t{1 + i} << 32);
    if (i % 5 == 0) continue;
    list.index.push_back(i);
    list.mass.push_back(samples.mass.back() / 2);
  }
  TreeConfig config;
  config.selected_positives = 7;
  config.selected_negatives = 1000;
  const auto selected = select_samples(samples, list, config, 3, 9, 2);
  CHECK(std::is_sorted(selected.begin(), selected.end()));
  size_t positive = 0;
  uint64_t highest_chosen = 0, lowest_left = UINT64_MAX;
  for (const uint32_t i : list.index) {
    if (!samples.positive[i]) continue;
    const uint64_t key = hash64(3, 9, samples.id[i]);
    if (std::binary_search(selected.begin(), selected.end(), i)) {
      ++positive;
      highest_chosen = std::max(highest_chosen, key);
    } else {
      lowest_left = std::min(lowest_left, key);
    }
  }
  CHECK(positive == 7);
  CHECK(highest_chosen < lowest_left);
  CHECK(selected.size() == 7 + 60);
  for (const Balance balance : {Balance::kEqual, Balance::kMass}) {
    const auto weight = initial_weights(samples, selected, list, balance);
    double of[2] = {0, 0};
    for (size_t s = 0; s < selected.size(); ++s) of[samples.positive[selected[s]]] += weight[s];
    CHECK(of[0] + of[1] == Approx(1));
    if (balance == Balance::kEqual) CHECK(of[1] == Approx(0.5));
    uint64_t masses[2];
    sum_masses(samples, list, &masses[1], &masses[0]);
    const double share =
        static_cast<double>(masses[1]) / static_cast<double>(masses[0] + masses[1]);
    if (balance == Balance::kMass) CHECK(of[1] == Approx(share));
  }
}

TEST_CASE("A tree of no samples is refused") {
  CHECK_THROWS_AS(tree::start_tree({}, {}), UsageError);
}

TEST_CASE("Masses whose sum leaves 64 bits are halved alike") {
  std::vector<uint64_t> few{5, uint64_t{1} << 63}, many(6, (uint64_t{1} << 62) + 8);
  const std::vector<uint64_t> same = few;
  tree::fit_sum(few);
  CHECK(few == same);
  tree::fit_sum(many);
  CHECK(many == std::vector<uint64_t>(6, (uint64_t{1} << 59) + 1));
}

TEST_CASE("A share of a mass is exact up to all of 64 bits") {
  const auto check = [](uint64_t mass, uint32_t p) {
    const auto exact = static_cast<uint64_t>((static_cast<unsigned __int128>(mass) * p) >> 30);
    CHECK(tree::mass_times_q30(mass, p) == exact);
  };
  for (const uint64_t mass : {uint64_t{0}, uint64_t{1}, uint64_t{0xffffffff}, uint64_t{1} << 32,
                              uint64_t{1} << 63, ~uint64_t{0} - 1, ~uint64_t{0}}) {
    for (const uint32_t p : {0u, 1u, kOneQ30 / 2, kOneQ30 - 1, kOneQ30}) check(mass, p);
  }
  for (uint64_t n = 0; n < 1000; ++n) check(hash64(1, 2, n), hash_below(1, 3, n, kOneQ30 + 1));
}
