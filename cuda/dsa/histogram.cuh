// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_view.cuh"
#include "larch/dsa/match/difference_math.h"
#include "larch/dsa/match/rank_math.h"

// Histograms of kBins counters in shared memory. Whoever reads one leaves it cleared.
namespace larch::dsa::cuda {

/// Counts the bins of differences. Without kChecked all pixels count.
template <Overflow kOverflow, bool kChecked>
struct CountBins {
  uint32_t* histogram;
  int32_t mu, shift;

  __device__ void operator()(int32_t contrast, int32_t mask) const {
    if (kChecked && (contrast == kNoSample || mask == kNoSample)) return;
    const int32_t number = bin_number(contrast - mask, mu, shift);
    if (kOverflow == Overflow::kWrap) {
      // Which bin is the first does not matter.
      atomicAdd(histogram + (number & (kBins - 1)), 1u);
      return;
    }
    const int32_t index = bin_index(number, kOverflow);
    if (index >= 0) atomicAdd(histogram + index, 1u);
  }
};

/// Counts differences by their bits above the lowest `low` ones; or those of which these are `high`
/// (if it is not below 0) by the lowest.
struct CountDigits {
  uint32_t* histogram;
  int32_t low, high;

  __device__ void operator()(int32_t contrast, int32_t mask) const {
    if (contrast == kNoSample || mask == kNoSample) return;
    const int32_t value = contrast - mask + kNoSample;
    if (high < 0) {
      atomicAdd(histogram + (value >> low), 1u);
    } else if (value >> low == high) {
      atomicAdd(histogram + (value & ((1 << low) - 1)), 1u);
    }
  }
};

__device__ inline uint64_t warp_sum(uint64_t v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}

/// The terms that a score sums of four entries.
__device__ inline void add_terms(const uint4& h, const Ranking& ranking, uint64_t& sum,
                                 uint32_t& count) {
  count += h.x + h.y + h.z + h.w;
  if (ranking.metric == Metric::kEhd) {
    sum += static_cast<uint64_t>(h.x * h.x) + h.y * h.y +
           (static_cast<uint64_t>(h.z * h.z) + h.w * h.w);
    return;
  }
  const uint32_t entries[4] = {h.x, h.y, h.z, h.w};
#pragma unroll
  for (const uint32_t entry : entries) {
    if (entry > 1) sum += ranking.terms[entry];
  }
}

/// The score of a warp's own histogram, in all of its lanes; clears it.
__device__ inline Score take_score(uint32_t* histogram, const Ranking& ranking) {
  auto* entries = reinterpret_cast<uint4*>(histogram) + threadIdx.x % 32;
  uint64_t sum = 0;
  uint32_t count = 0;
#pragma unroll
  for (int i = 0; i < kBins / 128; ++i) {
    add_terms(entries[32 * i], ranking, sum, count);
    entries[32 * i] = make_uint4(0, 0, 0, 0);
  }
  Score score;
  score.sum = warp_sum(sum);
  score.count = __reduce_add_sync(kAllLanes, count);
  return score;
}

struct Rank {
  int32_t bin;
  uint32_t below;  ///< entries of the bins before
};

/// The bin that holds entry `rank` (0 for the first) of a histogram; the same for all lanes.
__device__ inline Rank find_rank(const uint32_t* histogram, uint32_t rank) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto inclusive = [&](uint32_t v) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(kAllLanes, v, step);
      if (lane >= step) v += other;
    }
    return v;
  };
  constexpr int kPart = kBins / 32;
  uint32_t own = 0;
  for (int i = 0; i < kPart; ++i) own += histogram[lane * kPart + (i + lane) % kPart];
  const uint32_t up_to = inclusive(own);
  const int part = __ffs(static_cast<int>(__ballot_sync(kAllLanes, up_to > rank))) - 1;
  const uint32_t before = __shfl_sync(kAllLanes, up_to - own, part);
  const uint32_t entry = histogram[part * kPart + lane];
  const uint32_t within = before + inclusive(entry);
  const int place = __ffs(static_cast<int>(__ballot_sync(kAllLanes, within > rank))) - 1;
  return {part * kPart + place, __shfl_sync(kAllLanes, within - entry, place)};
}

}  // namespace larch::dsa::cuda
