// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/pbt/boost.h"

namespace larch::pbt::cuda {
namespace {

struct Places {
  const uint32_t* integral;
  const int64_t* bases;
  int64_t sample_count;
  const uint32_t* index;
  int64_t selected;
};

__device__ int32_t response(const PoolFeature& feature, const features::LinearTap* taps,
                            const Places& places, int64_t k) {
  const int64_t base = places.bases[feature.channel * places.sample_count + places.index[k]];
  return features::linear_response(taps + feature.first_tap, feature.n_tap, places.integral + base);
}

// ---- ranges: one block a feature sorts the values of at most 4096 samples ----

constexpr int kSortThreads = 256, kSortItems = 16;

__global__ void range_kernel(const PoolFeature* features, const features::LinearTap* taps,
                             Places places, CodeMap* maps) {
  using Sort = cub::BlockRadixSort<int32_t, kSortThreads, kSortItems>;
  __shared__ typename Sort::TempStorage storage;
  __shared__ int32_t low, high;
  const PoolFeature feature = features[blockIdx.x];
  int32_t values[kSortItems];
  for (int i = 0; i < kSortItems; ++i) {
    const int64_t k = static_cast<int64_t>(threadIdx.x) * kSortItems + i;
    values[i] = k < places.selected ? response(feature, taps, places, k) : INT32_MAX;
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

// ---- the matrix of bins: [block of 128 features][sample][128] ----

constexpr int kFeatures = 128;

__global__ void codes_kernel(const PoolFeature* features, int64_t feature_count,
                             const features::LinearTap* taps, Places places, uint8_t* matrix) {
  const int64_t f = static_cast<int64_t>(blockIdx.x) * kFeatures + threadIdx.x;
  const bool real = f < feature_count;
  const PoolFeature feature = real ? features[f] : PoolFeature{};
  uint8_t* block = matrix + blockIdx.x * places.selected * kFeatures;
  for (int64_t k = blockIdx.y; k < places.selected; k += gridDim.y) {
    block[k * kFeatures + threadIdx.x] =
        real ? static_cast<uint8_t>(code_of(feature.codes, response(feature, taps, places, k))) : 0;
  }
}

/// Zooms the codes of each feature onto 64 bins, in place.
__global__ void zoom_kernel(uint8_t* matrix, int64_t selected, BinMap* maps) {
  uint8_t* column = matrix + blockIdx.x * selected * kFeatures + threadIdx.x;
  uint32_t low = 255, high = 0;
  for (int64_t k = 0; k < selected; ++k) {
    const uint32_t code = column[k * kFeatures];
    low = min(low, code);
    high = max(high, code);
  }
  const BinMap map = make_bin_map(low, high);
  for (int64_t k = 0; k < selected; ++k) {
    column[k * kFeatures] = static_cast<uint8_t>(bin_of(map, column[k * kFeatures]));
  }
  maps[blockIdx.x * kFeatures + threadIdx.x] = map;
}

// ---- rounds ----

/// The state of the rounds, on the device throughout.
struct Rounds {
  const uint8_t* matrix;
  const BinMap* maps;
  const PoolFeature* features;
  int64_t feature_count;
  int64_t selected;
  const uint8_t* positive;
  double* weight;
  int32_t* signed_weight;
  uint64_t* total;           // of the current round
  unsigned long long* best;  // key of the current round
  BoostRound* result;        // one a round
  WeakKind kind;
  EmptyBins empty_bins;
};

/// Integer weights of the round that begins, and their sum. One block.
__device__ void quantise(const Rounds& r) {
  using Reduce = cub::BlockReduce<unsigned long long, 1024>;
  __shared__ typename Reduce::TempStorage storage;
  unsigned long long sum = 0;
  for (int64_t k = threadIdx.x; k < r.selected; k += blockDim.x) {
    const int32_t s = quantised_weight(r.weight[k], r.positive[k] != 0);
    r.signed_weight[k] = s;
    sum += static_cast<unsigned long long>(s < 0 ? -s : s);
  }
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) {
    *r.total = sum;
    *r.best = ~0ULL;
  }
}

__global__ void first_round_kernel(Rounds r) {
  quantise(r);
}

/// One thread a feature with a private histogram in shared memory, laid out [bin][thread], so that
/// a warp never meets in a bank and nothing is atomic.
__global__ void histogram_kernel(Rounds r) {
  __shared__ int32_t d[kBins * kFeatures];
  for (int b = 0; b < kBins; ++b) d[b * kFeatures + threadIdx.x] = 0;
  const uint8_t* column = r.matrix + blockIdx.x * r.selected * kFeatures + threadIdx.x;
#pragma unroll 4
  for (int64_t k = 0; k < r.selected; ++k) {
    d[column[k * kFeatures] * kFeatures + threadIdx.x] += r.signed_weight[k];
  }
  const int64_t f = static_cast<int64_t>(blockIdx.x) * kFeatures + threadIdx.x;
  uint64_t key = ~0ULL;
  if (f < r.feature_count && r.features[f].codes.lo != r.features[f].codes.hi) {
    uint64_t mask;
    const uint64_t agreement = r.kind == WeakKind::kHist64
                                   ? histogram_agreement(d + threadIdx.x, kFeatures)
                                   : threshold_agreement(d + threadIdx.x, kFeatures, &mask);
    key = candidate_key(*r.total - agreement + r.features[f].cost_units, r.features[f].n_tap,
                        static_cast<uint32_t>(f));
  }
  for (int step = 16; step > 0; step /= 2) {
    const uint64_t other = __shfl_down_sync(0xffffffffu, key, step);
    if (other < key) key = other;
  }
  if (threadIdx.x % 32 == 0 && key != ~0ULL)
    atomicMin(r.best, static_cast<unsigned long long>(key));
}

/// Describes the winner and updates the weights. One block.
__global__ void update_kernel(Rounds r, int round) {
  __shared__ int32_t d[kBins];
  __shared__ uint64_t mask;
  __shared__ double error;
  const unsigned long long key = *r.best;
  if (key == ~0ULL) {
    if (threadIdx.x == 0) r.result[round].found = false;
    return;
  }
  const auto feature = static_cast<uint32_t>(key & 0xffffff);
  const uint8_t* column =
      r.matrix + (feature / kFeatures) * r.selected * kFeatures + feature % kFeatures;
  if (threadIdx.x < kBins) d[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t k = threadIdx.x; k < r.selected; k += blockDim.x) {
    atomicAdd(&d[column[k * kFeatures]], r.signed_weight[k]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    BoostRound out;
    out.found = true;
    out.feature = feature;
    out.total = *r.total;
    out.bins = r.maps[feature];
    if (r.kind == WeakKind::kHist64) {
      out.agreement = histogram_agreement(d, 1);
      out.mask = histogram_mask(d, 1, r.empty_bins);
    } else {
      out.agreement = threshold_agreement(d, 1, &out.mask);
    }
    r.result[round] = out;
    mask = out.mask;
    error = static_cast<double>(out.total - out.agreement) / (2.0 * static_cast<double>(out.total));
  }
  __syncthreads();
  for (int64_t k = threadIdx.x; k < r.selected; k += blockDim.x) {
    const bool vote = (mask >> column[k * kFeatures]) & 1;
    r.weight[k] = updated_weight(r.weight[k], vote == (r.positive[k] != 0), error);
  }
  __syncthreads();
  quantise(r);
}

Places places_on_device(const SamplePlaces& places, const Buffer<uint32_t>& index) {
  return {places.integral, places.bases, static_cast<int64_t>(places.sample_count), index.data(),
          static_cast<int64_t>(index.size())};
}

/// Builds the matrix of the selected samples.
void build_matrix(const BoostJob& job, const Places& places, Buffer<uint8_t>& matrix,
                  Buffer<BinMap>& maps) {
  const auto blocks = static_cast<unsigned>(maps.size() / kFeatures);
  const auto lanes = static_cast<unsigned>(places.selected < 1024 ? places.selected : 1024);
  codes_kernel<<<dim3(blocks, lanes), kFeatures>>>(
      job.features, static_cast<int64_t>(job.feature_count), job.taps, places, matrix.data());
  larch::cuda::check_launch("codes_kernel");
  zoom_kernel<<<blocks, kFeatures>>>(matrix.data(), places.selected, maps.data());
  larch::cuda::check_launch("zoom_kernel");
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
  range_kernel<<<static_cast<unsigned>(job.feature_count), kSortThreads>>>(
      job.features, job.taps, places_on_device(job.places, index), maps.data());
  larch::cuda::check_launch("range_kernel");
  return maps.to_vector();
}

std::vector<BoostRound> boost(const BoostJob& job) {
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  const BoostProblem& problem = job.problem;
  const size_t n = problem.places.index.size();
  const size_t blocks = (job.feature_count + kFeatures - 1) / kFeatures;
  const auto rounds = static_cast<size_t>(problem.rounds);
  const Buffer<uint32_t> index(device, problem.places.index);
  const Buffer<uint8_t> positive(device, problem.positive);
  Buffer<double> weight(device, problem.weight);
  Buffer<int32_t> signed_weight(device, n);
  Buffer<uint64_t> total(device, 1);
  Buffer<unsigned long long> best(device, 1);
  Buffer<BoostRound> result(device, rounds);
  Buffer<uint8_t> matrix(device, blocks * n * kFeatures);
  Buffer<BinMap> maps(device, blocks * kFeatures);
  build_matrix(job, places_on_device(problem.places, index), matrix, maps);
  const Rounds state{matrix.data(),
                     maps.data(),
                     job.features,
                     static_cast<int64_t>(job.feature_count),
                     static_cast<int64_t>(n),
                     positive.data(),
                     weight.data(),
                     signed_weight.data(),
                     total.data(),
                     best.data(),
                     result.data(),
                     problem.kind,
                     problem.empty_bins};
  first_round_kernel<<<1, 1024>>>(state);
  larch::cuda::check_launch("first_round_kernel");
  for (int round = 0; round < problem.rounds; ++round) {
    histogram_kernel<<<static_cast<unsigned>(blocks), kFeatures>>>(state);
    larch::cuda::check_launch("histogram_kernel");
    update_kernel<<<1, 1024>>>(state, round);
    larch::cuda::check_launch("update_kernel");
  }
  std::vector<BoostRound> found = result.to_vector();
  for (size_t t = 0; t < found.size(); ++t) {
    if (!found[t].found) found.resize(t + 1);
  }
  return found;
}

}  // namespace larch::pbt::cuda
