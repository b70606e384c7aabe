// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "larch/core/buffer.h"
#include "larch/core/dispatch.h"
#include "larch/core/host_memory.h"

namespace larch::memory {
namespace cpu {

void* allocate(const Device& /*device*/, size_t bytes) {
  constexpr size_t kAlignment = 256;
  void* data = nullptr;
  if (bytes <= SIZE_MAX - kAlignment && host_memory_allows(bytes)) {
    data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  if (data == nullptr) throw MemoryError(out_of_memory_text(bytes));
  return data;
}
void release(const Device& /*device*/, void* data) {
  std::free(data);
}
void set_zero(const Device& /*device*/, void* data, size_t bytes) {
  std::memset(data, 0, bytes);
}

}  // namespace cpu
namespace cuda {  // defined in cuda/core/memory.cu, if built
void* allocate(const Device& device, size_t bytes);
void release(const Device& device, void* data);
void set_zero(const Device& device, void* data, size_t bytes);
void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes);
}  // namespace cuda

namespace {
constexpr Dispatch<void*(const Device&, size_t)> kAllocate{"memory::allocate", cpu::allocate,
                                                           LARCH_CUDA_FN(cuda::allocate)};
constexpr Dispatch<void(const Device&, void*)> kRelease{"memory::release", cpu::release,
                                                        LARCH_CUDA_FN(cuda::release)};
constexpr Dispatch<void(const Device&, void*, size_t)> kSetZero{"memory::set_zero", cpu::set_zero,
                                                                LARCH_CUDA_FN(cuda::set_zero)};
constexpr Dispatch<void(const Device&, void*, const Device&, const void*, size_t)> kCopy{
    "memory::copy", nullptr, LARCH_CUDA_FN(cuda::copy)};
}  // namespace

void* allocate(const Device& device, size_t bytes) {
  return kAllocate(device, device, bytes);
}
void release(const Device& device, void* data) noexcept {
  try {
    kRelease(device, device, data);
  } catch (...) {
    std::abort();  // memory of a device exists only where its code does
  }
}
void set_zero(const Device& device, void* data, size_t bytes) {
  kSetZero(device, device, data, bytes);
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
