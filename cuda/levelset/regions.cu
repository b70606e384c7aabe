// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "cuda/core/check.cuh"
#include "cuda/levelset/field_view.cuh"
#include "larch/core/buffer.h"
#include "larch/levelset/speed/regions.h"

// Means of regions where the field lies: a bit per voxel says what is inside, three passes over the
// bits what is near to it, and one over the image adds up intensities. Words are numbered in 32
// bits: they are those of fields, whose bricks are too.
namespace larch::levelset::cuda {
namespace {

constexpr int32_t kThreads = 256, kWarps = kThreads / kWordVoxels;
/// Blocks that add up intensities: their threads take one word after the other.
constexpr int64_t kMostBlocks = 2048;

/// A warp per word, a lane per voxel.
__global__ void __launch_bounds__(kThreads)
    inside_kernel(BrickLayout layout, BitRows rows, const float* phi, uint32_t* inside) {
  const uint32_t word = blockIdx.x * kWarps + threadIdx.x / kWordVoxels;
  if (word >= rows.words()) return;
  const auto lane = static_cast<int32_t>(threadIdx.x % kWordVoxels);
  const uint32_t row = word / static_cast<uint32_t>(rows.words_per_row);
  const auto of_row = static_cast<int32_t>(word % static_cast<uint32_t>(rows.words_per_row));
  const Vec3i at{of_row * kWordVoxels + lane,
                 static_cast<int32_t>(row % static_cast<uint32_t>(rows.size.y)),
                 static_cast<int32_t>(row / static_cast<uint32_t>(rows.size.y))};
  const bool is_inside = at.x < rows.size.x && phi[layout.offset(at)] < 0;
  const uint32_t bits = __ballot_sync(kAllLanes, is_inside);
  if (lane == 0) inside[word] = bits;
}

/// A thread per word.
__global__ void __launch_bounds__(kThreads)
    widen_along_row_kernel(BitRows rows, int32_t reach, const uint32_t* from, uint32_t* to) {
  const uint32_t word = blockIdx.x * kThreads + threadIdx.x;
  if (word >= rows.words()) return;
  const auto at = static_cast<int32_t>(word % static_cast<uint32_t>(rows.words_per_row));
  to[word] = widened_along_row(from + (word - at), rows.words_per_row, at, reach);
}

/// The same along y (`axis` 1) or z (2).
__global__ void __launch_bounds__(kThreads)
    widen_along_column_kernel(BitRows rows, int32_t axis, int32_t reach, const uint32_t* from,
                              uint32_t* to) {
  const uint32_t word = blockIdx.x * kThreads + threadIdx.x;
  if (word >= rows.words()) return;
  const int64_t per_row = rows.words_per_row;
  const int64_t stride = axis == 1 ? per_row : per_row * rows.size.y;
  const auto count = static_cast<uint32_t>(rows.size[axis]);
  const auto at = static_cast<int32_t>(word / static_cast<uint32_t>(stride) % count);
  to[word] = widened_along_column(from + (word - at * stride), stride, rows.size[axis], at, reach);
}

/// Sums of a thread, then of a block, into `total`, which all blocks add to.
__device__ void add_up(const RegionSums& own, RegionSums* total) {
  constexpr int32_t kParts = 4;
  __shared__ uint64_t parts[kParts][kWarps];
  const uint64_t values[kParts] = {
      static_cast<uint64_t>(own.steps[0]), static_cast<uint64_t>(own.steps[1]),
      static_cast<uint64_t>(own.voxels[0]), static_cast<uint64_t>(own.voxels[1])};
  const uint32_t warp = threadIdx.x / kWordVoxels, lane = threadIdx.x % kWordVoxels;
#pragma unroll
  for (int32_t p = 0; p < kParts; ++p) {
    const uint64_t sum = warp_sum(values[p]);
    if (lane == 0) parts[p][warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= kParts) return;
  uint64_t sum = 0;
  for (int32_t w = 0; w < kWarps; ++w) sum += parts[threadIdx.x][w];
  static_assert(sizeof(RegionSums) == kParts * sizeof(unsigned long long));
  auto* const to = reinterpret_cast<unsigned long long*>(total);
  if (sum > 0) atomicAdd(to + threadIdx.x, static_cast<unsigned long long>(sum));
}

/// Warps that take one word after the other, a lane per voxel. `near`: null where all voxels count.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(Regions regions, BitRows rows, const uint32_t* inside, const uint32_t* near,
               RegionSums* total) {
  const uint32_t lane = threadIdx.x % kWordVoxels;
  RegionSums own;
  for (uint32_t word = blockIdx.x * kWarps + threadIdx.x / kWordVoxels; word < rows.words();
       word += gridDim.x * kWarps) {
    const uint32_t may_count = near != nullptr ? near[word] : ~0U;
    if (may_count == 0) continue;
    const uint32_t row = word / static_cast<uint32_t>(rows.words_per_row);
    const auto of_row = static_cast<int32_t>(word % static_cast<uint32_t>(rows.words_per_row));
    const int32_t x = of_row * kWordVoxels + static_cast<int32_t>(lane);
    if (x >= rows.size.x || (may_count >> lane & 1U) == 0) continue;
    const int64_t i = static_cast<int64_t>(row) * rows.size.x + x;
    const float intensity = regions.intensities[i];
    const bool is_pinned = regions.pinned != nullptr && regions.pinned[i] != 0;
    if (is_pinned || !is_finite(intensity)) continue;
    const bool is_inside = (inside[word] >> lane & 1U) != 0;
    const int64_t step = regions.steps.of(intensity);
    own.steps[0] += is_inside ? step : 0;
    own.steps[1] += is_inside ? 0 : step;
    own.voxels[0] += is_inside ? 1 : 0;
    own.voxels[1] += is_inside ? 0 : 1;
  }
  add_up(own, total);
}

uint32_t blocks_of(int64_t items, int64_t per_block) {
  return static_cast<uint32_t>((items + per_block - 1) / per_block);
}

/// The voxels near to one of `set`.
Buffer<uint32_t> widened(const BitRows& rows, const Vec3i& reach, const Context& context,
                         const Buffer<uint32_t>& set) {
  const cudaStream_t stream = larch::cuda::stream_of(context.device);
  const uint32_t blocks = blocks_of(rows.words(), kThreads);
  Buffer<uint32_t> narrow(context.device, set.size()), wide(context.device, set.size());
  widen_along_row_kernel<<<blocks, kThreads, 0, stream>>>(rows, reach.x, set.data(), wide.data());
  larch::cuda::check_launch("levelset widen_along_row_kernel");
  for (int32_t axis = 1; axis < 3; ++axis) {
    std::swap(narrow, wide);
    widen_along_column_kernel<<<blocks, kThreads, 0, stream>>>(rows, axis, reach[axis],
                                                               narrow.data(), wide.data());
    larch::cuda::check_launch("levelset widen_along_column_kernel");
  }
  return wide;
}

}  // namespace

RegionSums region_sums(const Regions& regions, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const cudaStream_t stream = larch::cuda::stream_of(context.device);
  const BitRows rows = make_bit_rows(regions.layout.size);
  const auto words = static_cast<size_t>(rows.words());
  Buffer<uint32_t> inside(context.device, words);
  inside_kernel<<<blocks_of(rows.words(), kWarps), kThreads, 0, stream>>>(
      regions.layout, rows, regions.phi, inside.data());
  larch::cuda::check_launch("levelset inside_kernel");
  Buffer<uint32_t> near;
  if (regions.reach != Vec3i{}) near = widened(rows, regions.reach, context, inside);
  Buffer<RegionSums> total(context.device, 1);
  total.set_zero();
  const auto blocks = std::min<int64_t>(kMostBlocks, blocks_of(rows.words(), kWarps));
  sum_kernel<<<static_cast<uint32_t>(blocks), kThreads, 0, stream>>>(
      regions, rows, inside.data(), near.empty() ? nullptr : near.data(), total.data());
  larch::cuda::check_launch("levelset sum_kernel");
  return total.to_vector()[0];
}

}  // namespace larch::levelset::cuda
