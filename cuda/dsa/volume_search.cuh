// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/thread_group.cuh"
#include "cuda/dsa/volume_samples.cuh"
#include "larch/dsa/match/search_math.h"

// The search of a block of a volume by a block of threads.
namespace larch::dsa::cuda {

using VolumeGroup = ThreadGroup<kVolumeWarps>;

/// Shared memory of a block of threads whose size is always the same.
struct VolumeScratch {
  GroupSums<kVolumeWarps> sums;
  Candidate best[kVolumeWarps];
};

/// A score in one word: blocks have at most 65535 voxels, sums are below 2^41.
__device__ inline uint64_t packed_score(const Score& s) {
  return s.sum << 16 | s.count;
}
__device__ inline Score unpacked_score(uint64_t p) {
  return {p >> 16, static_cast<uint32_t>(p & 0xffffu), 0};
}

/// A Block of search_math.h.
class VolumeSearch {
 public:
  /// `scores`: memory of the device for all displacements of the window.
  __device__ VolumeSearch(const VolumeArguments& a, const VolumeTile& tile, Vec3i* base,
                          uint64_t* scores, VolumeScratch& scratch)
      : a_(a),
        tile_(tile),
        samples_(a, tile, base),
        group_(scratch.sums),
        scratch_(scratch),
        scores_(scores) {}

  __device__ void search(int32_t frame, int32_t block) {
    const int64_t index = static_cast<int64_t>(frame) * a_.blocks + block;
    SearchPlan plan = a_.plan;
    plan.axes = 3;
    plan.subsearch = SubSearch::kCds;  // volumes have no lattice of fractions
    if (a_.centre != nullptr) plan.centre = a_.centre[frame];
    BlockMatch match;
    const uint32_t own = samples_.move_to(frame, block);
    match.counted = group_.sum(own);
    const Vec3i base = samples_.base_at_centre();
    if (int64_t{match.counted} * 4 < samples_.voxels()) {
      match.flags = kBlockOutside;
      match.vector = match.found = base + q16_of(plan.centre * kUnit);
    } else {
      ranking_ = a_.ranking;
      ranking_.least_count = (match.counted + 1) / 2;
      shift_ = a_.bin_shift[frame];
      mu_ = rounded_to_bins(median_at(plan.centre * kUnit), shift_);
      const Found found = search_block(*this, plan, ranking_);
      match.vector = match.found = base + found.vector;
      match.before = found.at_start;
      uint32_t beyond = 0;
      count_bins(found.units, 0, &beyond);
      group_.take_scores(1, ranking_, &match.best);
      match.overflow = group_.sum(beyond);
      match.bend = found.bend;
      match.evaluations = found.evaluations;
      if (found.at_edge) match.flags |= kBlockAtEdge;
    }
    if (threadIdx.x == 0) a_.out[index] = match;
  }

  __device__ __noinline__ void evaluate(const Vec3i* units, int count, Score* scores) {
    for (int i = 0; i < count; ++i) count_bins(units[i], i, nullptr);
    group_.take_scores(count, ranking_, scores);
  }

  __device__ __noinline__ Window window(const SearchPlan& plan, const Ranking& ranking) {
    const int32_t side = 2 * plan.range + 1, count = side * side * side;
    const auto at = [&](int32_t i) {
      return Vec3i{i % side, i / side % side, i / side / side} -
             Vec3i{plan.range, plan.range, plan.range};
    };
    if (tile_.is_on_chip) {
      score_on_chip(plan, ranking);
    } else {
      for (int32_t i = 0; i < count; ++i) {
        const Vec3i units = (plan.centre + at(i)) * kUnit;
        Score score;
        evaluate(&units, 1, &score);
        if (threadIdx.x == 0) scores_[i] = packed_score(score);
      }
    }
    __syncthreads();
    Window window;
    window.evaluations = static_cast<uint32_t>(count);
    window.at_start = unpacked_score(scores_[(plan.range * side + plan.range) * side + plan.range]);
    const int32_t own = static_cast<int32_t>(threadIdx.x) % count;
    Candidate best{at(own), unpacked_score(scores_[own])};
    for (int32_t i = own; i < count; i += kVolumeThreads) {
      const Candidate next{at(i), unpacked_score(scores_[i])};
      if (wins(next, best, ranking)) best = next;
    }
    window.best = winner(best, ranking);
    const auto score_at = [&](const Vec3i& step) {
      const int32_t row = (step.z + plan.range) * side + step.y + plan.range;
      return unpacked_score(scores_[row * side + step.x + plan.range]);
    };
    window.bend = bend_of_window(plan, ranking, window.best, static_cast<int>(threadIdx.x % 32), 32,
                                 score_at, [](int64_t v) { return warp_sum(v); });
    return window;
  }

