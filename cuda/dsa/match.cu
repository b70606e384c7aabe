// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/dsa/block_search.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/match/entropy.h"

namespace larch::dsa::cuda {
namespace {

/// Blocks of threads that a multiprocessor is to hold: registers are limited accordingly.
constexpr int kResident = 3;

__device__ uint32_t* cleared_histograms(uint8_t* shared, int32_t count) {
  auto* histograms = reinterpret_cast<uint32_t*>(shared);
  for (int i = static_cast<int>(threadIdx.x); i < count * kBins; i += kThreads) histograms[i] = 0;
  return histograms;
}

/// One block of threads for each block of each frame, whose samples fit into shared memory.
template <Overflow kOverflow>
__global__ void __launch_bounds__(kThreads, kResident)
    tile_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ Scratch scratch;
  TileSamples samples(a, plan, shared);
  BlockSearch<kOverflow, TileSamples> search(
      a, samples, cleared_histograms(shared, plan.histograms),
      reinterpret_cast<uint64_t*>(shared + plan.scores),
      plan.similarities == 0 ? nullptr : reinterpret_cast<int64_t*>(shared + plan.similarities),
      scratch);
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
template <Overflow kOverflow>
__global__ void __launch_bounds__(kThreads, kResident)
    direct_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                  DeviceScratch device) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ Scratch scratch;
  auto* scores = device.scores != nullptr ? device.scores + blockIdx.x * device.scores_each
                                          : reinterpret_cast<uint64_t*>(shared + plan.scores);
  auto* base = device.base != nullptr ? device.base + blockIdx.x * device.base_each
                                      : reinterpret_cast<int2*>(shared + plan.base);
  uint32_t* histograms = cleared_histograms(shared, plan.histograms);
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    DirectSamples samples(a, base);
    BlockSearch<kOverflow, DirectSamples> search(
        a, samples, histograms, scores,
        plan.similarities == 0 ? nullptr : reinterpret_cast<int64_t*>(shared + plan.similarities),
        scratch);
    search.search(static_cast<int32_t>(item / a.blocks), static_cast<int32_t>(item % a.blocks));
    __syncthreads();
  }
}

bool searches_lattice(const SearchPlan& plan) {
  const bool samples = plan.subpixel == SubPixel::kGain || plan.subpixel == SubPixel::kLinear;
  return samples && plan.subsearch != SubSearch::kCds;
}

int64_t window_scores(const SearchPlan& plan) {
  const int64_t side = 2 * plan.range + 1;
  return plan.search == Search::kFull ? side * side : 1;
}

constexpr int64_t kLatticeScores = kLatticeSide * kLatticeSide;

