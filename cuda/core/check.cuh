// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include "larch/core/device.h"
#include "larch/core/error.h"

namespace larch::cuda {

/// Throws when a CUDA call failed: MemoryError for exhausted memory, DeviceError otherwise.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the sticky-free error, so that the next check starts clean
  const std::string text = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw MemoryError(text);
  throw DeviceError(text);
}

/// After a kernel launch. With CUDA_LAUNCH_BLOCKING=1, as in tests, a fault is reported here.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

/// Value of a device's attribute.
inline int attribute(cudaDeviceAttr which, const Device& device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device.index), "cudaDeviceGetAttribute");
  return value;
}
/// Shared memory in bytes that a block may have at most, on request.
inline int most_shared_bytes(const Device& device) {
  return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
}

/// Returns blocks of a launch for so many items.
inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

/// Returns the queue that the work of a context's device goes to: the stream argument of every
/// launch.
inline cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream);
}
/// Returns the same, and makes the device that of the thread's calls.
inline cudaStream_t stream_for(const Device& device) {
  check(cudaSetDevice(device.index), "cudaSetDevice(device.index)");
  return stream_of(device);
}

}  // namespace larch::cuda

#define LARCH_CUDA_CHECK(call) ::larch::cuda::check((call), #call)
