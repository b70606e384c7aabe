// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/dsa/block_search.cuh"
#include "cuda/dsa/match_directions.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/similarity/entropy.h"

namespace larch::dsa::cuda {
namespace {

__device__ void clear_all_histograms(const SharedPlan& plan) {
  const int words = plan.histograms * kBins;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) shared_words[i] = 0;
}
__device__ uint64_t* scores_of(const SharedPlan& plan) {
  return reinterpret_cast<uint64_t*>(shared_words + plan.scores);
}
__device__ int64_t* similarities_of(const SharedPlan& plan) {
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
/// Conjugate directions throughout.
template <Overflow kOverflow>
struct DirectionsKind {
  static constexpr bool kIsUsual = true;
  static constexpr int kResident = 4;
  __device__ static Overflow overflow(const MatchArguments&) { return kOverflow; }
  __device__ static void narrow(SearchPlan& plan) {
    plan.axes = 2;
    plan.search = Search::kCds;
    plan.subsearch = SubSearch::kCds;
  }
};

/// One block of threads for each block of each frame, whose samples fit into shared memory.
template <class Kind>
__global__ void __launch_bounds__(kThreads, Kind::kResident)
    tile_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan) {
  __shared__ Scratch scratch;
  clear_all_histograms(plan);
  using Samples = TileSamples<Kind::kIsUsual>;
  Samples samples(a, plan);
  BlockSearch<Kind, Samples> search(a, samples, scores_of(plan), similarities_of(plan), scratch);
  const auto blocks = static_cast<uint32_t>(a.blocks);
  search.search(static_cast<int32_t>(blockIdx.x / blocks),
                static_cast<int32_t>(blockIdx.x % blocks));
}

/// Memory of the device that blocks of threads have for themselves, where shared memory does not
/// suffice; null: it does.
struct DeviceScratch {
  uint64_t* scores = nullptr;
  int64_t scores_each = 0;
  int2* base = nullptr;
  int64_t base_each = 0;
};

/// Blocks of threads that take one block after the other; samples stay in the device's memory.
__global__ void __launch_bounds__(kThreads, AnyKind::kResident)
    direct_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                  DeviceScratch device) {
  __shared__ Scratch scratch;
  auto* scores =
      device.scores != nullptr ? device.scores + blockIdx.x * device.scores_each : scores_of(plan);
  auto* base = device.base != nullptr ? device.base + blockIdx.x * device.base_each
                                      : reinterpret_cast<int2*>(shared_words + plan.base);
  clear_all_histograms(plan);
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    DirectSamples samples(a, base);
    BlockSearch<AnyKind, DirectSamples> search(a, samples, scores, similarities_of(plan), scratch);
    search.search(static_cast<int32_t>(item / a.blocks), static_cast<int32_t>(item % a.blocks));
    __syncthreads();
  }
}

bool searches_lattice(const SearchPlan& plan) {
  const bool samples = plan.subpixel == SubPixel::kGain || plan.subpixel == SubPixel::kLinear;
  return samples && plan.subsearch != SubSearch::kCds;
}

constexpr int64_t kLatticeScores = kLatticeSide * kLatticeSide;

