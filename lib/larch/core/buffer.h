// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "larch/core/device.h"

namespace larch {

namespace memory {
/// Uninitialised memory on `device`, aligned to 256 bytes. Throws MemoryError that gives the needed
/// and the free bytes. On a CUDA device all of these work in the order of `device.stream`.
void* allocate(const Device& device, size_t bytes);
void release(const Device& device, void* data) noexcept;
/// Copies between any two devices, in the stream of the one that is not the host; on return `from`
/// may be changed, `to` be read on the host or by later work in the stream. Large copies between
/// host and GPU go through pinned memory, by up to four threads.
void copy(const Device& to_device, void* to, const Device& from_device, const void* from,
          size_t bytes);
void set_zero(const Device& device, void* data, size_t bytes);
}  // namespace memory

/// Owns `size()` values of a trivially copyable type on one device. It moves and never copies by
/// itself: crossing between host and device is always a visible call. Kernels take raw pointers.
/// The memory is given back in the order of the stream of the device that the buffer was made with:
/// work on it in other streams must be done by then.
///
/// Why not a host-device mirror that synchronises lazily: hidden copies are what makes a pipeline
/// slow, and a stage here is one call whose data stays where it is. Why not managed memory: asking
/// for more than the card has can hang a shared GPU.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  /// Uninitialised.
  Buffer(const Device& device, size_t size)
      : device_(device),
        size_(size),
        data_(size == 0 ? nullptr : static_cast<T*>(memory::allocate(device, size * sizeof(T)))) {}
  /// A copy of host values.
  Buffer(const Device& device, std::span<const T> host) : Buffer(device, host.size()) {
    upload(host);
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) memory::release(device_, data_);
  }

  const Device& device() const { return device_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }

  void set_zero() {
    if (size_ > 0) memory::set_zero(device_, data_, size_ * sizeof(T));
  }
  /// Host values to the place that starts at element `offset`.
  void upload(std::span<const T> host, size_t offset = 0) {
    if (!host.empty()) {
      memory::copy(device_, data_ + offset, Device::cpu(), host.data(), host.size_bytes());
    }
  }
  void download(std::span<T> host, size_t offset = 0) const {
    if (!host.empty()) {
      memory::copy(Device::cpu(), host.data(), device_, data_ + offset, host.size_bytes());
    }
  }
  std::vector<T> to_vector() const {
    std::vector<T> host(size_);
    download(host);
    return host;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
  }

  Device device_{};
  size_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace larch
