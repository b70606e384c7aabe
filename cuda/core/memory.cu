// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "cuda/core/check.cuh"
#include "larch/core/device.h"

namespace larch::memory::cuda {

namespace {

/// Buffers come from the device's memory pool, which keeps what is released: a node of a tree
/// takes and gives back hundreds of megabytes, and asking the driver each time costs milliseconds.
void keep_released(int index) {
  static std::once_flag done[64];
  if (index >= 64) return;
  std::call_once(done[index], [index] {
    cudaMemPool_t pool = nullptr;
    LARCH_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, index));
    uint64_t threshold = UINT64_MAX;
    LARCH_CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  });
}

}  // namespace

void* allocate(int index, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(index));
  keep_released(index);
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, bytes, nullptr);
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
  cudaFreeAsync(data,
                nullptr);  // a destructor calls this: an error here was reported by an earlier call
}

void set_zero(int index, void* data, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(index));
  LARCH_CUDA_CHECK(cudaMemset(data, 0, bytes));
}

void copy(void* to, const void* from, size_t bytes) {
  LARCH_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

}  // namespace larch::memory::cuda