/// Scores that are kept at a time: those of the window, then those of the lattice.
int64_t scores_needed(const SearchPlan& plan) {
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

void add_scores(const MatchArguments& a, bool has_scores, Layout& layout, SharedPlan& plan) {
  if (has_scores) plan.scores = layout.add(2 * scores_needed(a.plan));
  if (searches_lattice(a.plan)) plan.similarities = layout.add(2 * kLatticeScores);
}

using LaunchTiles = void (*)(const MatchArguments&, const SharedPlan&, const Device&);

/// The plan of tile_kernel, which may take more words than there are. `is_usual`: rows have the
/// usual lengths, if they are not longer.
SharedPlan tile_plan(const MatchArguments& a, bool* is_usual, int64_t* words) {
  SharedPlan plan;
  Layout layout;
  plan.histograms =
      a.plan.search == Search::kFull || searches_lattice(a.plan) ? kWarps : kMostAtOnce;
  layout.add(int64_t{plan.histograms} * kBins);
  plan.pairs = (a.block.x + 1) / 2;
  while (plan.lanes_log2 > 2 && (1 << (plan.lanes_log2 - 1)) >= plan.pairs) --plan.lanes_log2;
  const int32_t around = 2 * (a.plan.range + kMargin);
  plan.pair_words = plan.pairs;
  plan.mask_words = (a.block.x + around + 3) / 2;
  *is_usual = *is_usual && plan.pair_words <= kUsualPairs && plan.mask_words <= kUsualMaskWords;
  if (*is_usual) {
    plan.pair_words = kUsualPairs;
    plan.mask_words = kUsualMaskWords;
  }
  plan.mask_height = a.block.y + around;
  plan.contrast = layout.add(int64_t{plan.pair_words} * a.block.y);
  // The walk over pairs of columns reads up to two words behind the last row.
  plan.mask = layout.add(int64_t{plan.mask_words} * plan.mask_height + 4);
  add_scores(a, true, layout, plan);
  *words = layout.words();
  plan.words = static_cast<uint32_t>(std::min<int64_t>(layout.words(), INT32_MAX));
  return plan;
}

constexpr int64_t kMostScoresOnChip = 4096;
constexpr int64_t kMostBaseOnChip = 8192;

/// The plan of direct_kernel.
SharedPlan direct_plan(const MatchArguments& a, bool* has_scores, bool* has_base) {
  SharedPlan plan;
  Layout layout;
  layout.add(int64_t{plan.histograms} * kBins);
  const int64_t pixels = int64_t{a.block.x} * a.block.y;
  *has_base = pixels <= kMostBaseOnChip;
  if (a.base.vectors != nullptr && *has_base) plan.base = layout.add(2 * pixels);
  *has_scores = scores_needed(a.plan) <= kMostScoresOnChip;
  add_scores(a, *has_scores, layout, plan);
  plan.words = static_cast<uint32_t>(layout.words());
  return plan;
}

template <class Kernel>
void allow_shared(Kernel kernel, const SharedPlan& plan) {
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(plan.words * sizeof(uint32_t))));
}

template <class Kind>
void launch_tiles(const MatchArguments& a, const SharedPlan& plan, const Device& device) {
  const auto kernel = tile_kernel<Kind>;
  allow_shared(kernel, plan);
  kernel<<<static_cast<uint32_t>(a.items), kThreads, plan.words * sizeof(uint32_t),
           larch::cuda::stream_of(device)>>>(a, plan);
  larch::cuda::check_launch("dsa tile_kernel");
}

void launch_direct(const MatchArguments& a, const Device& device) {
  bool has_scores = false, has_base = false;
  const SharedPlan plan = direct_plan(a, &has_scores, &has_base);
  const auto kernel = direct_kernel;
  allow_shared(kernel, plan);
  int resident = 0, processors = 0;
  const size_t bytes = plan.words * sizeof(uint32_t);
  LARCH_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes));
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  const int64_t groups =
      std::clamp<int64_t>(a.items, 1, int64_t{std::max(resident, 1)} * processors);
  Buffer<uint64_t> scores;
  Buffer<int2> base;
  DeviceScratch scratch;
  if (!has_scores) {
    scratch.scores_each = scores_needed(a.plan);
    scores = Buffer<uint64_t>(device, static_cast<size_t>(groups * scratch.scores_each));
    scratch.scores = scores.data();
  }
  if (a.base.vectors != nullptr && !has_base) {
    scratch.base_each = int64_t{a.block.x} * a.block.y;
    base = Buffer<int2>(device, static_cast<size_t>(groups * scratch.base_each));
    scratch.base = base.data();
  }
  kernel<<<static_cast<uint32_t>(groups), kThreads, bytes, larch::cuda::stream_of(device)>>>(
      a, plan, scratch);
  larch::cuda::check_launch("dsa direct_kernel");
}

