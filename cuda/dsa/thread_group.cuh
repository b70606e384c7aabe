// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/histogram.cuh"
#include "larch/dsa/match/search_math.h"

// What a block of threads counts together, for searches in which every displacement is evaluated by
// all of its threads. All of them call these functions with the same arguments and get the same
// answers, but for their own counts. Histograms are those of histogram.cuh, the first ones of
// shared memory, and empty before and after.
namespace larch::dsa::cuda {

/// Histograms that are counted at once at most.
constexpr int kGroupHistograms = 4;

/// Shared memory in which warps exchange what each has summed.
template <int kGroupWarps>
struct GroupSums {
  uint64_t sums[kGroupHistograms][kGroupWarps];
  uint32_t counts[kGroupHistograms][kGroupWarps];
};

/// A block of threads of at least kBins / 4.
template <int kGroupWarps>
class ThreadGroup {
 public:
  static constexpr int kThreads = 32 * kGroupWarps;
  static_assert(kThreads >= kBins / 4);

  __device__ explicit ThreadGroup(GroupSums<kGroupWarps>& shared) : shared_(shared) {}

  __device__ void clear(int histograms) const {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < histograms * kBins; i += kThreads) {
      shared_words[i] = 0;
    }
    __syncthreads();
  }

  /// The sum of what each thread has.
  __device__ uint32_t sum(uint32_t own) const {
    own = __reduce_add_sync(kAllLanes, own);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared_.counts[0][threadIdx.x / 32] = own;
    __syncthreads();
    uint32_t all = 0;
    for (int w = 0; w < kGroupWarps; ++w) all += shared_.counts[0][w];
    __syncthreads();
    return all;
  }

  /// The scores of the first `count` histograms, which become empty. Entries may be of any size.
  __device__ void take_scores(int count, const Ranking& ranking, Score* scores) const {
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      uint64_t sum = 0;
      uint32_t counted = 0;
      if (threadIdx.x < kBins / 4) {
        auto* entries = reinterpret_cast<uint4*>(shared_words + i * kBins) + threadIdx.x;
        add_wide_terms(*entries, ranking, sum, counted);
        *entries = make_uint4(0, 0, 0, 0);
      }
      sum = warp_sum(sum);
      counted = __reduce_add_sync(kAllLanes, counted);
      if (threadIdx.x % 32 == 0) {
        shared_.sums[i][threadIdx.x / 32] = sum;
        shared_.counts[i][threadIdx.x / 32] = counted;
      }
    }
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      Score total;
      for (int w = 0; w < kGroupWarps; ++w) {
        total.sum += shared_.sums[i][w];
        total.count += shared_.counts[i][w];
      }
      scores[i] = total;
    }
    __syncthreads();
  }

  /// The lower median of differences; 0 if there are none. `visit(sink)` calls sink(contrast, mask)
  /// for all pairs of pixels, each thread for some of them. By the upper bits of differences first.
  template <class Visit>
  __device__ int32_t median_difference(const Visit& visit) const {
    visit(CountUpperBits{0});
    __syncthreads();
    uint32_t own = 0;
    if (threadIdx.x < kBins / 4) {
      const uint4 entries = reinterpret_cast<const uint4*>(shared_words)[threadIdx.x];
      own = entries.x + entries.y + entries.z + entries.w;
    }
    const uint32_t count = sum(own);
    if (count == 0) return 0;  // for all threads: the histogram is empty
    const uint32_t rank = (count - 1) / 2;
    const Rank upper = find_rank(shared_words, rank);
    visit(CountLowerBits{kBins, upper.bin});
    __syncthreads();
    const Rank lower = find_rank(shared_words + kBins, rank - upper.below);
    clear(2);
    return (upper.bin << CountUpperBits::kLowBits) + lower.bin - kNoSample;
  }

 private:
  /// add_terms for entries above 65535 too.
  __device__ static void add_wide_terms(const uint4& h, const Ranking& ranking, uint64_t& sum,
                                        uint32_t& count) {
    const uint32_t entries[4] = {h.x, h.y, h.z, h.w};
#pragma unroll
    for (const uint32_t entry : entries) {
      count += entry;
      if (ranking.metric == Metric::kEhd) {
        sum += static_cast<uint64_t>(entry) * entry;
      } else if (entry > 1) {
        sum += ranking.terms[entry];
      }
    }
  }

  GroupSums<kGroupWarps>& shared_;
};

/// Counts what CountBins counts, and differences beyond the bins where `beyond` is given.
struct CountScored {
  static constexpr bool kIsChecked = true;
  CountBins<true> bins;
  uint32_t* beyond;  ///< of this thread; null: not asked for

  __device__ void operator()(uint32_t contrast, uint32_t mask) const {
    if (beyond != nullptr) {
      CountBinsAndOverflow{bins, beyond}(contrast, mask);
    } else {
      bins(contrast, mask);
    }
  }
};

}  // namespace larch::dsa::cuda
