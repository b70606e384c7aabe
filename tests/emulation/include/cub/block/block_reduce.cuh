// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

// What the kernels use of CUB's header of this name.
namespace cub {

/// Sums over blocks of kThreads threads along x. As CUB has it, thread 0 alone gets the sum, and
/// the storage may be used again after a barrier only.
template <class T, int kThreads>
class BlockReduce {
 public:
  struct TempStorage {
    T values[kThreads];
  };

  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  T Sum(T value) {
    storage_.values[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x != 0) return static_cast<T>(~value);
    T sum{};
    for (const T& each : storage_.values) sum += each;
    return sum;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
