// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Returns the queue that the work of a context's device goes to: the stream argument of every
/// launch.
inline cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream);
}

}  // namespace larch::cuda

#define LARCH_CUDA_CHECK(call) ::larch::cuda::check((call), #call)
