// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_samples.cuh"
#include "cuda/dsa/histogram.cuh"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/search_math.h"

// The search of a block on one multiprocessor: a block of threads owns it from the first
// displacement to the last, and samples are all that is read from the device's memory.
namespace larch::dsa::cuda {

/// Returns a score in one word: blocks have at most 65535 pixels, sums are below 2^41.
__device__ inline uint64_t packed(const Score& s) {
  return s.sum << 16 | s.count;
}
__device__ inline Score unpacked(uint64_t p) {
  return {p >> 16, static_cast<uint32_t>(p & 0xffffu), 0};
}
constexpr uint64_t kUnknown = ~uint64_t{0};

/// Shared memory of a block of threads whose size is always the same.
struct Scratch {
  Candidate best[kWarps];
  uint32_t ticket;
};

template <class Samples>
class BlockSearch {
 public:
  __device__ BlockSearch(const MatchArguments& a, Samples& samples, uint64_t* scores,
                         const SharedPlan& plan, Scratch& scratch)
      : a_(a),
        samples_(samples),
        scratch_(scratch),
        scores_(scores),
        similarities_(reinterpret_cast<int64_t*>(shared_words + plan.similarities)) {}

  /// False: its samples do not fit (see there), and nothing was written.
  __device__ bool search(int32_t frame, int32_t block) {
    const int64_t index = static_cast<int64_t>(frame) * a_.blocks + block;
    SearchPlan plan{{}, a_.range, 2};
    if (a_.centre != nullptr) plan.centre = a_.centre[frame];
    BlockMatch match;
    const Vec3i base = samples_.base_at_centre(frame, block);
    match.counted = static_cast<uint32_t>(block_sum(samples_.move_to(frame, block)));
    if (int64_t{match.counted} * 4 < static_cast<int64_t>(a_.block.x) * a_.block.y) {
      match.flags = kBlockOutside;
      match.vector = match.found = base + q16_of(plan.centre * kUnit);
    } else {
      ranking_ = a_.ranking;
      ranking_.least_count = (match.counted + 1) / 2;
      samples_.prepare(plan.centre, plan.range, match.counted);
      if (!samples_.fits()) return false;
      shift_ = a_.bin_shift[frame];
      mu_ = median_of_bins(plan.centre * kUnit);
      forget_lattice();
      const Found found = search_block(*this, plan, ranking_);
      match.vector = match.found = base + found.vector;
      match.before = found.at_start;
      match.best = final_score(found.units, &match.overflow);
      match.bend = found.bend;
      if (found.at_edge) match.flags |= kBlockAtEdge;
    }
    if (threadIdx.x == 0) a_.out[index] = match;
    return true;
  }

