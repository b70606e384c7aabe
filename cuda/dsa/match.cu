// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/dsa/block_search.cuh"
#include "cuda/dsa/field_samples.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa::cuda {
namespace {

constexpr int kResident = 3;  ///< blocks of threads that a multiprocessor is to hold

__device__ uint64_t* scores_of(const SharedPlan& plan) {
  return reinterpret_cast<uint64_t*>(shared_words + plan.scores);
}

constexpr int64_t kLatticeScores = kLatticeSide * kLatticeSide;

/// Scores that are kept at a time: those of the window, then those of the lattice.
int64_t scores_needed(const MatchArguments& a) {
  const int64_t side = 2 * a.range + 1;
  return std::max(side * side, kLatticeScores);
}

/// Parts of shared memory, one behind the other.
class Layout {
 public:
  /// Returns the first word of so many words; of 16 bytes each.
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
  if (has_scores) plan.scores = layout.add(2 * scores_needed(a));
  plan.similarities = layout.add(2 * kLatticeScores);
}

bool fits_on_chip(const SharedPlan& plan, const Device& device) {
  const int64_t others = static_cast<int64_t>(sizeof(Scratch)) + 1024;
  return plan.words * 4 + others <= larch::cuda::most_shared_bytes(device);
}

template <class Kernel>
void allow_shared(Kernel kernel, const SharedPlan& plan) {
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(plan.words * sizeof(uint32_t))));
}

/// One block of threads for each block of each frame, whose samples fit into shared memory.
template <bool kUsual>
__global__ void __launch_bounds__(kThreads, kResident)
    tile_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan) {
  __shared__ Scratch scratch;
  clear_histograms(kWarps);
  using Samples = TileSamples<kUsual>;
  Samples samples(a, plan);
  BlockSearch<Samples> search(a, samples, scores_of(plan), plan, scratch);
  const auto blocks = static_cast<uint32_t>(a.blocks);
  search.search(static_cast<int32_t>(blockIdx.x / blocks),
                static_cast<int32_t>(blockIdx.x % blocks));
}

/// Blocks of threads that take one block after the other, all or those that are left; samples stay
/// in the device's memory. `device_scores`: memory for those of each block of threads, if shared
/// memory does not suffice.
__global__ void __launch_bounds__(kThreads, kResident)
    direct_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                  uint64_t* device_scores, int64_t scores_each, const uint8_t* is_left) {
  __shared__ Scratch scratch;
  auto* scores =
      device_scores != nullptr ? device_scores + blockIdx.x * scores_each : scores_of(plan);
  clear_histograms(kWarps);
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    if (is_left != nullptr && is_left[item] == 0) continue;
    DirectSamples samples(a);
    BlockSearch<DirectSamples> search(a, samples, scores, plan, scratch);
    search.search(static_cast<int32_t>(item / a.blocks), static_cast<int32_t>(item % a.blocks));
    __syncthreads();
  }
}

/// Returns the plan of tile_kernel, which may take more words than there are. `is_usual`: rows have
/// the usual lengths, if they are not longer.
SharedPlan tile_plan(const MatchArguments& a, bool* is_usual) {
  SharedPlan plan;
  Layout layout;
  layout.add(kWarps * kBins);
  plan.pairs = (a.block.x + 1) / 2;
  while (plan.lanes_log2 > 2 && (1 << (plan.lanes_log2 - 1)) >= plan.pairs) --plan.lanes_log2;
  const int32_t around = 2 * (a.range + kMargin);
  plan.pair_words = plan.pairs;
  plan.mask_words = (a.block.x + around + 3) / 2;
  *is_usual = plan.pair_words <= kUsualPairs && plan.mask_words <= kUsualMaskWords;
  if (*is_usual) {
    plan.pair_words = kUsualPairs;
    plan.mask_words = kUsualMaskWords;
  }
  plan.mask_height = a.block.y + around;
  plan.contrast = layout.add(int64_t{plan.pair_words} * a.block.y);
  // The walk over pairs of columns reads up to two words behind the last row.
  plan.mask = layout.add(int64_t{plan.mask_words} * plan.mask_height + 4);
  add_scores(a, true, layout, plan);
  plan.words = layout.words();
  return plan;
}

constexpr int64_t kMaximumScoresOnChip = 4096;

/// Returns the plan of direct_kernel.
SharedPlan direct_plan(const MatchArguments& a, bool has_scores) {
  SharedPlan plan;
  Layout layout;
  layout.add(kWarps * kBins);
  add_scores(a, has_scores, layout, plan);
  plan.words = layout.words();
  return plan;
}

template <bool kUsual>
void launch_tiles(const MatchArguments& a, const SharedPlan& plan, const Device& device) {
  const auto kernel = tile_kernel<kUsual>;
  allow_shared(kernel, plan);
  kernel<<<static_cast<uint32_t>(a.items), kThreads, plan.words * sizeof(uint32_t),
           larch::cuda::stream_of(device)>>>(a, plan);
  larch::cuda::check_launch("dsa tile_kernel");
}

