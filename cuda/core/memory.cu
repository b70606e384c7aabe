// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/core/device.h"

namespace larch::memory::cuda {

void* allocate(int index, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(index));
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw MemoryError("not enough device memory: needed " + std::to_string(bytes) +
                      " bytes, free " + std::to_string(free_memory_bytes(Device::cuda(index))) +
                      "; use a smaller input or --device cpu");
  }
  LARCH_CUDA_CHECK(status);
  return data;
}

void release(int index, void* data) {
  cudaSetDevice(index);
  cudaFree(data);  // a destructor calls this: an error here was reported by an earlier call
}

void set_zero(int index, void* data, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(index));
  LARCH_CUDA_CHECK(cudaMemset(data, 0, bytes));
}

void copy(void* to, const void* from, size_t bytes) {
  LARCH_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

}  // namespace larch::memory::cuda
