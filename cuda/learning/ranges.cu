// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cub/block/block_radix_sort.cuh>

#include "cuda/core/check.cuh"
#include "cuda/learning/columns.cuh"
#include "larch/core/buffer.h"

namespace larch::learning::cuda {
namespace {

constexpr int kSortThreads = 256, kSortItems = 16;

/// One block a feature sorts the values of at most 4096 samples.
__global__ void range_kernel(const PoolFeature* features, const features::LinearTap* taps,
                             Places places, CodeMap* maps) {
  using Sort = cub::BlockRadixSort<int32_t, kSortThreads, kSortItems>;
  __shared__ typename Sort::TempStorage storage;
  __shared__ int32_t low, high;
  const PoolFeature feature = features[blockIdx.x];
  const int64_t* bases = places.bases + feature.channel * places.sample_count;
  int32_t values[kSortItems];
#pragma unroll
  for (int i = 0; i < kSortItems; ++i) {
    const int64_t k = static_cast<int64_t>(i) * kSortThreads + threadIdx.x;
    values[i] = INT32_MAX;
    if (k < places.selected) {
      values[i] = features::linear_response(taps + feature.first_tap, feature.n_tap,
                                            places.integral + bases[places.index[k]]);
    }
  }
  Sort(storage).Sort(values);
  const auto n = static_cast<size_t>(places.selected);
  for (int i = 0; i < kSortItems; ++i) {
    const size_t rank = static_cast<size_t>(threadIdx.x) * kSortItems + static_cast<size_t>(i);
    if (rank == low_rank(n)) low = values[i];
    if (rank == high_rank(n)) high = values[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) maps[blockIdx.x] = make_code_map(low, high);
}

}  // namespace

std::vector<CodeMap> range_pool(const RangeJob& job) {
  const size_t n = job.places.index.size();
  if (n > size_t{kSortThreads} * kSortItems) {
    throw DeviceError("pbt::range_pool: at most 4096 samples on a CUDA device");
  }
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  const Buffer<uint32_t> index(device, job.places.index);
  Buffer<CodeMap> maps(device, job.feature_count);
  const Places places{job.places.integral, job.places.bases,
                      static_cast<int64_t>(job.places.sample_count), index.data(),
                      static_cast<int64_t>(n)};
  range_kernel<<<static_cast<unsigned>(job.feature_count), kSortThreads>>>(job.features, job.taps,
                                                                           places, maps.data());
  larch::cuda::check_launch("range_kernel");
  return maps.to_vector();
}

}  // namespace larch::learning::cuda
