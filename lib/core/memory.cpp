// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <string>

#include "larch/core/buffer.h"
#include "larch/core/dispatch.h"

namespace larch::memory {
namespace cpu {

/// Above this size it is asked first whether the memory is there: the kernel would promise it and
/// end the process later.
constexpr size_t kWorthAsking = size_t{256} << 20;

void* allocate(int /*index*/, size_t bytes) {
  const size_t rounded = (bytes + 255) / 256 * 256;
  const bool too_large = bytes > kWorthAsking && bytes > free_memory_bytes(Device::cpu());
  void* data = too_large ? nullptr : std::aligned_alloc(256, rounded);
  if (data == nullptr) {
    throw MemoryError("not enough host memory: needed " + std::to_string(bytes) +
                      " bytes, available " + std::to_string(free_memory_bytes(Device::cpu())));
  }
  return data;
}
void release(int /*index*/, void* data) {
  std::free(data);
}
void set_zero(int /*index*/, void* data, size_t bytes) {
  std::memset(data, 0, bytes);
}

}  // namespace cpu
namespace cuda {  // defined in cuda/core/memory.cu, if built
void* allocate(int index, size_t bytes);
void release(int index, void* data);
void set_zero(int index, void* data, size_t bytes);
void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes);
}  // namespace cuda

namespace {
constexpr Dispatch<void*(int, size_t)> kAllocate{"memory::allocate", cpu::allocate,
                                                 LARCH_CUDA_FN(cuda::allocate)};
constexpr Dispatch<void(int, void*)> kRelease{"memory::release", cpu::release,
                                              LARCH_CUDA_FN(cuda::release)};
constexpr Dispatch<void(int, void*, size_t)> kSetZero{"memory::set_zero", cpu::set_zero,
                                                      LARCH_CUDA_FN(cuda::set_zero)};
constexpr Dispatch<void(const Device&, void*, const Device&, const void*, size_t)> kCopy{
    "memory::copy", nullptr, LARCH_CUDA_FN(cuda::copy)};
}  // namespace

void* allocate(const Device& device, size_t bytes) {
  return kAllocate(device, device.index, bytes);
}
void release(const Device& device, void* data) noexcept {
  try {
    kRelease(device, device.index, data);
  } catch (...) {
    std::abort();  // memory of a device exists only where its code does
  }
}
void set_zero(const Device& device, void* data, size_t bytes) {
  kSetZero(device, device.index, data, bytes);
}
void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes) {
  if (!to_device.is_cuda() && !from_device.is_cuda()) {
    std::memcpy(to, from, bytes);
  } else {
    kCopy(to_device.is_cuda() ? to_device : from_device, to_device, to, from_device, from, bytes);
  }
}

}  // namespace larch::memory
