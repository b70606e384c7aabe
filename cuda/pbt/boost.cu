// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <cub/block/block_reduce.cuh>

#include "cuda/core/check.cuh"
#include "cuda/pbt/columns.cuh"
#include "larch/core/buffer.h"

// The rounds of AdaBoost on one node. Two kernels a round and nothing for the host to do: one finds
// the best column of each block of columns, the other takes the best of those, describes it and
// updates the weights. All sums are of integers, so their order does not matter.
namespace larch::pbt::cuda {
namespace {

constexpr int kSlices = 2;       ///< warps of a block; each has its own part of the samples
constexpr int kLaneColumns = 4;  ///< columns of a lane
constexpr int kAhead = 16;       ///< samples whose rows are read ahead
constexpr int kUpdateThreads = 512;
constexpr int kHistogramWords = kColumns * kBins;

/// The best column of a block.
struct BlockBest {
  unsigned long long key = ~0ULL;
  uint32_t column = 0;
  uint32_t unused = 0;
  int32_t d[kBins];  ///< its histogram
};

/// The state of the rounds, on the device throughout.
struct Rounds {
  const uint8_t* matrix;
  const BinMap* maps;
  const Column* columns;
  int64_t block_count;
  int64_t selected;
  const uint8_t* positive;
  double* weight;
  int32_t* signed_weight;
  unsigned long long* totals;  ///< of each round
  BlockBest* best;             ///< of each block, in the current round
  int32_t* histograms;         ///< [block][bin][column], if samples are split over blocks
  BoostRound* result;          ///< of each round
  WeakKind kind;
  EmptyBins empty_bins;
};

/// Adds |weights| of a block's threads to the total of a round.
__device__ void add_to_total(unsigned long long* total, unsigned long long sum) {
  using Reduce = cub::BlockReduce<unsigned long long, kUpdateThreads>;
  __shared__ typename Reduce::TempStorage storage;
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

__device__ unsigned long long quantise(const Rounds& r, int64_t k, double weight) {
  const int32_t s = quantised_weight(weight, r.positive[k] != 0);
  r.signed_weight[k] = s;
  return static_cast<unsigned long long>(s < 0 ? -s : s);
}

__global__ void __launch_bounds__(kUpdateThreads) first_weights_kernel(Rounds r) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kUpdateThreads + threadIdx.x;
  add_to_total(r.totals, k < r.selected ? quantise(r, k, r.weight[k]) : 0);
}

/// Adds samples [begin, end) of a block of columns to the warp's histograms, laid out
/// [lane column][bin][lane]: lanes never meet in a bank, and nothing is atomic. The four columns of
/// a lane are independent, which hides the latency of reading, adding and writing back; the rows of
/// the next samples are on their way meanwhile.
__device__ void add_samples(const Rounds& r, int64_t block, int64_t begin, int64_t end,
                            int32_t* d) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* rows = reinterpret_cast<const uint32_t*>(r.matrix) + block * r.selected * 32 + lane;
  int32_t* mine = d + lane;
  uint32_t next_bins[kAhead];
  int32_t next_weights[kAhead];
  const auto read = [&](int64_t first) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const bool inside = first + i < end;
      next_bins[i] = inside ? __ldg(rows + (first + i) * 32) : 0;
      next_weights[i] = inside ? __ldg(r.signed_weight + first + i) : 0;
    }
  };
  read(begin);
  for (int64_t k = begin; k < end; k += kAhead) {
    uint32_t bins[kAhead];
    int32_t weights[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      bins[i] = next_bins[i];
      weights[i] = next_weights[i];
    }
    read(k + kAhead);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      int32_t value[kLaneColumns];
#pragma unroll
      for (int j = 0; j < kLaneColumns; ++j) {
        value[j] = mine[(j * kBins + static_cast<int>(bins[i] >> (8 * j) & 255)) * 32];
      }
#pragma unroll
      for (int j = 0; j < kLaneColumns; ++j) {
        mine[(j * kBins + static_cast<int>(bins[i] >> (8 * j) & 255)) * 32] = value[j] + weights[i];
      }
    }
  }
}

