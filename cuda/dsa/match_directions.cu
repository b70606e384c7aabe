// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/dsa/directions_search.cuh"
#include "cuda/dsa/histogram.cuh"
#include "cuda/dsa/match_directions.cuh"

// Conjugate directions. The search itself is one of few steps that depend on each other, so that
// the first warp alone takes them; all warps evaluate. Both meet at the same barriers, once per
// question and once per answer.
namespace larch::dsa::cuda {
namespace {

constexpr int kGroup = 128;  ///< threads that own a block
constexpr int kGroupWarps = kGroup / 32;
constexpr int kResident = 6;  ///< groups that a multiprocessor is to hold
constexpr int kRows = 4;      ///< short loops: these warps do different things at a time

/// What the warps of a group tell one another.
struct Shared {
  Question question;
  bool goes_on;
  uint32_t counted, beyond;
  int32_t mu;
  bool has_median;
};

template <Overflow kOverflow, Metric kMetric>
class DirectionsBlock {
 public:
  __device__ DirectionsBlock(const MatchArguments& a, const SharedPlan& plan, Shared& shared)
      : a_(a), samples_(a, plan), shared_(shared) {}

  __device__ void search(int32_t frame, int32_t block) {
    if (threadIdx.x == 0) shared_.counted = shared_.beyond = 0;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * kBins; i += kGroup) shared_words[i] = 0;
    __syncthreads();
    const int64_t index = static_cast<int64_t>(frame) * a_.blocks + block;
    SearchPlan plan = a_.plan;
    plan.axes = 2;
    if (a_.centre != nullptr) plan.centre = a_.centre[frame];
    BlockMatch match;
    match.counted = sum_in(&shared_.counted, samples_.move_to(frame, block));
    if (int64_t{match.counted} * 4 < static_cast<int64_t>(a_.block.x) * a_.block.y) {
      match.flags = kBlockOutside;
      match.vector = match.found = q16_of(plan.centre * kUnit);
    } else {
      find(plan, a_.bin_shift[frame], match);
    }
    if (threadIdx.x == 0) a_.out[index] = match;
  }

 private:
  __device__ bool leads() const { return threadIdx.x < 32; }
  __device__ int32_t first_row() const { return row_of(static_cast<int32_t>(threadIdx.x / 32)); }
  __device__ int32_t last_row() const { return row_of(static_cast<int32_t>(threadIdx.x / 32) + 1); }
  __device__ int32_t row_of(int32_t warp) const { return a_.block.y * warp / kGroupWarps; }

  /// The sum over all threads; `total` is 0 before.
  __device__ uint32_t sum_in(uint32_t* total, uint32_t v) {
    v = __reduce_add_sync(kAllLanes, v);
    if (threadIdx.x % 32 == 0) atomicAdd(total, v);
    __syncthreads();
    return *total;
  }

  __device__ void find(const SearchPlan& plan, int32_t bin_shift, BlockMatch& match) {
    samples_.prepare(plan.centre, plan.range, match.counted);
    shift_ = bin_shift;
    mu_ = median_of_bins(plan.centre * kUnit);
    Ranking ranking = a_.ranking;
    ranking.metric = kMetric;
    ranking.least_count = (match.counted + 1) / 2;
    DirectionsSearch search(plan, ranking);
    Question question{};
    for (bool is_first = true;; is_first = false) {
      if (leads()) {
        if (!is_first) {
          Score scores[2] = {};
          if (question.asks[0]) scores[0] = take_score(0, ranking);
          if (question.asks[1]) scores[1] = take_score(kBins, ranking);
          search.take(scores[0], scores[1], question);
        }
        const bool goes_on = search.ask(question);
        if (!goes_on) question.units[0] = search.found().units;
        if (threadIdx.x == 0) {
          shared_.question = question;
          shared_.goes_on = goes_on;
        }
      }
      __syncthreads();
      question = shared_.question;
      if (!shared_.goes_on) break;
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        const Vec3i units = i == 0 ? question.units[0] : question.units[1];
        if (!(i == 0 ? question.asks[0] : question.asks[1])) continue;
        samples_.reach(units);
        count_bins(units, i * kBins);
      }
      __syncthreads();
    }
    match.overflow = beyond_at(question.units[0]);
    const Found& found = search.found();
    match.vector = match.found = found.vector;
    match.before = found.at_start;
    match.best = search.score();
    match.evaluations = found.evaluations;
    if (found.at_edge) match.flags |= kBlockAtEdge;
  }