  /// Finds the best displacement, as search_block asks for it. All threads call it together, as all
  /// functions of this class; each warp takes displacements of its own.
  __device__ __noinline__ Found window(const SearchPlan& plan, const Ranking& ranking) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int32_t side = 2 * plan.range + 1, count = side * side;
    const auto at = [&](int32_t i) {
      return Vec3i{i % side - plan.range, i / side - plan.range, 0};
    };
    const uint32_t histogram = threadIdx.x / 32 * kBins;
    if (counts_columns()) {
      score_columns(plan, ranking);
    } else {
      for (int32_t i = warp; i < count; i += kWarps) {
        count_bins((plan.centre + at(i)) * kUnit, histogram, 0, a_.block.y);
        __syncwarp();
        const uint64_t score = packed(take_score(histogram, ranking));
        if (threadIdx.x % 32 == 0) scores_[i] = score;
        __syncwarp();
      }
    }
    __syncthreads();
    Found window;
    window.at_start = unpacked(scores_[plan.range * side + plan.range]);
    Candidate best{at(static_cast<int32_t>(threadIdx.x) % count), {}};
    best.score = unpacked(scores_[threadIdx.x % static_cast<uint32_t>(count)]);
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kThreads) {
      const Candidate next{at(i), unpacked(scores_[i])};
      if (wins(next, best, ranking)) best = next;
    }
    window.whole = winner(best, ranking);
    window.at_edge = is_at_edge(window.whole.at, plan.range);
    const auto score_at = [&](const Vec3i& step) {
      return unpacked(scores_[(step.y + plan.range) * side + step.x + plan.range]);
    };
    window.bend = bend_of_window(plan, ranking, window.whole, static_cast<int>(threadIdx.x % 32),
                                 32, score_at, [](int64_t v) { return warp_sum(v); });
    forget_lattice();
    return window;
  }

  __device__ __noinline__ void fill(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    if (counts_columns()) {
      fill_columns(origin, x0, y0, x1, y1);
      return;
    }
    samples_.reach({origin.x + 1, origin.y, 0});  // between pixels from here on
    if (threadIdx.x == 0) scratch_.ticket = 0;
    __syncthreads();
    const int width = x1 - x0 + 1, count = width * (y1 - y0 + 1);
    const uint32_t histogram = threadIdx.x / 32 * kBins;
    for (;;) {
      uint32_t ticket = 0;
      if (threadIdx.x % 32 == 0) ticket = atomicAdd(&scratch_.ticket, 1u);
      const int i = static_cast<int>(__shfl_sync(kAllLanes, ticket, 0));
      if (i >= count) break;
      const int x = x0 + i % width, y = y0 + i / width;
      const int place = place_of(x, y);
      const Vec3i units = origin + Vec3i{x, y, 0} * kTenth;
      if (scores_[place] != kUnknown) continue;
      count_bins(units, histogram, 0, a_.block.y);
      __syncwarp();
      const Score score = take_score(histogram, ranking_);
      if (threadIdx.x % 32 == 0) keep(place, score);
      __syncwarp();
    }
    __syncthreads();
  }
  __device__ Score score(int x, int y) const { return unpacked(scores_[place_of(x, y)]); }
  __device__ int64_t similarity(int x, int y) const { return similarities_[place_of(x, y)]; }

 private:
  __device__ static int place_of(int x, int y) {
    return (y + kLatticeReach) * kLatticeSide + x + kLatticeReach;
  }
  __device__ int32_t first_row(int warp) const { return a_.block.y * warp / kWarps; }

  __device__ void keep(int place, const Score& score) {
    scores_[place] = packed(score);
    similarities_[place] = ranking_.similarity(score);
  }

  /// Tells whether the samples of displacements below one another are counted at once.
  __device__ bool counts_columns() const {
    return Samples::kHasColumns && !samples_.is_checked() && CountWrapped::fits(shift_);
  }
  /// Calls keep(i, score) for `count` displacements from `units` on, each `step` below the one
  /// before; a warp takes a score.
  template <class Keep>
  __device__ void score_column(const Vec3i& units, int count, int32_t step, const Ranking& ranking,
                               const Keep& keep) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    if constexpr (Samples::kHasColumns) {
      samples_.visit_column(units, count, step, first_row(warp), first_row(warp + 1),
                            ColumnBins(mu_, shift_));
    }
    __syncthreads();
    if (warp < count) {
      const Score score = take_score(threadIdx.x / 32 * kBins, ranking);
      if (threadIdx.x % 32 == 0) keep(warp, score);
    }
    __syncthreads();
  }
  /// The scores of all displacements of the window.
  __device__ void score_columns(const SearchPlan& plan, const Ranking& ranking) {
    const int32_t side = 2 * plan.range + 1;
    for (int32_t x = 0; x < side; ++x) {
      for (int32_t y = 0; y < side; y += kWarps) {
        const Vec3i units = (plan.centre + Vec3i{x - plan.range, y - plan.range, 0}) * kUnit;
        score_column(units, min(side - y, kWarps), kUnit, ranking, [&](int i, const Score& score) {
          scores_[(y + i) * side + x] = packed(score);
        });
      }
    }
  }
  /// Makes scores of the lattice known, column by column.
  __device__ void fill_columns(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    for (int x = x0; x <= x1; ++x) {
      const auto is_unknown = [&](int y) { return scores_[place_of(x, y)] == kUnknown; };
      for (int y = y0; y <= y1;) {
        int count = 0;
        while (y + count <= y1 && is_unknown(y + count)) ++count;
        if (count > kWarps) count = min((count + 1) / 2, kWarps);
        if (count == 0) {
          ++y;
          continue;
        }
        score_column(origin + Vec3i{x, y, 0} * kTenth, count, kTenth, ranking_,
                     [&](int i, const Score& score) { this->keep(place_of(x, y + i), score); });
        y += count;
      }
    }
  }

  /// A warp counts the bins of some rows.
  __device__ void count_bins(const Vec3i& units, uint32_t histogram, int32_t first, int32_t last) {
    if constexpr (!Samples::kNeverUnchecked) {
      if (!samples_.is_checked() && CountWrapped::fits(shift_)) {
        samples_.visit(units, first, last, CountWrapped(histogram, mu_, shift_));
        return;
      }
    }
    samples_.visit(units, first, last, CountBins<true>{histogram, mu_, shift_});
  }

  /// The score at a displacement, for the first warp, and how many pixels are beyond the bins
  /// there.
  __device__ __noinline__ Score final_score(const Vec3i& units, uint32_t* overflow) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    uint32_t beyond = 0;
    samples_.reach(units);
    samples_.visit(units, first_row(warp), first_row(warp + 1),
                   CountBinsAndOverflow{{0, mu_, shift_}, &beyond});
    __syncthreads();
    Score score;
    if (warp == 0) score = take_score(0, ranking_);
    *overflow = static_cast<uint32_t>(block_sum(beyond));
    return score;
  }

  /// Returns the lower median of differences at a displacement, rounded to bins.
  __device__ __noinline__ int32_t median_of_bins(const Vec3i& units) {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const auto visit = [&](const auto& sink) {
      samples_.visit(units, first_row(warp), first_row(warp + 1), sink);
    };
    return rounded_to_bins(median_of(visit), shift_);
  }

  /// Returns the winner of all threads' candidates.
  __device__ Candidate winner(Candidate best, const Ranking& ranking) {
    for (int step = 16; step > 0; step /= 2) {
      Candidate other;
      other.at = {__shfl_xor_sync(kAllLanes, best.at.x, step),
                  __shfl_xor_sync(kAllLanes, best.at.y, step), 0};
      other.score.sum = __shfl_xor_sync(kAllLanes, best.score.sum, step);
      other.score.count = __shfl_xor_sync(kAllLanes, best.score.count, step);
      if (wins(other, best, ranking)) best = other;
    }
    if (threadIdx.x % 32 == 0) scratch_.best[threadIdx.x / 32] = best;
    __syncthreads();
    best = scratch_.best[0];
    for (int w = 1; w < kWarps; ++w) {
      if (wins(scratch_.best[w], best, ranking)) best = scratch_.best[w];
    }
    __syncthreads();
    return best;
  }

  /// Scores of the window and those of the lattice share their memory.
  __device__ void forget_lattice() {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kLatticeSide * kLatticeSide; i += kThreads) {
      scores_[i] = kUnknown;
    }
    __syncthreads();
  }

  const MatchArguments& a_;
  Samples& samples_;
  Scratch& scratch_;
  uint64_t* scores_;
  int64_t* similarities_;
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
};

}  // namespace larch::dsa::cuda
