// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <mutex>

#include "cuda/core/check.cuh"
#include "larch/core/device.h"
#include "larch/core/parallel.h"

namespace larch::memory::cuda {

namespace {

/// Buffers come from the device's memory pool, which keeps what is released: a level of a
/// tree takes and gives back gigabytes, and asking the driver each time costs milliseconds.
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

/// Two pieces of pinned memory through which large copies go: one is on its way over the bus while
/// the other is filled or emptied. The driver's own staging of pageable memory uses one thread. All
/// streams of a device share the pieces: an upload leaves them on their way, so whoever comes next
/// waits for what was sent last of a piece before writing to it.
class Staging {
 public:
  static constexpr size_t kWorthIt = size_t{4} << 20;

  /// Each of these returns false if there is no pinned memory to be had.
  bool to_device(cudaStream_t stream, void* to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!ready()) return false;
    int side = 0;
    for (size_t at = 0; at < bytes; at += kPiece, side = 1 - side) {
      const size_t count = std::min(kPiece, bytes - at);
      LARCH_CUDA_CHECK(cudaEventSynchronize(arrived_[side]));
      copy_on_host(piece_[side], static_cast<const uint8_t*>(from) + at, count);
      send(stream, static_cast<uint8_t*>(to) + at, piece_[side], count, side);
    }
    return true;
  }
  bool to_host(cudaStream_t stream, void* to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!ready()) return false;
    for (const cudaEvent_t sent : arrived_) LARCH_CUDA_CHECK(cudaEventSynchronize(sent));
    const auto* source = static_cast<const uint8_t*>(from);
    int side = 0;
    send(stream, piece_[0], source, std::min(kPiece, bytes), 0);
    for (size_t at = 0; at < bytes; at += kPiece, side = 1 - side) {
      const size_t next = at + kPiece;
      if (next < bytes) {
        send(stream, piece_[1 - side], source + next, std::min(kPiece, bytes - next), 1 - side);
      }
      LARCH_CUDA_CHECK(cudaEventSynchronize(arrived_[side]));
      copy_on_host(static_cast<uint8_t*>(to) + at, piece_[side], std::min(kPiece, bytes - at));
    }
    return true;
  }

 private:
  static constexpr size_t kPiece = size_t{8} << 20;

  /// The pieces are kept until the process ends.
  bool ready() {
    if (asked_) return piece_[1] != nullptr;
    asked_ = true;
    for (int side = 0; side < 2; ++side) {
      void* pinned = nullptr;
      if (cudaHostAlloc(&pinned, kPiece, cudaHostAllocPortable) != cudaSuccess) {
        cudaGetLastError();
        return false;
      }
      LARCH_CUDA_CHECK(cudaEventCreateWithFlags(&arrived_[side], cudaEventDisableTiming));
      piece_[side] = static_cast<uint8_t*>(pinned);
    }
    return true;
  }
  void send(cudaStream_t stream, void* to, const void* from, size_t bytes, int side) {
    LARCH_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    LARCH_CUDA_CHECK(cudaEventRecord(arrived_[side], stream));
  }
  static void copy_on_host(uint8_t* to, const uint8_t* from, size_t bytes) {
    constexpr int kThreads = 4;
    parallel_for(kThreads, static_cast<int64_t>(bytes), int64_t{1} << 20,
                 [&](int64_t begin, int64_t end) {
                   std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
                 });
  }

  std::mutex mutex_;
  bool asked_ = false;
  uint8_t* piece_[2] = {nullptr, nullptr};
  cudaEvent_t arrived_[2] = {nullptr, nullptr};
};

Staging* staging(int index) {
  static Staging all[64];
  return index < 64 ? &all[index] : nullptr;
}

}  // namespace

void* allocate(const Device& device, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  keep_released(device.index);
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, bytes, larch::cuda::stream_of(device));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw MemoryError("not enough device memory: needed " + std::to_string(bytes) +
                      " bytes, free " + std::to_string(free_memory_bytes(device)) +
                      "; use a smaller input or --device cpu");
  }
  LARCH_CUDA_CHECK(status);
  return data;
}

void release(const Device& device, void* data) {
  // A destructor calls this: an error here was reported by an earlier call.
  cudaSetDevice(device.index);
  cudaFreeAsync(data, larch::cuda::stream_of(device));
}

void set_zero(const Device& device, void* data, size_t bytes) {
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  LARCH_CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, larch::cuda::stream_of(device)));
}

void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes) {
  const Device& gpu = to_device.is_cuda() ? to_device : from_device;
  const cudaStream_t stream = larch::cuda::stream_of(gpu);
  LARCH_CUDA_CHECK(cudaSetDevice(gpu.index));
  Staging* pinned = bytes >= Staging::kWorthIt ? staging(gpu.index) : nullptr;
  if (pinned != nullptr && !from_device.is_cuda() && pinned->to_device(stream, to, from, bytes)) {
    return;
  }
  if (pinned != nullptr && !to_device.is_cuda() && pinned->to_host(stream, to, from, bytes)) return;
  if (stream == nullptr) {
    LARCH_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    return;
  }
  LARCH_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace larch::memory::cuda
