// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/tree_math.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/tree/ensemble.h"

namespace {

using namespace larch;
using namespace larch::tree;
using learning::BinMap;
using learning::CodeMap;

double sigma(double z) {
  return 1 / (1 + std::exp(-z));
}

}  // namespace

TEST_CASE("the logistic function as a table of integers") {
  const std::vector<uint32_t> table = tree::make_logistic_table();
  const auto p = [&](double h) {
    return tree::logistic_q30(table.data(), static_cast<int32_t>(std::llround(h * 1048576)));
  };
  CHECK(p(0) == 536870912);
  CHECK(p(1) == 945748661);
  CHECK(p(0) * 0x1.0p-30 == 0.5);
  CHECK(p(1) * 0x1.0p-30 == Approx(0.880797077978).margin(1e-9));
  CHECK(p(-1) * 0x1.0p-30 == Approx(0.119202922022).margin(1e-9));
  CHECK(p(400) * 0x1.0p-30 == Approx(1).margin(2e-7));
  CHECK(p(-400) * 0x1.0p-30 == Approx(0).margin(2e-7));
  CHECK(tree::logistic_q30(table.data(), INT32_MAX) == table.back());
  CHECK(tree::logistic_q30(table.data(), INT32_MIN) == table.front());
  double worst = 0;
  uint32_t previous = 0;
  for (int32_t h = -9 << 20; h <= 9 << 20; h += 1237) {
    const uint32_t fixed = tree::logistic_q30(table.data(), h);
    worst = std::max(worst, std::abs(fixed * 0x1.0p-30 - sigma(2 * h * 0x1.0p-20)));
    CHECK(fixed >= previous);
    previous = fixed;
  }
  CHECK(worst < 7.4e-7);
}

TEST_CASE("thresholds of Algorithm 1 as integers") {
  CHECK(tree::make_thresholds(1e-6, 0.1, false).t1 == 7243306);
  CHECK(tree::make_thresholds(1e-6, 0.1, false).t2 == 212580);
  CHECK(tree::make_thresholds(0.5, 0, true).t1 == 0);
  CHECK(tree::make_thresholds(0.5, 0, true).t2 == 0);
  CHECK(tree::make_thresholds(0.5, 0, true).hard == 1);
  CHECK(tree::make_thresholds(1e-6, 0.5, false).t2 == INT32_MAX);
}

TEST_CASE("Weights split without loss") {
  const std::vector<uint32_t> table = tree::make_logistic_table();
  for (uint64_t i = 0; i < 20000; ++i) {
    const Thresholds t =
        tree::make_thresholds(i % 2 ? 1e-6 : 0.1, 0.1 * static_cast<double>(i % 7), i % 5 == 0);
    const auto weight = static_cast<uint32_t>(hash64(1, 1, i) % (uint64_t{kOneQ30} + 1));
    const auto h = static_cast<int32_t>(hash64(1, 2, i)) >> (i % 13);
    const Split s = split_weight(weight, h, t, table.data());
    REQUIRE(uint64_t{s.descend_left} + s.descend_right + s.stop_left + s.stop_right == weight);
    REQUIRE((s.descend_left == 0 || s.stop_left == 0));
    REQUIRE((s.descend_right == 0 || s.stop_right == 0));
    const uint64_t mass = hash64(1, 3, i) >> 1;
    const uint32_t p = tree::logistic_q30(table.data(), h);
    const auto product = static_cast<unsigned __int128>(mass) * p;
    REQUIRE(tree::mass_times_q30(mass, p) == static_cast<uint64_t>(product >> 30));
  }
}

static bool fast_vote(const learning::FastVote& vote, int32_t value) {
  const uint32_t x =
      static_cast<uint32_t>(value < vote.lo ? vote.lo : value) - static_cast<uint32_t>(vote.lo);
  const auto code = static_cast<uint32_t>((uint64_t{x} * vote.multiplier + vote.remainder) >> 32);
  const uint32_t bin = code >> vote.shift;
  return (vote.mask >> (bin < learning::kBins - 1 ? bin : learning::kBins - 1)) & 1;
}

TEST_CASE("The fast form of a weak classifier votes as the plain one for every value") {
  const auto check = [](const CodeMap& codes, const BinMap& bins, uint64_t mask, int32_t value) {
    return weak_vote(codes, bins, mask, value) ==
           fast_vote(make_fast_vote(codes, bins, mask), value);
  };
  // Every value around narrow ranges, where the code is the value, and around those just wider.
  for (const int32_t span : {0, 1, 5, 63, 64, 200, 255, 256, 257, 300, 511, 5000}) {
    for (const int first : {0, 1, 20, 63, 190, 254, 255}) {
      for (const int shift : {0, 1, 2}) {
        const CodeMap codes = learning::make_code_map(-100, -100 + span);
        const BinMap bins{static_cast<uint8_t>(first), static_cast<uint8_t>(shift)};
        const uint64_t mask = hash64(3, span, first * 4 + shift);
        for (int32_t value = -110; value < span + 10; ++value) {
          REQUIRE(check(codes, bins, mask, value));
        }
        for (const int32_t value : {INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX}) {
          REQUIRE(check(codes, bins, mask, value));
        }
      }
    }
  }
  // Random maps, up to all of 32 bits, at random values and at both sides of each code's edge.
  for (uint64_t n = 0; n < 3000; ++n) {
    const auto a = static_cast<int32_t>(hash64(5, 1, n)) >> hash_below(5, 2, n, 31);
    const auto b = static_cast<int32_t>(hash64(5, 3, n)) >> hash_below(5, 4, n, 31);
    const CodeMap codes = n == 0 ? learning::make_code_map(INT32_MIN, INT32_MAX)
                                 : learning::make_code_map(std::min(a, b), std::max(a, b));
    const BinMap bins{static_cast<uint8_t>(hash_below(5, 5, n, 256)),
                      static_cast<uint8_t>(hash_below(5, 6, n, 3))};
    const uint64_t mask = hash64(5, 7, n);
    const double step = (static_cast<double>(codes.hi) - codes.lo) / 256;
    for (int code = -1; code <= 257; ++code) {
      const double edge = std::clamp(codes.lo + code * step, -2147483640.0, 2147483640.0);
      for (int32_t near = -2; near <= 2; ++near) {
        REQUIRE(check(codes, bins, mask, static_cast<int32_t>(edge) + near));
      }
    }
    for (uint64_t k = 0; k < 50; ++k) {
      REQUIRE(check(codes, bins, mask, static_cast<int32_t>(hash64(6, n, k))));
    }
  }
}

TEST_CASE("Output conversions round to nearest") {
  CHECK(tree::probability_float(uint64_t{1} << 60) == 1.0F);
  CHECK(tree::probability_float(uint64_t{3} << 58) == 0.75F);
}

TEST_CASE("H is exact for the largest sums of alphas") {
  for (const int32_t sum : {0, 1, 1 << 30, INT32_MAX - 1, INT32_MAX}) {
    for (const int32_t votes : {0, sum / 3, sum / 2, sum}) {
      CHECK(tree::strong_value(votes, sum) == int64_t{2} * votes - sum);
    }
  }
}
