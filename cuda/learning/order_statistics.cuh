// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cub/block/block_radix_sort.cuh>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/learning/feature_source.h"

namespace larch::learning::cuda {

constexpr int kSortThreads = 256, kSortItems = 16;
static_assert(size_t{kSortThreads} * kSortItems == kMaximumRanged);

/// The code map of a column from the order statistics of its values: a block sorts those of one
/// column. `value(column, k)` is trivially copyable and gives the value at sample k < samples.
template <class Value>
__global__ void range_kernel(const __grid_constant__ Value value, int64_t samples, CodeMap* maps) {
  using Sort = cub::BlockRadixSort<int32_t, kSortThreads, kSortItems>;
  __shared__ typename Sort::TempStorage storage;
  __shared__ int32_t low, high;
  int32_t values[kSortItems];
#pragma unroll
  for (int i = 0; i < kSortItems; ++i) {
    const int64_t k = static_cast<int64_t>(i) * kSortThreads + threadIdx.x;
    values[i] = k < samples ? value(blockIdx.x, k) : INT32_MAX;
  }
  Sort(storage).Sort(values);
  const auto n = static_cast<size_t>(samples);
  for (int i = 0; i < kSortItems; ++i) {
    const size_t rank = static_cast<size_t>(threadIdx.x) * kSortItems + static_cast<size_t>(i);
    if (rank == low_rank(n)) low = values[i];
    if (rank == high_rank(n)) high = values[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) maps[blockIdx.x] = make_code_map(low, high);
}

/// Returns the code maps of so many columns.
template <class Value>
std::vector<CodeMap> range_columns(const Value& value, size_t columns, size_t samples,
                                   const Device& device) {
  Buffer<CodeMap> maps(device, columns);
  if (columns == 0) return {};
  range_kernel<<<static_cast<unsigned>(columns), kSortThreads, 0, larch::cuda::stream_of(device)>>>(
      value, static_cast<int64_t>(samples), maps.data());
  larch::cuda::check_launch("range_kernel");
  return maps.to_vector();
}

}  // namespace larch::learning::cuda
