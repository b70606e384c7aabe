// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include <cuda_runtime.h>

// What the kernels use of CUB's header of this name.
namespace cub {

/// Sums and other reductions over blocks of kThreads threads along x. As CUB has it, thread 0 alone
/// gets the result, and the storage may be used again after a barrier only.
template <class T, int kThreads>
class BlockReduce {
 public:
  struct TempStorage {
    T values[kThreads];
  };

  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  T Sum(T value) {
    return Reduce(value, [](const T& a, const T& b) { return static_cast<T>(a + b); });
  }
  template <class Operation>
  T Reduce(T value, Operation operation) {
    storage_.values[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x != 0) {
      std::memset(static_cast<void*>(&value), 0xa5, sizeof(T));
      return value;
    }
    for (int i = 1; i < kThreads; ++i) value = operation(value, storage_.values[i]);
    return value;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