/// Takes the best column of a block whose histograms are at `d`, stride 32.
__device__ void choose_column(const Rounds& r, int64_t block, int round, const int32_t* d) {
  __shared__ unsigned long long keys[kSlices];
  __shared__ uint32_t chosen;
  unsigned long long best = ~0ULL;
  uint32_t best_column = 0;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int j = static_cast<int>(threadIdx.x) / 32; j < kLaneColumns; j += kSlices) {
    const int c = lane * kLaneColumns + j;
    const Column column = r.columns[block * kColumns + c];
    if (column.feature == kNoFeature || column.codes.lo == column.codes.hi) continue;
    const int32_t* histogram = d + j * kBins * 32 + lane;
    uint64_t mask;
    const uint64_t agreement = r.kind == WeakKind::kHist64
                                   ? histogram_agreement(histogram, 32)
                                   : threshold_agreement(histogram, 32, &mask);
    const unsigned long long key = candidate_key(r.totals[round] - agreement + column.cost_units,
                                                 column.n_tap, column.feature);
    if (key < best) {
      best = key;
      best_column = static_cast<uint32_t>(c);
    }
  }
  unsigned long long smallest = best;
  for (int step = 16; step > 0; step /= 2) {
    smallest = min(smallest, __shfl_xor_sync(0xffffffffu, smallest, step));
  }
  if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = smallest;
  if (threadIdx.x == 0) chosen = 0;
  __syncthreads();
  for (const unsigned long long key : keys) smallest = min(smallest, key);
  if (best == smallest && best != ~0ULL) chosen = best_column;  // keys differ by feature
  __syncthreads();
  BlockBest& out = r.best[block];
  const int c = static_cast<int>(chosen);
  for (int b = static_cast<int>(threadIdx.x); b < kBins; b += 32 * kSlices) {
    out.d[b] = d[((c % kLaneColumns) * kBins + b) * 32 + c / kLaneColumns];
  }
  if (threadIdx.x == 0) {
    out.key = smallest;
    out.column = static_cast<uint32_t>(block * kColumns + c);
  }
}

/// grid.x: blocks of columns; grid.y: parts of the samples, if there are too few blocks to fill the
/// device. With several parts the histograms are added up in memory and choose_kernel follows.
__global__ void __launch_bounds__(32 * kSlices) histogram_kernel(Rounds r, int round) {
  extern __shared__ int32_t d[];
  for (int i = static_cast<int>(threadIdx.x); i < kSlices * kHistogramWords; i += 32 * kSlices) {
    d[i] = 0;
  }
  __syncthreads();
  const int64_t slices = static_cast<int64_t>(gridDim.y) * kSlices;
  const int64_t slice = static_cast<int64_t>(blockIdx.y) * kSlices + threadIdx.x / 32;
  add_samples(r, blockIdx.x, r.selected * slice / slices, r.selected * (slice + 1) / slices,
              d + (threadIdx.x / 32) * kHistogramWords);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kHistogramWords; i += 32 * kSlices) {
    int32_t sum = d[i];
    for (int s = 1; s < kSlices; ++s) sum += d[i + s * kHistogramWords];
    if (gridDim.y > 1) {
      if (sum != 0) atomicAdd(&r.histograms[blockIdx.x * int64_t{kHistogramWords} + i], sum);
    } else {
      d[i] = sum;
    }
  }
  if (gridDim.y > 1) return;
  __syncthreads();
  choose_column(r, blockIdx.x, round, d);
}

/// After a histogram_kernel of several parts: takes the best column and clears the histograms.
__global__ void __launch_bounds__(32 * kSlices) choose_kernel(Rounds r, int round) {
  extern __shared__ int32_t d[];
  int32_t* sums = r.histograms + blockIdx.x * int64_t{kHistogramWords};
  for (int i = static_cast<int>(threadIdx.x); i < kHistogramWords; i += 32 * kSlices) {
    d[i] = sums[i];
    sums[i] = 0;
  }
  __syncthreads();
  choose_column(r, blockIdx.x, round, d);
}

/// The block with the smallest key. Every block of update_kernel finds it for itself.
__device__ int64_t best_block(const Rounds& r) {
  __shared__ unsigned long long smallest;
  __shared__ int64_t where;
  if (threadIdx.x == 0) {
    smallest = ~0ULL;
    where = -1;
  }
  __syncthreads();
  unsigned long long mine = ~0ULL;
  int64_t mine_at = -1;
  for (int64_t b = threadIdx.x; b < r.block_count; b += kUpdateThreads) {
    if (r.best[b].key < mine) {
      mine = r.best[b].key;
      mine_at = b;
    }
  }
  unsigned long long least = mine;
  for (int step = 16; step > 0; step /= 2) {
    least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
  }
  if (threadIdx.x % 32 == 0) atomicMin(&smallest, least);
  __syncthreads();
  if (mine == smallest && mine_at >= 0) where = mine_at;
  __syncthreads();
  return where;
}

/// Describes the winner of the round and updates the weights for the next one.
__global__ void __launch_bounds__(kUpdateThreads) update_kernel(Rounds r, int round) {
  __shared__ uint64_t mask;
  __shared__ double error;
  const int64_t block = best_block(r);
  if (block < 0) {
    if (threadIdx.x == 0 && blockIdx.x == 0) r.result[round].found = false;
    return;
  }
  const uint32_t column = r.best[block].column;
  if (threadIdx.x == 0) {
    const int32_t* d = r.best[block].d;
    BoostRound out;
    out.found = true;
    out.feature = r.columns[column].feature;
    out.total = r.totals[round];
    out.bins = r.maps[column];
    if (r.kind == WeakKind::kHist64) {
      out.agreement = histogram_agreement(d, 1);
      out.mask = histogram_mask(d, 1, r.empty_bins);
    } else {
      out.agreement = threshold_agreement(d, 1, &out.mask);
    }
    if (blockIdx.x == 0) r.result[round] = out;
    mask = out.mask;
    error = static_cast<double>(out.total - out.agreement) / (2.0 * static_cast<double>(out.total));
  }
  __syncthreads();
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kUpdateThreads + threadIdx.x;
  unsigned long long magnitude = 0;
  if (k < r.selected) {
    const uint32_t bin =
        r.matrix[(column / kColumns * r.selected + k) * kColumns + column % kColumns];
    const bool vote = (mask >> bin) & 1;
    const double weight = updated_weight(r.weight[k], vote == (r.positive[k] != 0), error);
    r.weight[k] = weight;
    magnitude = quantise(r, k, weight);
  }
  add_to_total(r.totals + round + 1, magnitude);
}