  /// A warp counts the bins of its rows.
  __device__ void count_bins(const Vec3i& units, uint32_t histogram) {
    if (!samples_.is_checked()) {
      if constexpr (kOverflow == Overflow::kClamp) {
        samples_.visit(units, first_row(), last_row(), CountClamped(histogram, mu_, shift_));
        return;
      } else if (CountWrapped::fits(shift_)) {
        samples_.visit(units, first_row(), last_row(), CountWrapped(histogram, mu_, shift_));
        return;
      }
    }
    samples_.visit(units, first_row(), last_row(),
                   CountBins<true>{histogram, mu_, shift_, kOverflow});
  }

  __device__ uint32_t beyond_at(const Vec3i& units) {
    samples_.reach(units);
    uint32_t beyond = 0;
    samples_.visit(units, first_row(), last_row(), CountBeyond{mu_, shift_, &beyond});
    return sum_in(&shared_.beyond, beyond);
  }

  /// The lower median of differences at whole pixels, rounded to bins: that of the numbers of their
  /// bins. Bins around that of the pixel in the middle are counted first; where the median is not
  /// among them, it is sought among all differences.
  __device__ int32_t median_of_bins(const Vec3i& units) {
    const int32_t middle = rounded_to_bins(samples_.middle_difference(units), shift_);
    if (samples_.is_checked()) {
      samples_.visit_at_whole(units, first_row(), last_row(),
                              CountBins<true>{0, middle, shift_, Overflow::kClamp});
    } else {
      samples_.visit_at_whole(units, first_row(), last_row(), CountClamped(0, middle, shift_));
    }
    __syncthreads();
    if (leads()) find_median(middle);
    __syncthreads();
    clear(0);
    const bool has_median = shared_.has_median;
    int32_t mu = shared_.mu;
    __syncthreads();
    if (!has_median) mu = rounded_to_bins(median_difference(units), shift_);
    return mu;
  }
  /// From the bins around `middle`.
  __device__ void find_median(int32_t middle) {
    const uint32_t count = total_of(0);
    Rank found{kBins / 2, 0};
    if (count > 0) found = find_rank(shared_words, (count - 1) / 2);
    if (threadIdx.x != 0) return;
    shared_.has_median = found.bin > 0 && found.bin < kBins - 1;
    shared_.mu = count == 0 ? 0 : middle + (found.bin - kBins / 2) * (1 << shift_);
  }
  /// Entries of a histogram; for a warp.
  __device__ static uint32_t total_of(uint32_t histogram) {
    const auto* entries = reinterpret_cast<const uint4*>(shared_words + histogram);
    uint32_t count = 0;
    for (uint32_t i = threadIdx.x % 32; i < kBins / 4; i += 32) {
      const uint4 h = entries[i];
      count += h.x + h.y + h.z + h.w;
    }
    return __reduce_add_sync(kAllLanes, count);
  }
  __device__ static void clear(uint32_t histogram) {
    auto* entries = reinterpret_cast<uint4*>(shared_words + histogram);
    for (uint32_t i = threadIdx.x; i < kBins / 4; i += kGroup) entries[i] = make_uint4(0, 0, 0, 0);
  }

