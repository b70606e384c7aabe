// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/dsa/match_directions.cuh"
#include "cuda/dsa/match_field.cuh"
#include "cuda/dsa/search_kinds.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/similarity/entropy.h"

namespace larch::dsa::cuda {
namespace {

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

/// Blocks of threads that take one block after the other, all or those that are left; samples stay
/// in the device's memory.
__global__ void __launch_bounds__(kThreads, AnyKind::kResident)
    direct_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                  DeviceScratch device, const uint8_t* is_left) {
  __shared__ Scratch scratch;
  auto* scores =
      device.scores != nullptr ? device.scores + blockIdx.x * device.scores_each : scores_of(plan);
  auto* base = device.base != nullptr ? device.base + blockIdx.x * device.base_each
                                      : reinterpret_cast<int2*>(shared_words + plan.base);
  clear_all_histograms(plan);
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    if (is_left != nullptr && is_left[item] == 0) continue;
    DirectSamples samples(a, base);
    BlockSearch<AnyKind, DirectSamples> search(a, samples, scores, similarities_of(plan), scratch);
    search.search(static_cast<int32_t>(item / a.blocks), static_cast<int32_t>(item % a.blocks));
    __syncthreads();
  }
}

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

template <class Kind>
void launch_tiles(const MatchArguments& a, const SharedPlan& plan, const Device& device) {
  const auto kernel = tile_kernel<Kind>;
  allow_shared(kernel, plan);
  kernel<<<static_cast<uint32_t>(a.items), kThreads, plan.words * sizeof(uint32_t),
           larch::cuda::stream_of(device)>>>(a, plan);
  larch::cuda::check_launch("dsa tile_kernel");
}

void launch_direct(const MatchArguments& a, const uint8_t* is_left, const Device& device) {
  bool has_scores = false, has_base = false;
  const SharedPlan plan = direct_plan(a, &has_scores, &has_base);
  const auto kernel = direct_kernel;
  allow_shared(kernel, plan);
  int resident = 0;
  const size_t bytes = plan.words * sizeof(uint32_t);
  LARCH_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes));
  const int processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
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
      a, plan, scratch, is_left);
  larch::cuda::check_launch("dsa direct_kernel");
}

void launch(const MatchArguments& a, const Device& device) {
  bool is_usual = a.plan.search == Search::kFull && searches_lattice(a.plan) &&
                  a.plan.subsearch == SubSearch::kFit && a.overflow == Overflow::kWrap;
  int64_t words = 0;
  const SharedPlan plan = tile_plan(a, &is_usual, &words);
  const int most = larch::cuda::most_shared_bytes(device);
  const bool fits = words * 4 + static_cast<int64_t>(sizeof(Scratch)) + 1024 <= most;
  if (!fits) {
    launch_direct(a, nullptr, device);
  } else {
    (is_usual ? launch_tiles<FitKind> : launch_tiles<AnyKind>)(a, plan, device);
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
  a.out = job.out;
  a.plan = plan_of(config, job.range);
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
  if (a.base.vectors != nullptr) {
    Buffer<uint8_t> left;  // blocks that match_over_field leaves
    if (can_match_over_field(a, device)) {
      left = Buffer<uint8_t>(device, static_cast<size_t>(a.items));
      match_over_field(a, left.data(), device);
    }
    launch_direct(a, left.data(), device);
  } else if (can_match_directions(a)) {
    match_directions(a, device);
  } else {
    launch(a, device);
  }
}

}  // namespace larch::dsa::cuda
