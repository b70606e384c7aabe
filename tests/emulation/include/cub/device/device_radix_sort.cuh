// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <cuda_runtime.h>

// What the host uses of CUB's header of this name; it runs on the host.
namespace cub {

struct DeviceRadixSort {
  /// Without scratch memory: how much of it is wanted. Keys that agree in bits [begin_bit, end_bit)
  /// stay in their order.
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* scratch, size_t& bytes, const Key* from, Key* to,
                                        Count count, int begin_bit, int end_bit,
                                        cudaStream_t /*stream*/) {
    if (scratch == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    const int left_out = static_cast<int>(sizeof(Key)) * 8 - end_bit;
    const auto part = [=](Key key) { return key << left_out >> left_out >> begin_bit; };
    std::copy(from, from + count, to);
    std::stable_sort(to, to + count, [&](Key a, Key b) { return part(a) > part(b); });
    return cudaSuccess;
  }
};

}  // namespace cub
