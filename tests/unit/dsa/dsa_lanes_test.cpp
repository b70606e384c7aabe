// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;
using namespace larch::dsa::fixtures;

TEST_CASE("every set of loops gives the same integers") {
  constexpr int64_t kCount = 64;
  std::vector<uint16_t> rows[3];
  for (uint64_t r = 0; r < 3; ++r) {
    for (uint64_t i = 0; i < kCount; ++i) {
      const uint64_t kind = hash_below(1, 40 + r, i, 8);
      rows[r].push_back(kind == 0   ? kNoSample
                        : kind == 1 ? kMaximumSample
                        : kind == 2 ? 0
                                    : static_cast<uint16_t>(hash_below(1, 50 + r, i, 65535)));
    }
  }
  const TapTable table = gain_taps();
  for (const cpu::MatchLanes& lanes : cpu::all_match_lanes()) {
    INFO(lanes.name);
    std::vector<uint16_t> expected(kCount), got(kCount);
    for (const Taps& taps : table.at) {
      cpu::kPortableMatchLanes.tap_row(taps, rows[0].data(), rows[1].data(), rows[2].data(), kCount,
                                       expected.data());
      lanes.tap_row(taps, rows[0].data(), rows[1].data(), rows[2].data(), kCount, got.data());
      REQUIRE(got == expected);
    }
    for (int32_t shift = 0; shift <= kMaximumShift; ++shift) {
      for (const int32_t mu : {0, 17, -4000, 15000, -31000, 31999, 40000, -65000}) {
        const cpu::BinRule rule{rounded_to_bins(mu, shift), shift};
        cpu::kPortableMatchLanes.bin_row(rule, rows[0].data(), rows[1].data(), kCount,
                                         expected.data());
        lanes.bin_row(rule, rows[0].data(), rows[1].data(), kCount, got.data());
        REQUIRE(got == expected);
      }
    }
    std::vector<uint16_t> counters(cpu::kHistograms * cpu::kCounters, 0);
    uint64_t total = 0, n = 0;
    for (size_t i = 0; i < counters.size(); ++i) {
      counters[i] = static_cast<uint16_t>(hash_below(2, 60, i, 30));
    }
    for (int64_t bin = 0; bin < kBins; ++bin) {
      uint64_t h = 0;
      for (int64_t k = 0; k < cpu::kHistograms; ++k) {
        h += counters[static_cast<size_t>(k * cpu::kCounters + bin)];
      }
      total += h * h;
      n += h;
    }
    REQUIRE(n <= 65535);
    CHECK(lanes.sum_of_squares(counters.data()) == total);
    CHECK(std::count(counters.begin(), counters.end(), 0) ==
          static_cast<std::ptrdiff_t>(counters.size()));
    counters[5] = 65025;  // a block of one difference
    CHECK(lanes.sum_of_squares(counters.data()) == 65025U * 65025U);
  }
}

TEST_CASE("squares sum to twice the old count plus one of each pixel, in any order") {
  for (const cpu::MatchLanes& lanes : cpu::all_match_lanes()) {
    INFO(lanes.name);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<uint16_t> counters(cpu::kHistograms * cpu::kCounters, 0);
      std::vector<uint64_t> histogram(kBins, 0);
      uint64_t sum = 0;
      for (uint64_t i = 0; i < 4096; ++i) {
        const uint64_t bin = hash_below(seed, 1, i, seed == 0 ? 9 : kBins);
        sum += 2 * histogram[bin]++ + 1;
        ++counters[i % cpu::kHistograms * cpu::kCounters + bin];
      }
      CHECK(lanes.sum_of_squares(counters.data()) == sum);
    }
  }
}

TEST_CASE("every set of loops samples the same at any place") {
  constexpr int64_t kSide = 40, kCount = 4096;
  Image image;
  for (uint64_t i = 0; i < kSide * kSide; ++i) {
    const uint64_t kind = hash_below(3, 1, i, 12);
    image.push_back(kind == 0   ? kNoSample
                    : kind == 1 ? kMaximumSample
                                : static_cast<uint16_t>(hash_below(3, 2, i, 65535)));
  }
  std::vector<int32_t> x, y;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint32_t range = (kSide - 6) * kUnit;
    x.push_back(static_cast<int32_t>(hash_below(4, 1, i, range)) + 2 * kUnit);
    y.push_back(static_cast<int32_t>(hash_below(4, 2, i, range)) + 2 * kUnit);
    if (i % 3 == 0) x.back() = x.back() / kUnit * kUnit;
    if (i % 5 == 0) y.back() = y.back() / kUnit * kUnit - 80;
    if (i % 7 == 0) y.back() = y.back() / kUnit * kUnit + 80;
  }
  const Vec3i by{37, -80, 0};
  const TapTable table = gain_taps();
  const MaskView view{image.data(), {kSide, kSide, 1}, &table};
  const cpu::WarpPart part{image.data(), kSide, table.at};
  for (const cpu::MatchLanes& lanes : cpu::all_match_lanes()) {
    INFO(lanes.name);
    Image got(kCount);
    lanes.warp_row(part, by, x.data(), y.data(), kCount, got.data());
    size_t wrong = 0, missing = 0;
    for (size_t i = 0; i < kCount; ++i) {
      wrong += got[i] != mask_sample(view, x[i] + by.x, y[i] + by.y) ? 1 : 0;
      missing += got[i] == kNoSample ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(missing > 100);
    CHECK(missing < 3000);
  }
}
