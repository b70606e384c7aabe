// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match_lanes.h"

#include "larch/dsa/samples.h"

namespace larch::dsa::cpu {
namespace {

void tap_row(const Taps& taps, const uint16_t* before, const uint16_t* here, const uint16_t* after,
             int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const bool counts = before[i] != kNoSample && here[i] != kNoSample && after[i] != kNoSample;
    out[i] = counts ? tap_sum(taps, before[i], here[i], after[i]) : kNoSample;
  }
}

void bin_row(const BinRule& rule, const uint16_t* contrast, const uint16_t* mask, int64_t count,
             uint16_t* bins) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t difference = int32_t{contrast[i]} - int32_t{mask[i]};
    const int32_t bin = bin_index(bin_number(difference, rule.mu, rule.shift));
    const bool counts = contrast[i] != kNoSample && mask[i] != kNoSample;
    bins[i] = counts ? static_cast<uint16_t>(bin) : kNotCounted;
  }
}

void warp_row(const WarpPart& part, const Vec3i& by, const int32_t* x_units, const int32_t* y_units,
              int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Step sx = split_step(x_units[i] + by.x), sy = split_step(y_units[i] + by.y);
    const Taps& tx = part.taps[sx.fraction + kUnit / 2];
    const Taps& ty = part.taps[sy.fraction + kUnit / 2];
    bool counts = true;
    uint32_t rows[3] = {};
    for (int j = 0; j < 3; ++j) {
      const uint16_t* at = part.samples + (sy.pixel + j - 1) * part.stride + sx.pixel - 1;
      for (int k = 0; k < 3; ++k) counts = counts && at[k] != kNoSample;
      rows[j] = tap_sum(tx, at[0], at[1], at[2]);
    }
    out[i] = counts ? tap_sum(ty, rows[0], rows[1], rows[2]) : kNoSample;
  }
}

uint32_t sum_of_squares(uint16_t* counters) {
  uint32_t sum = 0;
  for (int64_t bin = 0; bin < kBins; ++bin) {
    uint32_t h = 0;
    for (int64_t k = 0; k < kHistograms; ++k) h += counters[k * kCounters + bin];
    sum += h * h;
  }
  for (int64_t i = 0; i < kHistograms * kCounters; ++i) counters[i] = 0;
  return sum;
}

}  // namespace

const MatchLanes kPortableMatchLanes{"portable", tap_row, bin_row, warp_row, sum_of_squares};

std::span<const MatchLanes> all_match_lanes() {
#ifdef __x86_64__
  static const MatchLanes sets[] = {kPortableMatchLanes, kAvx2MatchLanes};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
#else
  return {&kPortableMatchLanes, 1};
#endif
}

const MatchLanes& match_lanes() {
  static const MatchLanes best = all_match_lanes().back();
  return best;
}

}  // namespace larch::dsa::cpu
