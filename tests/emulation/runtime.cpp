// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "larch/core/random_math.h"

namespace larch::emulation {
namespace {

constexpr size_t kTotalBytes = size_t{8} << 30;
/// Before and after what is asked for; holds the same pattern until somebody writes beyond the end.
constexpr size_t kBorder = 256;

thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string launch_error;

struct Kernel {
  const char* name;
  Bind bind;
};
std::mutex mutex;
std::map<const void*, Kernel> kernels;
std::map<char*, size_t> allocated;  // what was given out -> bytes
size_t used = 0;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Memory that nobody wrote holds what the seed says; NaN, very often, as floats.
void fill(char* memory, size_t bytes, uint64_t stream) {
  uint64_t pattern = hash64(seed(), stream, bytes);
  if ((pattern & 1) != 0) pattern |= 0x7fc000007fc00000ULL;
  for (size_t at = 0; at < bytes; at += sizeof pattern) {
    std::memcpy(memory + at, &pattern, std::min(bytes - at, sizeof pattern));
  }
}

std::optional<Kernel> known_kernel(const void* address) {
  const std::lock_guard lock(mutex);
  const auto known = kernels.find(address);
  return known == kernels.end() ? std::nullopt : std::optional(known->second);
}

bool is_border_whole(const char* memory, size_t bytes) {
  const auto is_whole = [](const char* from) {
    return std::all_of(from, from + kBorder, [](char c) { return c == '\x5a'; });
  };
  return is_whole(memory - kBorder) && is_whole(memory + bytes);
}

}  // namespace

void remember_kernel(const void* address, const char* name, Bind bind) {
  const std::lock_guard lock(mutex);
  kernels.insert_or_assign(address, Kernel{name, std::move(bind)});
}

void launch_kernel(const LaunchShape& shape, const std::function<void()>& kernel) {
  std::string wrong = run(shape, kernel);
  const std::lock_guard lock(mutex);
  for (const auto& [memory, bytes] : allocated) {
    if (!is_border_whole(memory, bytes)) {
      wrong += "\n  it wrote beyond memory of " + std::to_string(bytes) + " bytes";
    }
  }
  if (wrong.empty()) return;
  launch_error = std::string(shape.kernel) + " with seed " + std::to_string(seed()) + ": " + wrong;
  last_error = cudaErrorLaunchFailure;
}

}  // namespace larch::emulation

using namespace larch::emulation;  // NOLINT: the functions of CUDA have no namespace

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDeviceFunction:
      return "invalid device function";
    case cudaErrorLaunchFailure:
      return launch_error.c_str();
  }
  return "unknown error";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated device");
  properties->totalGlobalMem = kTotalBytes;
  return cudaSetDevice(device);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  static const int shared_bytes = [] {
    const char* kilobytes = std::getenv("LARCH_EMULATION_SHARED_KB");
    return (kilobytes != nullptr ? std::atoi(kilobytes) : 227) << 10;
  }();
  *value = attribute == cudaDevAttrMultiProcessorCount            ? processors()
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? shared_bytes
                                                                  : 1;
  return cudaSetDevice(device);
}
cudaError_t cudaSetDevice(int device) {
  return result(device == 0 ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(mutex);
  *total = kTotalBytes;
  *free = kTotalBytes - used;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = nullptr;
  return cudaSetDevice(device);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  std::memset(value, 0, sizeof(uint64_t));
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return result(*memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  const std::lock_guard lock(mutex);
  const size_t whole = (bytes + 3 * kBorder - 1) / kBorder * kBorder;
  if (bytes > kTotalBytes - used) return result(cudaErrorMemoryAllocation);
  auto* start = static_cast<char*>(std::aligned_alloc(kBorder, whole));
  if (start == nullptr) return result(cudaErrorMemoryAllocation);
  static uint64_t count = 0;
  std::memset(start, 0x5a, whole);
  fill(start + kBorder, bytes, ++count);
  allocated[start + kBorder] = bytes;
  used += bytes;
  *memory = start + kBorder;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  const std::lock_guard lock(mutex);
  const auto found = allocated.find(static_cast<char*>(memory));
  if (found == allocated.end()) return result(cudaErrorInvalidValue);
  fill(found->first, found->second, 0);
  std::free(found->first - kBorder);
  used -= found->second;
  allocated.erase(found);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int value) {
  return result(static_cast<size_t>(value) <= kMaximumShared ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads,
                                                          size_t shared_bytes) {
  const bool fits = threads <= static_cast<int>(kMaximumThreads) && shared_bytes <= kMaximumShared;
  *blocks = fits ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 blocks, dim3 threads,
                                        void** arguments, size_t shared_bytes, cudaStream_t) {
  const std::optional<Kernel> found = known_kernel(kernel);
  if (!found) return result(cudaErrorInvalidDeviceFunction);
  launch_kernel({found->name, blocks, threads, shared_bytes, true}, found->bind(arguments));
  return last_error;
}

/// Launches one after the other.
struct CUgraph_st {
  std::vector<std::pair<LaunchShape, std::function<void()>>> launches{};
};

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;  // NOLINT(cppcoreguidelines-owning-memory): as in CUDA
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;  // NOLINT(cppcoreguidelines-owning-memory)
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* /*after*/, size_t count,
                                   const cudaKernelNodeParams* params) {
  // Each is to wait for the one before.
  if (count != (graph->launches.empty() ? 0U : 1U)) return result(cudaErrorInvalidValue);
  const std::optional<Kernel> found = known_kernel(params->func);
  if (!found) return result(cudaErrorInvalidDeviceFunction);
  graph->launches.emplace_back(
      LaunchShape{found->name, params->gridDim, params->blockDim, params->sharedMemBytes},
      found->bind(params->kernelParams));
  *node = reinterpret_cast<cudaGraphNode_t>(graph);  // none of them is asked for again
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* ready, cudaGraph_t graph, uint64_t) {
  *ready = graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const auto& [shape, kernel] : graph->launches) launch_kernel(shape, kernel);
  return last_error;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return cudaSuccess;
}
