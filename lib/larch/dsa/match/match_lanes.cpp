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
    const int32_t bin = bin_index(bin_number(difference, rule.mu, rule.shift), rule.overflow);
    const bool counts = contrast[i] != kNoSample && mask[i] != kNoSample && bin >= 0;
    bins[i] = counts ? static_cast<uint16_t>(bin) : kNotCounted;
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

const MatchLanes kPortableMatchLanes{"portable", tap_row, bin_row, sum_of_squares};

}  // namespace larch::dsa::cpu
