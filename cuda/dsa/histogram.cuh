// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_view.cuh"
#include "larch/dsa/similarity/difference_math.h"
#include "larch/dsa/similarity/rank_math.h"

// Histograms of kBins counters in shared memory. Whoever reads one leaves it cleared.
namespace larch::dsa::cuda {

/// A histogram, named by its first word of shared memory.
__device__ inline void count_in(uint32_t histogram, int32_t bin) {
  atomicAdd(&shared_words[histogram + static_cast<uint32_t>(bin)], 1u);
}

/// Clears the first histograms; all threads call it together.
__device__ inline void clear_histograms(int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count * kBins; i += kThreads) shared_words[i] = 0;
}

/// Counts the bins of differences. Without kChecked all pixels count.
template <bool kChecked>
struct CountBins {
  static constexpr bool kIsChecked = kChecked;
  uint32_t histogram;
  int32_t mu, shift;

  /// Counts a pixel that counts.
  __device__ void one(int32_t contrast, int32_t mask) const {
    count_in(histogram, bin_index(bin_number(contrast - mask, mu, shift)));
  }
};

/// The same where all pixels count, bins wrap and are 2^2 to 2^6 steps wide: the ten bits of a bin
/// are among the lower sixteen of the difference, so that neither half of a pair has to be taken
/// out of its word. Bins are in another order, which no score depends on.
struct CountWrapped {
  static constexpr bool kIsChecked = false;
  uint32_t address;       ///< of the histogram in shared memory
  uint32_t lower, upper;  ///< what is added to differences, in the lower or the upper half
  uint32_t shift;         ///< bits below those of a counter's address

  __device__ static bool fits(int32_t shift) { return shift >= 2 && shift <= 6; }
  __device__ CountWrapped(uint32_t histogram, int32_t mu, int32_t bin_shift)
      : address(static_cast<uint32_t>(__cvta_generic_to_shared(shared_words + histogram))),
        lower(static_cast<uint32_t>(((1 << bin_shift) >> 1) - mu)),
        upper(lower << 16),
        shift(static_cast<uint32_t>(bin_shift) - 2) {
    // The compiler would make them anew for each pixel.
    asm volatile("" : "+r"(address), "+r"(upper));
  }
  __device__ void count(uint32_t difference, uint32_t drop) const {
    constexpr uint32_t kBytes = 4 * (kBins - 1);
    const uint32_t counter = address + (difference >> drop & kBytes);
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(counter) : "memory");
  }
  __device__ void one(uint32_t contrast, uint32_t mask) const {
    count(contrast - mask + lower, shift);
  }
  __device__ void both(uint32_t contrast, uint32_t mask) const {
    count(contrast - mask + lower, shift);
    count(contrast - (mask & 0xffff0000u) + upper, shift + 16);
  }
};

/// CountWrapped for several histograms, the first ones, and differences times 4096: a sample of the
/// mask is the upper part of a sum of weights in Q12, which is taken from that of the contrast
/// before either is rounded down.
struct ColumnBins {
  uint32_t address;  ///< of the first histogram in shared memory
  uint32_t offset;   ///< what is added to differences
  uint32_t shift;    ///< bits below those of a counter's address

  __device__ ColumnBins(int32_t mu, int32_t bin_shift)
      : address(static_cast<uint32_t>(__cvta_generic_to_shared(shared_words))),
        offset((static_cast<uint32_t>(((1 << bin_shift) >> 1) - mu) << 12) + 4095 - 2048),
        shift(static_cast<uint32_t>(bin_shift) + 10) {}
  /// Returns what the sum of the mask is taken from: -floor(s / 4096) is floor((4095 - s) / 4096),
  /// and 2048 of s round the sample.
  __device__ uint32_t of_contrast(uint32_t contrast) const { return (contrast << 12) + offset; }
  __device__ void count(int histogram, uint32_t difference) const {
    const uint32_t counter = address + (difference >> shift & 4 * (kBins - 1));
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(counter + 4 * kBins * histogram) : "memory");
  }
};

/// CountBins, and how many differences are beyond the bins.
struct CountBinsAndOverflow {
  static constexpr bool kIsChecked = true;
  CountBins<true> bins;
  uint32_t* beyond;  ///< of this thread