  /// The lower median of all differences; by the upper bits first.
  __device__ int32_t median_difference(const Vec3i& units) {
    samples_.visit_at_whole(units, first_row(), last_row(), CountUpperBits{0});
    __syncthreads();
    const uint32_t rank = (total_of(0) - 1) / 2;
    const Rank upper = find_rank(shared_words, rank);
    samples_.visit_at_whole(units, first_row(), last_row(), CountLowerBits{kBins, upper.bin});
    __syncthreads();
    const Rank lower = find_rank(shared_words + kBins, rank - upper.below);
    __syncthreads();
    clear(0);
    clear(kBins);
    __syncthreads();
    return (upper.bin << CountUpperBits::kLowBits) + lower.bin - kNoSample;
  }

  const MatchArguments& a_;
  TileSamples<true, kGroup, kRows> samples_;
  Shared& shared_;
  int32_t mu_ = 0, shift_ = 0;
};

/// One group of threads for each block of each frame.
template <Overflow kOverflow, Metric kMetric>
__global__ void __launch_bounds__(kGroup, kResident)
    directions_kernel(const __grid_constant__ MatchArguments a,
                      const __grid_constant__ SharedPlan plan) {
  __shared__ Shared shared;
  DirectionsBlock<kOverflow, kMetric> block(a, plan, shared);
  const auto blocks = static_cast<uint32_t>(a.blocks);
  block.search(static_cast<int32_t>(blockIdx.x / blocks),
               static_cast<int32_t>(blockIdx.x % blocks));
}

/// Shared memory that a block and its part of the mask take; histograms first.
SharedPlan plan_of(const MatchArguments& a) {
  SharedPlan plan;
  plan.histograms = 2;
  plan.contrast = 2 * kBins;
  plan.pairs = (a.block.x + 1) / 2;
  while (plan.lanes_log2 > 2 && (1 << (plan.lanes_log2 - 1)) >= plan.pairs) --plan.lanes_log2;
  plan.pair_words = kUsualPairs;
  plan.mask_words = kUsualMaskWords;
  plan.mask_height = a.block.y + 2 * (a.plan.range + kMargin);
  plan.mask = plan.contrast + static_cast<uint32_t>(kUsualPairs * a.block.y);
  // The walk over pairs of columns reads up to two words behind the last row.
  plan.words = plan.mask + static_cast<uint32_t>(kUsualMaskWords * plan.mask_height) + 4;
  return plan;
}

template <Overflow kOverflow, Metric kMetric>
void launch(const MatchArguments& a, const Device& device) {
  const SharedPlan plan = plan_of(a);
  const size_t bytes = plan.words * sizeof(uint32_t);
  const auto kernel = directions_kernel<kOverflow, kMetric>;
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
  kernel<<<static_cast<uint32_t>(a.items), kGroup, bytes, larch::cuda::stream_of(device)>>>(a,
                                                                                            plan);
  larch::cuda::check_launch("dsa directions_kernel");
}

template <Overflow kOverflow>
void launch(const MatchArguments& a, const Device& device) {
  if (a.ranking.metric == Metric::kEhd) {
    launch<kOverflow, Metric::kEhd>(a, device);
  } else {
    launch<kOverflow, Metric::kEntropy>(a, device);
  }
}

}  // namespace

bool can_match_directions(const MatchArguments& a) {
  const SearchPlan& plan = a.plan;
  const bool searches = plan.search == Search::kCds &&
                        (plan.subpixel == SubPixel::kNone || plan.subsearch == SubSearch::kCds);
  if (!searches || a.base.vectors != nullptr || a.overflow == Overflow::kDiscard) return false;
  constexpr int32_t kMostRows = 512;  // with their mask they fit into 48 + 150 KiB
  const int32_t around = 2 * (plan.range + kMargin);
  return (a.block.x + 1) / 2 <= kUsualPairs && (a.block.x + around + 3) / 2 <= kUsualMaskWords &&
         a.block.y <= kMostRows;
}

void match_directions(const MatchArguments& a, const Device& device) {
  if (a.overflow == Overflow::kWrap) {
    launch<Overflow::kWrap>(a, device);
  } else {
    launch<Overflow::kClamp>(a, device);
  }
}

}  // namespace larch::dsa::cuda
