// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/image/filter_bank.h"

namespace larch::image::cuda {
namespace {

constexpr int kThreads = 128;

__device__ int64_t voxel_of_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// One thread per voxel of each input, pass or sum (grid.y).
__global__ void inputs_kernel(int64_t voxels, const FilterInput* inputs, double* out) {
  const int64_t i = voxel_of_thread();
  if (i < voxels) out[blockIdx.y * voxels + i] = inputs[blockIdx.y](i);
}
__global__ void passes_kernel(Vec3i size, int axis, const FilterPass* passes) {
  const int64_t i = voxel_of_thread();
  if (i < int64_t{size.x} * size.y * size.z) passes[blockIdx.y].store(size, axis, i);
}
__global__ void sums_kernel(int64_t voxels, const FilterSum* sums) {
  const int64_t i = voxel_of_thread();
  if (i < voxels) sums[blockIdx.y].store(i);
}

}  // namespace

void filter(const FilterJob& job, const Context& context) {
  const Device& device = context.device;
  const cudaStream_t stream = larch::cuda::stream_for(device);
  // Everything is on the device before the first kernel, so that they follow each other closely.
  const Buffer<FilterInput> inputs(device, job.inputs);
  const Buffer<FilterPass> passes[3] = {
      {device, job.passes[0]}, {device, job.passes[1]}, {device, job.passes[2]}};
  const Buffer<FilterSum> sums(device, job.sums);
  const unsigned blocks = larch::cuda::blocks_for(job.voxels(), kThreads);
  const auto grid = [&](size_t count) { return dim3(blocks, static_cast<unsigned>(count)); };
  inputs_kernel<<<grid(inputs.size()), kThreads, 0, stream>>>(job.voxels(), inputs.data(),
                                                              job.input_values);
  larch::cuda::check_launch("inputs_kernel");
  for (int axis = 0; axis < 3; ++axis) {
    if (passes[axis].empty()) continue;
    passes_kernel<<<grid(passes[axis].size()), kThreads, 0, stream>>>(job.size, axis,
                                                                      passes[axis].data());
    larch::cuda::check_launch("passes_kernel");
  }
  sums_kernel<<<grid(sums.size()), kThreads, 0, stream>>>(job.voxels(), sums.data());
  larch::cuda::check_launch("sums_kernel");
}

}  // namespace larch::image::cuda
