// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/forest/evaluate.h"

namespace larch::forest::cuda {
namespace {

/// One thread per node.
__global__ void place_kernel(const __grid_constant__ EvaluateJob job) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n < job.node_count) job.place(n);
}

/// One thread per voxel and tree (grid.y): the leaf that it reaches, [tree][voxel].
__global__ void leaves_kernel(const __grid_constant__ EvaluateJob job, uint32_t* reached) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.voxels() || job.is_outside(i)) return;
  reached[blockIdx.y * job.voxels() + i] = job.leaf(blockIdx.y, voxel_of(i, job.size));
}

/// One thread per voxel: what follows from its leaves.
__global__ void store_kernel(const __grid_constant__ EvaluateJob job, const uint32_t* reached) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.voxels()) return;
  job.store(i, [&](uint32_t t) { return reached[t * job.voxels() + i]; });
}

}  // namespace

void evaluate(const EvaluateJob& job, const Context& context) {
  const Device& device = context.device;
  const cudaStream_t stream = larch::cuda::stream_for(device);
  if (job.voxels() == 0) return;
  Buffer<uint32_t> reached(device, static_cast<size_t>(job.voxels()) * job.forest.trees);
  constexpr int kThreads = 128;
  const unsigned blocks = larch::cuda::blocks_for(job.voxels(), kThreads);
  place_kernel<<<larch::cuda::blocks_for(job.node_count, kThreads), kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("place_kernel");
  leaves_kernel<<<dim3(blocks, job.forest.trees), kThreads, 0, stream>>>(job, reached.data());
  larch::cuda::check_launch("leaves_kernel");
  store_kernel<<<blocks, kThreads, 0, stream>>>(job, reached.data());
  larch::cuda::check_launch("store_kernel");
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace larch::forest::cuda