  __device__ void one(int32_t contrast, int32_t mask) const {
    bins.one(contrast, mask);
    *beyond += is_overflow(bin_number(contrast - mask, bins.mu, bins.shift));
  }
};

/// Counts differences by their upper bits, all but kLowBits.
struct CountUpperBits {
  static constexpr bool kIsChecked = true;
  static constexpr int32_t kLowBits = 7;
  uint32_t histogram;
  __device__ void one(int32_t contrast, int32_t mask) const {
    count_in(histogram, (contrast - mask + kNoSample) >> kLowBits);
  }
};
/// Counts those of the same upper bits by their lower ones.
struct CountLowerBits {
  static constexpr bool kIsChecked = true;
  uint32_t histogram;
  int32_t upper;
  __device__ void one(int32_t contrast, int32_t mask) const {
    const int32_t value = contrast - mask + kNoSample;
    if (value >> CountUpperBits::kLowBits == upper) {
      count_in(histogram, value & ((1 << CountUpperBits::kLowBits) - 1));
    }
  }
};

__device__ inline uint64_t warp_sum(uint64_t v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}

__device__ inline int64_t warp_sum(int64_t v) {
  return static_cast<int64_t>(warp_sum(static_cast<uint64_t>(v)));
}

/// The sum of what all threads have; they call it together.
__device__ inline uint64_t block_sum(uint64_t own) {
  __shared__ uint64_t sums[kWarps];
  own = warp_sum(own);
  __syncthreads();  // others may still read the sums before
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = own;
  __syncthreads();
  uint64_t sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += sums[w];
  return sum;
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

/// Returns the score of a warp's own histogram, in all of its lanes; clears it.
__device__ inline Score take_score(uint32_t histogram, const Ranking& ranking) {
  auto* entries = reinterpret_cast<uint4*>(shared_words + histogram) + threadIdx.x % 32;
  Score score;
  uint32_t count = 0;
  if (ranking.metric == Metric::kEhd) {
    uint32_t squares = 0;  // of at most 65535 entries: below 2^32
#pragma unroll
    for (int i = 0; i < kBins / 128; ++i) {
      const uint4 h = entries[32 * i];
      entries[32 * i] = make_uint4(0, 0, 0, 0);
      count += h.x + h.y + h.z + h.w;
      squares += h.x * h.x + h.y * h.y + h.z * h.z + h.w * h.w;
    }
    score.sum = __reduce_add_sync(kAllLanes, squares);
  } else {
    uint64_t sum = 0;
#pragma unroll
    for (int i = 0; i < kBins / 128; ++i) {
      add_terms(entries[32 * i], ranking, sum, count);
      entries[32 * i] = make_uint4(0, 0, 0, 0);
    }
    score.sum = warp_sum(sum);
  }
  score.count = __reduce_add_sync(kAllLanes, count);
  return score;
}

struct Rank {
  int32_t bin;
  uint32_t below;  ///< entries of the bins before
};

/// Returns the bin that holds entry `rank` (0 for the first) of a histogram; the same for all
/// lanes.
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

/// Returns the lower median of differences, by their upper bits first; 0 of none. All threads call
/// it together; visit(sink) gives a sink the differences of a thread. The first two histograms are
/// empty before and after.
template <class Visit>
__device__ int32_t median_of(const Visit& visit) {
  static_assert(kThreads == kBins / 4);
  visit(CountUpperBits{0});
  __syncthreads();
  const uint4 own = reinterpret_cast<const uint4*>(shared_words)[threadIdx.x];
  const auto count = static_cast<uint32_t>(block_sum(own.x + own.y + own.z + own.w));
  if (count == 0) return 0;
  const uint32_t rank = (count - 1) / 2;
  const Rank upper = find_rank(shared_words, rank);
  visit(CountLowerBits{kBins, upper.bin});
  __syncthreads();
  const Rank lower = find_rank(shared_words + kBins, rank - upper.below);
  __syncthreads();
  clear_histograms(2);
  __syncthreads();
  return (upper.bin << CountUpperBits::kLowBits) + lower.bin - kNoSample;
}

}  // namespace larch::dsa::cuda
