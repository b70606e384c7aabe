// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/core/check.cuh"
#include "cuda/dsa/block_search.cuh"

// What kernels that search blocks by BlockSearch share: what is known of a search when it is
// compiled, and where its parts lie in shared memory.
namespace larch::dsa::cuda {

__device__ inline void clear_all_histograms(const SharedPlan& plan) {
  const int words = plan.histograms * kBins;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) shared_words[i] = 0;
}
__device__ inline uint64_t* scores_of(const SharedPlan& plan) {
  return reinterpret_cast<uint64_t*>(shared_words + plan.scores);
}
__device__ inline int64_t* similarities_of(const SharedPlan& plan) {
  return plan.similarities == 0 ? nullptr
                                : reinterpret_cast<int64_t*>(shared_words + plan.similarities);
}

/// Searches of any kind.
struct AnyKind {
  static constexpr bool kIsUsual = false;
  static constexpr int kResident = 3;  ///< blocks of threads that a multiprocessor is to hold
  __device__ static Overflow overflow(const MatchArguments& a) { return a.overflow; }
  __device__ static void narrow(SearchPlan&) {}
};
/// All whole pixels, then a fit: what is not needed for it is left out.
struct FitKind {
  static constexpr bool kIsUsual = true;
  static constexpr int kResident = 3;
  __device__ static Overflow overflow(const MatchArguments&) { return Overflow::kWrap; }
  __device__ static void narrow(SearchPlan& plan) {
    plan.axes = 2;
    plan.search = Search::kFull;
    plan.subsearch = SubSearch::kFit;
  }
};

inline bool searches_lattice(const SearchPlan& plan) {
  const bool samples = plan.subpixel == SubPixel::kGain || plan.subpixel == SubPixel::kLinear;
  return samples && plan.subsearch != SubSearch::kCds;
}

constexpr int64_t kLatticeScores = kLatticeSide * kLatticeSide;

/// Scores that are kept at a time: those of the window, then those of the lattice.
inline int64_t scores_needed(const SearchPlan& plan) {
  const int64_t side = 2 * plan.range + 1;
  return std::max(plan.search == Search::kFull ? side * side : 1,
                  searches_lattice(plan) ? kLatticeScores : 1);
}

/// Parts of shared memory, one behind the other.
class Layout {
 public:
  /// The first word of so many words; of 16 bytes each.
  uint32_t add(int64_t words) {
    const int64_t begin = words_;
    words_ += (words + 3) / 4 * 4;
    return static_cast<uint32_t>(begin);
  }
  int64_t words() const { return words_; }

 private:
  int64_t words_ = 0;
};

inline void add_scores(const MatchArguments& a, bool has_scores, Layout& layout, SharedPlan& plan) {
  if (has_scores) plan.scores = layout.add(2 * scores_needed(a.plan));
  if (searches_lattice(a.plan)) plan.similarities = layout.add(2 * kLatticeScores);
}

template <class Kernel>
void allow_shared(Kernel kernel, const SharedPlan& plan) {
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(plan.words * sizeof(uint32_t))));
}

}  // namespace larch::dsa::cuda
