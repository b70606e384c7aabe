// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

// What the host uses of CUB's header of this name; it runs on the host.
#define CUB_VERSION 300000
namespace cub {

struct DeviceSelect {
  /// Without scratch memory: how much of it is wanted. The order is kept.
  template <class From, class To, class Count, class Wanted>
  static cudaError_t If(void* scratch, size_t& bytes, From from, To to, Count* found, int64_t count,
                        Wanted wanted, cudaStream_t /*stream*/) {
    if (scratch == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    Count taken = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (wanted(from[i])) to[taken++] = from[i];
    }
    *found = taken;
    return cudaSuccess;
  }
};

}  // namespace cub
