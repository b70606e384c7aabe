// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "larch/dsa/field/consistency.h"
#include "larch/dsa/field/consistency_math.h"

namespace larch::dsa::cuda {
namespace {

constexpr int kThreads = 256;

template <class Visit>
__device__ void for_own(int64_t blocks, const Visit& visit) {
  for (int64_t i = threadIdx.x; i < blocks; i += kThreads) visit(i);
}

/// Judges and fills the blocks of a frame; all threads of a block of threads together.
__device__ void replace_in_frame(const Neighbourhood& blocks) {
  const int64_t n = blocks.blocks();
  for_own(n, [&](int64_t i) { begin_judging(blocks, i); });
  __syncthreads();
  for_own(n, [&](int64_t i) { judge(blocks, i); });
  __syncthreads();
  bool is_unfilled = false;
  for_own(n, [&](int64_t i) { is_unfilled |= end_judging(blocks, i); });
  bool goes_on = __syncthreads_or(is_unfilled) != 0;
  for (int32_t round = 1; goes_on; ++round) {
    bool has_filled = false;
    for_own(n, [&](int64_t i) { has_filled |= fill_from_neighbours(blocks, i, round); });
    goes_on = __syncthreads_or(has_filled) != 0;
  }
  for_own(n, [&](int64_t i) { fill_with_zero(blocks, i); });
  __syncthreads();
}

/// A block of threads per frame.
__global__ void __launch_bounds__(kThreads)
    consistency_kernel(const __grid_constant__ ConsistencyJob job) {
  Neighbourhood blocks;
  for (int axis = 0; axis < 3; ++axis) blocks.axes[axis] = job.axes[axis];
  blocks.tolerates = job.tolerates;
  blocks.drops_unreliable = job.drops_unreliable;
  const int64_t first = blockIdx.x * blocks.blocks();
  blocks.matches = job.matches + first;
  blocks.known_since = job.known_since + first;
  replace_in_frame(blocks);
}

__global__ void __launch_bounds__(kThreads) vectors_kernel(const __grid_constant__ VectorsJob job) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < job.count;
       i += step) {
    job.vectors[i] = job.matches[i].vector;
  }
}

}  // namespace

void replace_inconsistent(const ConsistencyJob& job, const Context& context) {
  if (job.frames == 0) return;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  consistency_kernel<<<static_cast<uint32_t>(job.frames), kThreads, 0,
                       larch::cuda::stream_of(context.device)>>>(job);
  larch::cuda::check_launch("dsa consistency_kernel");
}

void field_vectors(const VectorsJob& job, const Context& context) {
  if (job.count == 0) return;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const auto groups =
      static_cast<uint32_t>(std::min<int64_t>((job.count + kThreads - 1) / kThreads, 1 << 16));
  vectors_kernel<<<groups, kThreads, 0, larch::cuda::stream_of(context.device)>>>(job);
  larch::cuda::check_launch("dsa vectors_kernel");
}

}  // namespace larch::dsa::cuda