/// Parts of the samples: enough blocks for all processors, if each part stays worth its while.
unsigned parts_for(int64_t blocks, int64_t samples, const Device& device) {
  int processors = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  const int64_t wanted = (2 * int64_t{processors} + blocks - 1) / blocks;
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, samples / 512)));
}

void run_rounds(const Rounds& state, int rounds, const Device& device) {
  constexpr size_t kWordsBytes = kHistogramWords * sizeof(int32_t);
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(histogram_kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(kSlices * kWordsBytes)));
  const auto blocks = static_cast<unsigned>(state.block_count);
  const unsigned parts = parts_for(state.block_count, state.selected, device);
  const auto updates =
      static_cast<unsigned>((state.selected + kUpdateThreads - 1) / kUpdateThreads);
  Buffer<int32_t> histograms;
  Rounds r = state;
  if (parts > 1) {
    histograms = Buffer<int32_t>(device, size_t{blocks} * kHistogramWords);
    histograms.set_zero();
    r.histograms = histograms.data();
  }
  first_weights_kernel<<<updates, kUpdateThreads>>>(r);
  larch::cuda::check_launch("first_weights_kernel");
  for (int round = 0; round < rounds; ++round) {
    histogram_kernel<<<dim3(blocks, parts), 32 * kSlices, kSlices * kWordsBytes>>>(r, round);
    larch::cuda::check_launch("histogram_kernel");
    if (parts > 1) {
      choose_kernel<<<blocks, 32 * kSlices, kWordsBytes>>>(r, round);
      larch::cuda::check_launch("choose_kernel");
    }
    update_kernel<<<updates, kUpdateThreads>>>(r, round);
    larch::cuda::check_launch("update_kernel");
  }
}

/// The plan is made anew when the features are others than the last time: those of the whole pool
/// and of a tree of a forest stay the same from node to node.
std::shared_ptr<const ColumnPlan> plan_for(const BoostJob& job, const Device& device) {
  const FeaturePool& pool = *job.pool;
  const std::span<const uint32_t> features = job.problem.features;
  if (pool.columns == nullptr || !std::equal(features.begin(), features.end(),
                                             pool.columns_of.begin(), pool.columns_of.end())) {
    pool.columns = std::make_shared<const ColumnPlan>(make_column_plan(pool, features, device));
    pool.columns_of.assign(features.begin(), features.end());
  }
  return std::static_pointer_cast<const ColumnPlan>(pool.columns);
}

}  // namespace

std::vector<BoostRound> boost(const BoostJob& job) {
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  const BoostProblem& problem = job.problem;
  const std::shared_ptr<const ColumnPlan> plan = plan_for(job, device);
  const size_t n = problem.places.index.size();
  const auto rounds = static_cast<size_t>(problem.rounds);
  const auto blocks = static_cast<size_t>(plan->block_count);
  const Buffer<uint32_t> index(device, problem.places.index);
  const Buffer<uint8_t> positive(device, problem.positive);
  Buffer<double> weight(device, problem.weight);
  Buffer<int32_t> signed_weight(device, n);
  Buffer<unsigned long long> totals(device, rounds + 1);
  totals.set_zero();
  Buffer<BlockBest> best(device, blocks);
  Buffer<BoostRound> result(device, rounds);
  result.set_zero();  // rounds that find nothing leave most of it unwritten
  Buffer<uint8_t> matrix(device, blocks * n * kColumns);
  Buffer<BinMap> maps(device, blocks * kColumns);
  const Places places{problem.places.integral, problem.places.bases,
                      static_cast<int64_t>(problem.places.sample_count), index.data(),
                      static_cast<int64_t>(n)};
  fill_codes(*plan, places, matrix.data(), device);
  zoom_codes(*plan, static_cast<int64_t>(n), matrix.data(), maps.data());
  Rounds state{};
  state.matrix = matrix.data();
  state.maps = maps.data();
  state.columns = plan->columns.data();
  state.block_count = plan->block_count;
  state.selected = static_cast<int64_t>(n);
  state.positive = positive.data();
  state.weight = weight.data();
  state.signed_weight = signed_weight.data();
  state.totals = totals.data();
  state.best = best.data();
  state.result = result.data();
  state.kind = problem.kind;
  state.empty_bins = problem.empty_bins;
  run_rounds(state, problem.rounds, device);
  std::vector<BoostRound> found = result.to_vector();
  for (size_t t = 0; t < found.size(); ++t) {
    if (!found[t].found) found.resize(t + 1);
  }
  return found;
}

}  // namespace larch::pbt::cuda
