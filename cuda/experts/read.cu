// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/experts/experts.h"

namespace larch::experts::cuda {
namespace {

constexpr int kThreads = 128;

using larch::cuda::blocks_for;

/// One thread per voxel, or per voxel and part (grid.y).
__global__ void read_kernel(const __grid_constant__ ReadJob job) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < job.channels.voxels()) job.store(i);
}
__global__ void smooth_kernel(const __grid_constant__ SmoothJob job) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < job.voxels()) job.store(i, static_cast<int>(blockIdx.y));
}

}  // namespace

void read(const ReadJob& job, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  read_kernel<<<blocks_for(job.channels.voxels(), kThreads), kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("read_kernel");
}

void smooth(const SmoothJob& job, int parts, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  const dim3 grid(blocks_for(job.voxels(), kThreads), static_cast<unsigned>(parts));
  smooth_kernel<<<grid, kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("smooth_kernel");
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace larch::experts::cuda
