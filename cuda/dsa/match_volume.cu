// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "cuda/core/check.cuh"
#include "cuda/dsa/volume_search.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/similarity/entropy.h"

namespace larch::dsa::cuda {
namespace {

/// Memory of the device that blocks of threads have for themselves.
struct VolumeRoom {
  uint64_t* scores = nullptr;
  int64_t scores_each = 0;
  Vec3i* base = nullptr;
  int64_t base_each = 0;
};

/// Blocks of threads that take one block after the other.
__global__ void __launch_bounds__(kVolumeThreads, 2)
    volume_kernel(const __grid_constant__ VolumeArguments a,
                  const __grid_constant__ VolumeTile tile, VolumeRoom room) {
  __shared__ VolumeScratch scratch;
  VolumeGroup(scratch.sums).clear(kVolumeWarps);
  uint64_t* scores = room.scores + blockIdx.x * room.scores_each;
  Vec3i* base = room.base == nullptr ? nullptr : room.base + blockIdx.x * room.base_each;
  for (int64_t item = blockIdx.x; item < a.items; item += gridDim.x) {
    VolumeSearch search(a, tile, base, scores, scratch);
    search.search(static_cast<int32_t>(item / a.blocks), static_cast<int32_t>(item % a.blocks));
    __syncthreads();
  }
}

/// Words of a row of the mask so that four rows of the block are in different banks.
int32_t spread_words(int32_t words) {
  return (words + 7) / 16 * 16 + 8;
}

/// Where the block and the planes of the mask lie in shared memory; only the histograms do where
/// nothing is searched in it or it is too small.
VolumeTile tile_of(const VolumeArguments& a, int64_t most_words) {
  constexpr int64_t kHalf = 112 * 1024 / 4;  // of what a multiprocessor of 228 KiB has
  VolumeTile tile;
  tile.words = kVolumeWarps * kBins;
  if (a.plan.search != Search::kFull || a.base.vectors != nullptr) return tile;
  tile.pairs = (a.block.x + 1) / 2;
  while (tile.lanes_log2 > 0 && (1 << (tile.lanes_log2 - 1)) >= tile.pairs) --tile.lanes_log2;
  tile.rows = a.block.y + 2 * a.plan.range;
  tile.contrast = tile.words;
  const int64_t of_block = int64_t{tile.pairs} * a.block.y * a.block.z;
  const int64_t behind = tile.contrast + of_block;
  const auto words_with = [&](int32_t row_words) {
    return behind + int64_t{row_words} * tile.rows * a.block.z;
  };
  // Parts begin with an even column, and pairs of odd ones reach one word further.
  const int32_t least = (a.block.x + 2 * a.plan.range + 1) / 2 + 1;
  tile.row_words = words_with(spread_words(least)) <= kHalf ? spread_words(least) : least;
  if (words_with(tile.row_words) > most_words) return tile;
  tile.is_on_chip = true;
  tile.mask = static_cast<uint32_t>(behind);
  tile.words = static_cast<uint32_t>(words_with(tile.row_words));
  return tile;
}

/// Grids and tables of the host on the device.
struct VolumeTables {
  FieldGrid blocks{}, base{};
  Buffer<uint64_t> terms{};
};

VolumeArguments arguments_of(const MatchJob& job, VolumeTables& tables, const Device& device) {
  const DsaConfig& config = *job.config;
  const BlockGrid& grid = *job.grid;
  VolumeArguments a;
  a.mask = job.mask;
  a.mask_at_zero = job.mask_at_zero;
  a.contrast = job.contrast;
  a.image = grid.image;
  a.block = grid.block;
  a.count = grid.count;
  tables.blocks = make_field_grid(grid, device);
  std::copy_n(tables.blocks.axes, 3, a.axes);
  a.blocks = grid.blocks();
  a.items = job.frames * a.blocks;
  a.bin_shift = job.bin_shift;
  a.centre = job.centre;
  a.out = job.out;
  a.plan = plan_of(config, job.range);
  a.ranking.metric = config.metric;
  if (config.metric == Metric::kEntropy) {
    tables.terms = Buffer<uint64_t>(device, std::span<const uint64_t>(entropy_terms(65535)));
    a.ranking.terms = tables.terms.data();
  }
  a.overflow = config.overflow;
  a.clamps = config.border == Border::kClamp;
  a.skips_weightless = skips_weightless(config.subpixel);
  a.taps = taps_of(config.subpixel);
  if (job.base.vectors != nullptr) {
    tables.base = make_field_grid(*job.base.grid, device);
    a.base = tables.base.view(job.base.vectors, config.border_field);
    a.base_blocks = job.base.grid->blocks();
  }
  return a;
}

/// Blocks of threads that are resident at a time, or fewer where their memory would grow too large.
int64_t groups_of(const VolumeArguments& a, size_t shared_bytes, int64_t bytes_each,
                  const Device& device) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  int resident = 0;
  LARCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, volume_kernel,
                                                                 kVolumeThreads, shared_bytes));
  const int processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  const int64_t all = int64_t{std::max(resident, 1)} * processors;
  const int64_t affordable = std::max<int64_t>(kMostBytes / bytes_each, 1);
  return std::clamp<int64_t>(a.items, 1, std::min(all, affordable));
}

}  // namespace

void match_volume(const MatchJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.frames == 0) return;
  VolumeTables tables;
  const VolumeArguments a = arguments_of(job, tables, device);
  const int most = larch::cuda::most_shared_bytes(device);
  const auto fixed = static_cast<int64_t>(sizeof(VolumeScratch));
  const VolumeTile tile = tile_of(a, (most - fixed) / 4);
  const size_t bytes = tile.words * sizeof(uint32_t);
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(volume_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));

  const int64_t side = a.plan.search == Search::kFull ? 2 * a.plan.range + 1 : 1;
  VolumeRoom room;
  room.scores_each = side * side * side;
  const bool has_base = a.base.vectors != nullptr;
  room.base_each = has_base ? int64_t{a.block.x} * a.block.y * a.block.z : 0;
  const auto bytes_each =
      static_cast<int64_t>(room.scores_each * sizeof(uint64_t) + room.base_each * sizeof(Vec3i));
  const int64_t groups = groups_of(a, bytes, bytes_each, device);
  Buffer<uint64_t> scores(device, static_cast<size_t>(groups * room.scores_each));
  Buffer<Vec3i> base(device, static_cast<size_t>(groups * room.base_each));
  room.scores = scores.data();
  room.base = has_base ? base.data() : nullptr;
  volume_kernel<<<static_cast<uint32_t>(groups), kVolumeThreads, bytes,
                  larch::cuda::stream_of(device)>>>(a, tile, room);
  larch::cuda::check_launch("dsa volume_kernel");
}

}  // namespace larch::dsa::cuda