  /// Fractions in volumes are searched by conjugate directions, which ask for no lattice.
  __device__ void fill(const Vec3i&, int, int, int, int) {}
  __device__ Score score(int, int) const { return {}; }
  __device__ int64_t similarity(int, int) const { return kNoSimilarity; }
  __device__ uint32_t filled() const { return 0; }

 private:
  __device__ void count_bins(const Vec3i& units, int histogram, uint32_t* beyond) const {
    const auto word = static_cast<uint32_t>(histogram * kBins);
    samples_.visit(units, CountScored{{word, mu_, shift_, a_.overflow}, beyond});
  }
  __device__ __noinline__ int32_t median_at(const Vec3i& units) const {
    return group_.median_difference([&](const auto& sink) { samples_.visit(units, sink); });
  }

  /// The scores of the window: each warp takes displacements of its own, one z after the other.
  __device__ void score_on_chip(const SearchPlan& plan, const Ranking& ranking) {
    const int32_t side = 2 * plan.range + 1;
    const int warp = static_cast<int>(threadIdx.x / 32);
    const auto histogram = static_cast<uint32_t>(warp * kBins);
    const bool has_gaps = samples_.load_block();
    for (int32_t z = -plan.range; z <= plan.range; ++z) {
      const bool misses = samples_.load_planes(plan.centre + Vec3i{0, 0, z}, plan.range);
      const bool is_plain =
          !misses && !has_gaps && a_.overflow == Overflow::kWrap && CountWrapped::fits(shift_);
      uint64_t* scores = scores_ + static_cast<int64_t>(z + plan.range) * side * side;
      for (int32_t i = warp; i < side * side; i += kVolumeWarps) {
        const Vec3i pixels = plan.centre + Vec3i{i % side - plan.range, i / side - plan.range, z};
        if (is_plain) {
          samples_.visit_planes(pixels, CountWrapped(histogram, mu_, shift_));
        } else {
          samples_.visit_planes(pixels, CountBins<true>{histogram, mu_, shift_, a_.overflow});
        }
        __syncwarp();
        const Score score = take_score(histogram, ranking);
        if (threadIdx.x % 32 == 0) scores[i] = packed_score(score);
        __syncwarp();
      }
    }
  }

  /// The winner of all threads' candidates.
  __device__ Candidate winner(Candidate best, const Ranking& ranking) {
    for (int step = 16; step > 0; step /= 2) {
      Candidate other;
      other.at = {__shfl_xor_sync(kAllLanes, best.at.x, step),
                  __shfl_xor_sync(kAllLanes, best.at.y, step),
                  __shfl_xor_sync(kAllLanes, best.at.z, step)};
      other.score.sum = __shfl_xor_sync(kAllLanes, best.score.sum, step);
      other.score.count = __shfl_xor_sync(kAllLanes, best.score.count, step);
      if (wins(other, best, ranking)) best = other;
    }
    if (threadIdx.x % 32 == 0) scratch_.best[threadIdx.x / 32] = best;
    __syncthreads();
    best = scratch_.best[0];
    for (int w = 1; w < kVolumeWarps; ++w) {
      if (wins(scratch_.best[w], best, ranking)) best = scratch_.best[w];
    }
    __syncthreads();
    return best;
  }

  const VolumeArguments& a_;
  const VolumeTile& tile_;
  VolumeSamples samples_;
  VolumeGroup group_;
  VolumeScratch& scratch_;
  uint64_t* scores_;
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
};

}  // namespace larch::dsa::cuda