void launch_direct(const MatchArguments& a, const uint8_t* is_left, const Device& device) {
  const bool has_scores = scores_needed(a) <= kMaximumScoresOnChip;
  const SharedPlan plan = direct_plan(a, has_scores);
  const auto kernel = direct_kernel;
  allow_shared(kernel, plan);
  int resident = 0;
  const size_t bytes = plan.words * sizeof(uint32_t);
  LARCH_CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, bytes));
  const int processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  const int64_t groups =
      std::clamp<int64_t>(a.items, 1, int64_t{std::max(resident, 1)} * processors);
  const int64_t scores_each = has_scores ? 0 : scores_needed(a);
  Buffer<uint64_t> scores(device, static_cast<size_t>(groups * scores_each));
  kernel<<<static_cast<uint32_t>(groups), kThreads, bytes, larch::cuda::stream_of(device)>>>(
      a, plan, scores.data(), scores_each, is_left);
  larch::cuda::check_launch("dsa direct_kernel");
}

void launch(const MatchArguments& a, const Device& device) {
  bool is_usual = false;
  const SharedPlan plan = tile_plan(a, &is_usual);
  if (!fits_on_chip(plan, device)) return launch_direct(a, nullptr, device);
  (is_usual ? launch_tiles<true> : launch_tiles<false>)(a, plan, device);
}

/// Shared memory allows for no more blocks of threads on a multiprocessor.
constexpr int kFieldResident = 2;

/// One block of threads for each block of each frame.
__global__ void __launch_bounds__(kThreads, kFieldResident)
    field_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                 uint8_t* is_left) {
  __shared__ Scratch scratch;
  FieldSamples samples(a, plan);
  BlockSearch<FieldSamples> search(a, samples, scores_of(plan), plan, scratch);
  const auto blocks = static_cast<uint32_t>(a.blocks);
  const bool is_done = search.search(static_cast<int32_t>(blockIdx.x / blocks),
                                     static_cast<int32_t>(blockIdx.x % blocks));
  if (threadIdx.x == 0) is_left[blockIdx.x] = is_done ? 0 : 1;
}

SharedPlan field_plan(const MatchArguments& a) {
  const int64_t pixels = int64_t{a.block.x} * a.block.y;
  SharedPlan plan;
  Layout layout;
  layout.add(kWarps * kBins);
  plan.contrast = layout.add((pixels + 1) / 2);
  plan.base = layout.add(pixels);
  plan.mask = layout.add(int64_t{kFieldRow} * kFieldRows / 2);
  plan.taps = layout.add(kTapWords + 4);
  add_scores(a, true, layout, plan);
  plan.words = layout.words();
  return plan;
}

/// Tells whether match_over_field can search blocks of this size: their scores have to fit on chip.
bool can_match_over_field(const MatchArguments& a, const Device& device) {
  if (int64_t{a.block.x} * a.block.y > kFieldPixels || a.block.x > kFieldRow ||
      a.block.y > kFieldRows) {
    return false;
  }
  return fits_on_chip(field_plan(a), device);
}

/// Searches blocks over a base field. `is_left`: per block, 1 for those that are not searched,
/// since the field varies too much below them for shared memory.
void match_over_field(const MatchArguments& a, uint8_t* is_left, const Device& device) {
  const SharedPlan plan = field_plan(a);
  allow_shared(field_kernel, plan);
  field_kernel<<<static_cast<uint32_t>(a.items), kThreads, plan.words * sizeof(uint32_t),
                 larch::cuda::stream_of(device)>>>(a, plan, is_left);
  larch::cuda::check_launch("dsa field_kernel");
}

}  // namespace

UploadedArguments upload_arguments(const MatchJob& job, const Device& device) {
  const BlockGrid& grid = *job.grid;
  UploadedArguments there;
  there.starts_x = Buffer<int32_t>(device, std::span<const int32_t>(grid.starts[0]));
  there.starts_y = Buffer<int32_t>(device, std::span<const int32_t>(grid.starts[1]));
  MatchArguments& a = there.arguments;
  a.starts_x = there.starts_x.data();
  a.starts_y = there.starts_y.data();
  a.mask = job.mask;
  a.mask_at_zero = job.mask_at_zero;
  a.contrast = job.contrast;
  a.image = grid.image;
  a.block = grid.block;
  a.blocks = grid.blocks();
  a.blocks_x = grid.count.x;
  a.items = job.frames * a.blocks;
  a.bin_shift = job.bin_shift;
  a.centre = job.centre;
  a.out = job.out;
  a.range = job.range;
  a.ranking.metric = job.config->metric;
  a.has_whole_words = have_whole_words(grid.image.x, {job.mask, job.mask_at_zero, job.contrast});
  a.taps = gain_taps();
  a.base = job.base.vectors;
  if (a.ranking.metric == Metric::kEntropy) {
    there.terms =
        Buffer<uint64_t>(device, std::span<const uint64_t>(entropy_terms(kMaximumBlockPixels)));
    a.ranking.terms = there.terms.data();
  }
  return there;
}

void match_blocks(const MatchJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.frames == 0) return;
  const UploadedArguments there = upload_arguments(job, device);
  const MatchArguments& a = there.arguments;
  if (a.base != nullptr) {
    Buffer<uint8_t> left;  // blocks that match_over_field leaves
    if (can_match_over_field(a, device)) {
      left = Buffer<uint8_t>(device, static_cast<size_t>(a.items));
      match_over_field(a, left.data(), device);
    }
    launch_direct(a, left.data(), device);
  } else {
    launch(a, device);
  }
}

}  // namespace larch::dsa::cuda
