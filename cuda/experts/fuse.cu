// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/experts/atlases.h"

namespace larch::experts::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRegisterThreads = 512;
constexpr int64_t kMostWeightBytes = int64_t{1} << 27;
static_assert(kRounds % 2 == 0, "displacements end where they began");

template <class T>
__device__ void blur(const T* in, T* out, const Vec3i& size, int volumes, int axis) {
  const int64_t n = int64_t{size.x} * size.y * size.z;
  for (int64_t i = threadIdx.x; i < n * volumes; i += blockDim.x) {
    const int64_t first = i / n * n;
    out[i] = static_cast<T>(blurred_along(in + first, i - first, size, axis));
  }
  __syncthreads();
}

/// A block blurs an atlas, or the piece.
__global__ void smooth_kernel(const __grid_constant__ FuseJob job) {
  const AtlasView& view = job.views[blockIdx.x];
  blur(view.image, view.smooth, view.size, 1, 0);
  blur(view.smooth, view.spare, view.size, 1, 1);
  blur(view.spare, view.smooth, view.size, 1, 2);
}

/// A block registers an atlas.
__global__ void __launch_bounds__(kRegisterThreads)
    register_kernel(const __grid_constant__ FuseJob given) {
  FuseJob job = given;
  const int a = static_cast<int>(blockIdx.x);
  const int64_t first = int64_t{a} * 3 * job.node_count();
  for (int round = 0; round < kRounds; ++round) {
    for (int64_t i = threadIdx.x; i < job.node_count(); i += blockDim.x) job.move(a, i);
    __syncthreads();
    for (int axis = 0; axis < 3; ++axis) {
      blur(job.moved + first, job.spare + first, job.nodes, 3, axis);
      int32_t* const other = job.moved;
      job.moved = job.spare;
      job.spare = other;
    }
  }
}

/// A thread works on a voxel of an atlas (grid.y).
__global__ void warp_kernel(const __grid_constant__ FuseJob job) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < job.voxels()) job.warp(static_cast<int>(blockIdx.y), i);
}

/// Returns the difference of the patches around a voxel of the piece and one of an atlas.
__device__ int32_t difference(const FuseJob& job, int a, int64_t i, int64_t shift) {
  int32_t sum = 0;
#pragma unroll
  for (int k = 0; k < kShifts; ++k) sum += job.squared_difference(a, i + job.shift(k), shift);
  return sum;
}

/// A thread works on a voxel of an atlas (grid.y).
__global__ void least_kernel(const __grid_constant__ FuseJob job) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.voxels() || job.band[i] == 0) return;
  int32_t least = 0x7fffffff;
  for (int s = 0; s < kShifts; ++s) {
    least = min(least, difference(job, static_cast<int>(blockIdx.y), i, job.shift(s)));
  }
  atomicMin(job.least + i, least);
}
/// `weights` are [atlas from `first` on][shift][voxel], 0 outside of the band.
__global__ void weight_kernel(const __grid_constant__ FuseJob job, int first, uint16_t* weights) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.voxels() || job.band[i] == 0) return;
  uint16_t* mine = weights + blockIdx.y * kShifts * job.voxels() + i;
  for (int s = 0; s < kShifts; ++s) {
    const int32_t sum = difference(job, first + static_cast<int>(blockIdx.y), i, job.shift(s));
    mine[s * job.voxels()] = job.weight(i, sum, s);
  }
}
__global__ void vote_kernel(const __grid_constant__ FuseJob job, int first,
                            const uint16_t* weights) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.voxels() || job.band[i] < 2) return;
  const int a = first + static_cast<int>(blockIdx.y);
  uint64_t votes[1 + kMaximumParts] = {};
  for (int s = 0; s < kShifts; ++s) {
    const uint16_t* from = weights + (blockIdx.y * kShifts + s) * job.voxels() + i;
    uint32_t sum = 0;
    for (int k = 0; k < kShifts; ++k) sum += from[job.shift(k)];
    votes[0] += sum;
    const int64_t there = i + job.shift(s);
#pragma unroll
    for (int k = 0; k < kMaximumParts; ++k) {
      if (k >= job.parts) break;
      votes[1 + k] += sum * job.share[(int64_t{a} * job.parts + k) * job.voxels() + there];
    }
  }
  auto* const all = reinterpret_cast<unsigned long long*>(job.votes) + i;
#pragma unroll
  for (int k = 0; k <= kMaximumParts; ++k) {
    if (k <= job.parts) atomicAdd(all + k * job.voxels(), votes[k]);
  }
}

}  // namespace

void fuse(const FuseJob& job, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  const unsigned blocks = larch::cuda::blocks_for(job.voxels(), kThreads);
  const auto atlases = static_cast<unsigned>(job.atlases);
  smooth_kernel<<<atlases + 1, kRegisterThreads, 0, stream>>>(job);
  larch::cuda::check_launch("smooth_kernel");
  register_kernel<<<atlases, kRegisterThreads, 0, stream>>>(job);
  larch::cuda::check_launch("register_kernel");
  warp_kernel<<<dim3(blocks, atlases), kThreads, 0, stream>>>(job);
  LARCH_CUDA_CHECK(cudaMemsetAsync(job.least, 0x7f, static_cast<size_t>(job.voxels()) * 4, stream));
  least_kernel<<<dim3(blocks, atlases), kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("least_kernel");
  const int64_t of_atlas = kShifts * job.voxels();
  const int64_t most = std::min(job.memory_bytes, kMostWeightBytes);
  const int batch = static_cast<int>(std::clamp<int64_t>(most / (2 * of_atlas), 1, job.atlases));
  Buffer<uint16_t> weights(context.device, static_cast<size_t>(batch * of_atlas));
  weights.set_zero();
  for (int first = 0; first < job.atlases; first += batch) {
    context.throw_if_stopped(kStopped);
    const dim3 grid(blocks, static_cast<unsigned>(std::min(batch, job.atlases - first)));
    weight_kernel<<<grid, kThreads, 0, stream>>>(job, first, weights.data());
    vote_kernel<<<grid, kThreads, 0, stream>>>(job, first, weights.data());
  }
  larch::cuda::check_launch("vote_kernel");
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace larch::experts::cuda
