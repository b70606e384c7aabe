// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "tests/emulation/device_memory.h"

// What the kernels use of CUB's header of this name.
namespace cub {

/// Sorts kItems keys of each of kThreads threads along x, ascending; thread t gets those of the
/// ranks from t kItems on. The storage may be used again after a barrier only.
template <class Key, int kThreads, int kItems>
class BlockRadixSort {
 public:
  struct TempStorage {
    Key keys[kThreads * kItems];
  };

  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}

  void Sort(Key (&keys)[kItems]) {
    Key* const own = storage_.keys + threadIdx.x * kItems;
    for (int i = 0; i < kItems; ++i) own[i] = keys[i];
    __syncthreads();
    if (threadIdx.x == 0) larch::emulation::sort_keys(storage_.keys, kThreads * kItems);
    __syncthreads();
    for (int i = 0; i < kItems; ++i) keys[i] = own[i];
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