/// The kernel that is compiled for a search, if its rows have the usual lengths; null: none is.
LaunchTiles usual_kind(const MatchArguments& a) {
  const bool wraps = a.overflow == Overflow::kWrap;
  if (a.plan.search == Search::kFull) {
    const bool fits = searches_lattice(a.plan) && a.plan.subsearch == SubSearch::kFit;
    return fits && wraps ? launch_tiles<FitKind> : nullptr;
  }
  if (searches_lattice(a.plan) || a.overflow == Overflow::kDiscard) return nullptr;
  return wraps ? launch_tiles<DirectionsKind<Overflow::kWrap>>
               : launch_tiles<DirectionsKind<Overflow::kClamp>>;
}

void launch(const MatchArguments& a, const Device& device) {
  const LaunchTiles kind = usual_kind(a);
  bool is_usual = kind != nullptr;
  int64_t words = 0;
  const SharedPlan plan = tile_plan(a, &is_usual, &words);
  int most = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  const bool fits = words * 4 + static_cast<int64_t>(sizeof(Scratch)) + 1024 <= most;
  if (a.base.vectors != nullptr || !fits) {
    launch_direct(a, device);
  } else {
    (is_usual ? kind : launch_tiles<AnyKind>)(a, plan, device);
  }
}

/// Small arrays of the host on the device.
struct Uploaded {
  std::vector<Buffer<int32_t>> starts{};
  Buffer<uint64_t> terms{};
  const int32_t* starts_of(const std::vector<int32_t>& host, const Device& device) {
    starts.emplace_back(device, std::span<const int32_t>(host));
    return starts.back().data();
  }
};

MatchArguments arguments_of(const MatchJob& job, Uploaded& uploaded, const Device& device) {
  const DsaConfig& config = *job.config;
  const BlockGrid& grid = *job.grid;
  MatchArguments a;
  a.mask = job.mask;
  a.mask_at_zero = job.mask_at_zero;
  a.contrast = job.contrast;
  a.image = grid.image;
  a.block = grid.block;
  a.blocks = grid.blocks();
  a.blocks_x = grid.count.x;
  a.items = job.frames * a.blocks;
  a.starts_x = uploaded.starts_of(grid.starts[0], device);
  a.starts_y = uploaded.starts_of(grid.starts[1], device);
  a.bin_shift = job.bin_shift;
  a.centre = job.centre;
  a.start = job.start;
  a.out = job.out;
  a.plan = plan_of(config, job.range, job.base.vectors != nullptr);
  a.ranking.metric = config.metric;
  if (config.metric == Metric::kEntropy) {
    uploaded.terms = Buffer<uint64_t>(device, std::span<const uint64_t>(entropy_terms(65535)));
    a.ranking.terms = uploaded.terms.data();
  }
  a.overflow = config.overflow;
  a.border = config.border;
  a.skips_weightless = skips_weightless(config.subpixel);
  a.filters = !a.skips_weightless;
  const auto is_aligned = [](const uint16_t* samples) {
    return reinterpret_cast<uintptr_t>(samples) % sizeof(uint32_t) == 0;
  };
  a.has_whole_words = grid.image.x % 2 == 0 && is_aligned(a.mask) && is_aligned(a.mask_at_zero) &&
                      is_aligned(a.contrast);
  a.taps = taps_of(config.subpixel);
  if (job.base.vectors != nullptr) {
    const BlockGrid& base = *job.base.grid;
    for (int axis = 0; axis < 3; ++axis) {
      a.base.axes[axis] = {uploaded.starts_of(base.starts[static_cast<size_t>(axis)], device),
                           base.count[axis], base.block[axis]};
    }
    a.base.vectors = job.base.vectors;
    a.base.border = config.border_field;
    a.base_blocks = base.blocks();
  }
  return a;
}

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.frames == 0) return;
  Uploaded uploaded;
  const MatchArguments a = arguments_of(job, uploaded, device);
  if (can_match_directions(a)) {
    match_directions(a, device);
  } else {
    launch(a, device);
  }
}

}  // namespace larch::dsa::cuda
