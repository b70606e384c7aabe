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

/// The smallest and the largest values of a column, as ColumnEnds::lists: a block sorts those of
/// one column. `value(column, k)` is trivially copyable and gives the value at sample k <
/// samples.
template <class Value>
__global__ void range_kernel(const __grid_constant__ Value value, int samples, int keep,
                             int32_t* ends) {
  using Sort = cub::BlockRadixSort<int32_t, kSortThreads, kSortItems>;
  __shared__ typename Sort::TempStorage storage;
  int32_t values[kSortItems];
#pragma unroll
  for (int i = 0; i < kSortItems; ++i) {
    const int64_t k = static_cast<int64_t>(i) * kSortThreads + threadIdx.x;
    values[i] = k < samples ? value(blockIdx.x, k) : INT32_MAX;
  }
  Sort(storage).Sort(values);
  int32_t* low = ends + int64_t{2} * keep * blockIdx.x;
  for (int i = 0; i < kSortItems; ++i) {
    const int rank = static_cast<int>(threadIdx.x) * kSortItems + i;
    const int from_top = rank < samples ? samples - 1 - rank : rank;
    if (rank < keep) low[rank] = values[i];
    if (from_top < keep) low[keep + from_top] = rank < samples ? ~values[i] : INT32_MAX;
  }
}

/// Adds the values of so many columns at samples to `all`.
template <class Value>
void add_ends(const Value& value, size_t columns, size_t samples, ColumnEnds& all,
              const Device& device) {
  if (columns == 0) return;
  Buffer<int32_t> ends(device, 2 * columns * all.keep);
  range_kernel<<<static_cast<unsigned>(columns), kSortThreads, 0, larch::cuda::stream_of(device)>>>(
      value, static_cast<int>(samples), static_cast<int>(all.keep), ends.data());
  larch::cuda::check_launch("range_kernel");
  const std::vector<int32_t> found = ends.to_vector();
  for (size_t k = 0; k < found.size(); ++k) all.insert(k / all.keep, found[k]);
}

}  // namespace larch::learning::cuda