/// Parts of shared memory, one behind the other.
class Layout {
 public:
  uint32_t add(int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ += (bytes + 15) / 16 * 16;
    return static_cast<uint32_t>(begin);
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

void add_lattice(const MatchArguments& a, Layout& layout, SharedPlan& plan) {
  if (searches_lattice(a.plan)) {
    plan.similarities = layout.add(kLatticeScores * static_cast<int64_t>(sizeof(int64_t)));
  }
}

int32_t histograms_of(const MatchArguments& a) {
  return a.plan.search == Search::kFull || searches_lattice(a.plan) ? kWarps : kMostAtOnce;
}

/// The plan of tile_kernel; its bytes may be too many.
SharedPlan tile_plan(const MatchArguments& a, int64_t* bytes) {
  SharedPlan plan;
  Layout layout;
  plan.histograms = histograms_of(a);
  layout.add(int64_t{plan.histograms} * kBins * 4);
  plan.pairs = (a.block.x + 1) / 2;
  while (plan.lanes_log2 > 2 && (1 << (plan.lanes_log2 - 1)) >= plan.pairs) --plan.lanes_log2;
  plan.contrast = layout.add(int64_t{plan.pairs} * a.block.y * 4);
  const int32_t around = 2 * (a.plan.range + kMargin);
  plan.mask_width = (a.block.x + around + 3) / 2 * 2;
  plan.mask_height = a.block.y + around;
  // The walk over pairs of columns reads up to two words behind the last row.
  plan.mask = layout.add(int64_t{plan.mask_width} * plan.mask_height * 2 + 16);
  const int64_t scores = std::max(window_scores(a.plan), kLatticeScores);
  plan.scores = layout.add(scores * 8);
  add_lattice(a, layout, plan);
  *bytes = layout.bytes();
  plan.bytes = static_cast<uint32_t>(std::min<int64_t>(layout.bytes(), INT32_MAX));
  return plan;
}

constexpr int64_t kMostScoresOnChip = 4096;
constexpr int64_t kMostBaseOnChip = 8192;

/// The plan of direct_kernel.
SharedPlan direct_plan(const MatchArguments& a) {
  SharedPlan plan;
  Layout layout;
  plan.histograms = histograms_of(a);
  layout.add(int64_t{plan.histograms} * kBins * 4);
  const int64_t pixels = int64_t{a.block.x} * a.block.y;
  if (a.base.vectors != nullptr && pixels <= kMostBaseOnChip) {
    plan.base = layout.add(pixels * static_cast<int64_t>(sizeof(int2)));
  }
  const int64_t scores = std::max(window_scores(a.plan), kLatticeScores);
  if (scores <= kMostScoresOnChip) plan.scores = layout.add(scores * 8);
  add_lattice(a, layout, plan);
  plan.bytes = static_cast<uint32_t>(layout.bytes());
  return plan;
}

template <class Kernel>
void allow_shared(Kernel kernel, uint32_t bytes) {
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
}

template <Overflow kOverflow>
void launch_tiles(const MatchArguments& a, const SharedPlan& plan, const Device& device) {
  allow_shared(tile_kernel<kOverflow>, plan.bytes);
  tile_kernel<kOverflow>
      <<<static_cast<uint32_t>(a.items), kThreads, plan.bytes, larch::cuda::stream_of(device)>>>(
          a, plan);
  larch::cuda::check_launch("dsa tile_kernel");
}

template <Overflow kOverflow>
void launch_direct(const MatchArguments& a, const Device& device) {
  const SharedPlan plan = direct_plan(a);
  allow_shared(direct_kernel<kOverflow>, plan.bytes);
  int resident = 0, processors = 0;
  LARCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, direct_kernel<kOverflow>, kThreads, plan.bytes));
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  const int64_t groups =
      std::clamp<int64_t>(a.items, 1, int64_t{std::max(resident, 1)} * processors);
  Buffer<uint64_t> scores;
  Buffer<int2> base;
  DeviceScratch scratch;
  if (plan.scores == 0) {
    scratch.scores_each = std::max(window_scores(a.plan), kLatticeScores);
    scores = Buffer<uint64_t>(device, static_cast<size_t>(groups * scratch.scores_each));
    scratch.scores = scores.data();
  }
  if (a.base.vectors != nullptr && plan.base == 0) {
    scratch.base_each = int64_t{a.block.x} * a.block.y;
    base = Buffer<int2>(device, static_cast<size_t>(groups * scratch.base_each));
    scratch.base = base.data();
  }
  direct_kernel<kOverflow>
      <<<static_cast<uint32_t>(groups), kThreads, plan.bytes, larch::cuda::stream_of(device)>>>(
          a, plan, scratch);
  larch::cuda::check_launch("dsa direct_kernel");
}

template <Overflow kOverflow>
void launch(const MatchArguments& a, const Device& device) {
  int64_t bytes = 0;
  const SharedPlan plan = tile_plan(a, &bytes);
  int most = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  const bool fits = bytes + static_cast<int64_t>(sizeof(Scratch)) + 1024 <= most;
  if (a.base.vectors == nullptr && fits) {
    launch_tiles<kOverflow>(a, plan, device);
  } else {
    launch_direct<kOverflow>(a, device);
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
  a.border = config.border;
  a.skips_weightless = skips_weightless(config.subpixel);
  a.filters = !a.skips_weightless;
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
  switch (job.config->overflow) {
    case Overflow::kWrap:
      return launch<Overflow::kWrap>(a, device);
    case Overflow::kDiscard:
      return launch<Overflow::kDiscard>(a, device);
    case Overflow::kClamp:
      return launch<Overflow::kClamp>(a, device);
  }
}

}  // namespace larch::dsa::cuda
