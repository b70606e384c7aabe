// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "cuda/core/check.cuh"

namespace larch::cuda {

int device_count(std::string* why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    *why = std::string("the CUDA driver says '") + cudaGetErrorString(status) + "'";
    return 0;
  }
  if (count == 0) *why = "the CUDA driver lists no device";
  return count;
}

std::string device_name(int index) {
  cudaDeviceProp properties{};
  LARCH_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return properties.name;
}

size_t free_bytes(int index) {
  size_t free = 0, total = 0;
  LARCH_CUDA_CHECK(cudaSetDevice(index));
  LARCH_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  // What the pool holds but nobody uses is free as well.
  cudaMemPool_t pool = nullptr;
  LARCH_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, index));
  uint64_t reserved = 0, used = 0;
  LARCH_CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  LARCH_CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return free + static_cast<size_t>(reserved - used);
}

size_t total_bytes(int index) {
  cudaDeviceProp properties{};
  LARCH_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return properties.totalGlobalMem;
}

void* create_stream(const Device& device) {
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  cudaStream_t stream = nullptr;
  // Without the implicit waits that ordinary streams have for the default one.
  LARCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void destroy_stream(const Device& device) {
  // A destructor calls this: an error here was reported by an earlier call.
  cudaSetDevice(device.index);
  cudaStreamDestroy(stream_of(device));
}

void wait_for(const Device& device) {
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream_of(device)));
}

}  // namespace larch::cuda
