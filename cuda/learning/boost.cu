// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <vector>

#include <cub/block/block_reduce.cuh>

#include "cuda/core/check.cuh"
#include "cuda/learning/matrix.cuh"
#include "larch/core/buffer.h"
#include "larch/learning/boost.h"

// The rounds of AdaBoost on all nodes of a level together. Two kernels per round, three if samples
// are split over blocks, and nothing for the host to do: one finds the best column of each block of
// columns, another takes the best of those and updates the weights. The rounds are one graph,
// launched once. All sums are of integers, so their order does not matter.
namespace larch::learning::cuda {
namespace {

constexpr int kWarps = 16;       ///< of a block, which adds to its histograms together
constexpr int kLaneColumns = 4;  ///< columns of a lane
constexpr int kTogether = 8;     ///< rows of a warp that are on their way together
constexpr int kHistogramThreads = 32 * kWarps;
constexpr int kUpdateThreads = 512;
constexpr size_t kMaximumNodes =
    4096;  ///< of a launch: what is kept for each of them is limited too
constexpr int kHistogramWords = kColumns * kBins;

/// The best column of a block.
struct BlockBest {
  unsigned long long key;  ///< ~0: there is none
  unsigned long long agreement, mask;
  uint32_t slot;
};

/// The state of the rounds of all nodes, on the device throughout.
struct Level {
  const uint8_t* matrix;  ///< [block of columns][row][128]
  const Slot* slots;
  const NodeRows* nodes;
  int64_t block_count, row_count;
  int most_rounds;             ///< of a node
  const BinMap* maps;          ///< [node][slot]
  const uint8_t* positive;     ///< [row]
  double* weight;              ///< [row]
  int32_t* signed_weight;      ///< [row]
  unsigned long long* totals;  ///< [node][most_rounds + 1]: sums of |signed_weight|
  BlockBest* best;             ///< [node][block], in the current round
  int32_t* histograms;         ///< [node][block], as in add_rows, if samples are split over blocks
  BoostRound* result;          ///< [node][most_rounds]
  WeakKind kind;
  int bins;
};

__device__ bool runs(const Level& level, int node, int round) {
  if (round >= level.nodes[node].rounds) return false;
  return round == 0 || level.result[int64_t{node} * level.most_rounds + round - 1].found;
}

__device__ unsigned long long* total_of(const Level& level, int node, int round) {
  return level.totals + int64_t{node} * (level.most_rounds + 1) + round;
}

/// Adds |weights| of a block's threads to the total of a round.
__device__ void add_to_total(unsigned long long* total, unsigned long long sum) {
  using Reduce = cub::BlockReduce<unsigned long long, kUpdateThreads>;
  __shared__ typename Reduce::TempStorage storage;
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

__device__ unsigned long long quantise(const Level& level, int64_t row, double weight) {
  const int32_t s = quantised_weight(weight, level.positive[row] != 0);
  level.signed_weight[row] = s;
  return static_cast<unsigned long long>(s < 0 ? -s : s);
}

/// grid.y: nodes.
__global__ void __launch_bounds__(kUpdateThreads)
    first_weights_kernel(const __grid_constant__ Level level) {
  const int node = static_cast<int>(blockIdx.y);
  const NodeRows rows = level.nodes[node];
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kUpdateThreads + threadIdx.x;
  const int64_t row = rows.first + k;
  add_to_total(total_of(level, node, 0),
               k < rows.count ? quantise(level, row, level.weight[row]) : 0);
}

/// Adds the weight of a row to the histograms of a lane's four columns.
__device__ void add_row(uint32_t bins, int32_t weight, int32_t* mine) {
#pragma unroll
  for (int j = 0; j < kLaneColumns; ++j) {
    atomicAdd(&mine[(j * kBins + static_cast<int>(bins >> (8 * j) & 255)) * 32], weight);
  }
}

/// Adds rows [begin, end) of a block of columns to the histograms of the thread block, laid out
/// [lane column][bin][lane], so that the lanes of a warp never meet in a bank. The warps take rows
/// in turn; where they meet, the addition in shared memory sorts it out. That costs no more than
/// private histograms would, and leaves room for enough warps to hide every latency.
__device__ void add_rows(const Level& level, int64_t block, int64_t begin, int64_t end,
                         int32_t* d) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = begin + warp;
  const uint32_t* codes = reinterpret_cast<const uint32_t*>(level.matrix) +
                          (block * level.row_count + first) * 32 + lane;
  const int32_t* weights = level.signed_weight + first;
  int32_t* mine = d + lane;
  int64_t left = end > first ? (end - first + kWarps - 1) / kWarps : 0;
  for (; left >= kTogether; left -= kTogether) {
    uint32_t bins[kTogether];
    int32_t weight[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      bins[i] = __ldg(codes + i * kWarps * 32);
      weight[i] = __ldg(weights + i * kWarps);
    }
    codes += kTogether * kWarps * 32;
    weights += kTogether * kWarps;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) add_row(bins[i], weight[i], mine);
  }
  for (; left > 0; --left) {
    add_row(__ldg(codes), __ldg(weights), mine);
    codes += kWarps * 32;
    weights += kWarps;
  }
}

/// Takes the best column of a block whose histograms are at `d`.
__device__ void choose_column(const Level& level, int node, int64_t block, int round,
                              const int32_t* d) {
  __shared__ BlockBest found[kLaneColumns];
  __shared__ uint32_t sign_bits[2];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (warp < kLaneColumns) {
    BlockBest mine{~0ULL, 0, 0, static_cast<uint32_t>(lane * kLaneColumns + warp)};
    const Slot slot = level.slots[block * kColumns + mine.slot];
    if (slot.column != kFilling && slot.codes.lo != slot.codes.hi) {
      const int32_t* histogram = d + warp * kBins * 32 + lane;
      uint64_t mask = 0;
      mine.agreement = level.kind == WeakKind::kHist64 ? histogram_agreement(histogram, 32)
                                                       : threshold_agreement(histogram, 32, &mask);
      mine.mask = mask;
      mine.key = candidate_key(*total_of(level, node, round) - mine.agreement + slot.cost_units,
                               slot.complexity, slot.column);
    }
    unsigned long long smallest = mine.key;
    for (int step = 16; step > 0; step /= 2) {
      smallest = min(smallest, __shfl_xor_sync(0xffffffffu, smallest, step));
    }
    // Keys differ by column, so that one lane at most has the smallest.
    if (mine.key == smallest && (smallest != ~0ULL || lane == 0)) found[warp] = mine;
  }
  __syncthreads();
  int winner = 0;
  for (int w = 1; w < kLaneColumns; ++w) {
    if (found[w].key < found[winner].key) winner = w;
  }
  BlockBest best = found[winner];
  if (level.kind == WeakKind::kHist64) {
    const int32_t* histogram = d + winner * kBins * 32 + best.slot / kLaneColumns;
    if (warp < 2) {
      const bool bit = histogram_bit(histogram, 32, static_cast<int>(threadIdx.x));
      const uint32_t word = __ballot_sync(0xffffffffu, bit);
      if (lane == 0) sign_bits[warp] = word;
    }
    __syncthreads();
    best.mask = static_cast<uint64_t>(sign_bits[1]) << 32 | sign_bits[0];
  }
  best.slot += static_cast<uint32_t>(block * kColumns);
  if (threadIdx.x == 0) level.best[node * level.block_count + block] = best;
}

/// grid.x: blocks of columns; grid.y: parts of the samples, if there are too few blocks to fill the
/// device; grid.z: nodes. With several parts the histograms are added up in memory and
/// choose_kernel follows.
__global__ void __launch_bounds__(kHistogramThreads, 3)
    histogram_kernel(const __grid_constant__ Level level, int round) {
  extern __shared__ int32_t d[];
  const int node = static_cast<int>(blockIdx.z);
  if (!runs(level, node, round)) return;
  for (int i = static_cast<int>(threadIdx.x); i < kHistogramWords; i += kHistogramThreads) d[i] = 0;
  __syncthreads();
  const NodeRows rows = level.nodes[node];
  const int64_t parts = gridDim.y, part = blockIdx.y;
  add_rows(level, blockIdx.x, rows.first + rows.count * part / parts,
           rows.first + rows.count * (part + 1) / parts, d);
  __syncthreads();
  if (parts == 1) {
    choose_column(level, node, blockIdx.x, round, d);
    return;
  }
  int32_t* sums =
      level.histograms + (node * level.block_count + blockIdx.x) * int64_t{kHistogramWords};
  for (int i = static_cast<int>(threadIdx.x); i < kHistogramWords; i += kHistogramThreads) {
    if (d[i] != 0) atomicAdd(&sums[i], d[i]);
  }
}

/// After a histogram_kernel of several parts: takes the best column and clears the histograms.
__global__ void __launch_bounds__(kHistogramThreads)
    choose_kernel(const __grid_constant__ Level level, int round) {
  extern __shared__ int32_t d[];
  const int node = static_cast<int>(blockIdx.y);
  if (!runs(level, node, round)) return;
  int32_t* sums =
      level.histograms + (node * level.block_count + blockIdx.x) * int64_t{kHistogramWords};
  for (int i = static_cast<int>(threadIdx.x); i < kHistogramWords; i += kHistogramThreads) {
    d[i] = sums[i];
    sums[i] = 0;
  }
  __syncthreads();
  choose_column(level, node, blockIdx.x, round, d);
}

/// Returns the best block of a node; every block of update_kernel finds it for itself.
__device__ BlockBest best_of_blocks(const Level& level, int node) {
  __shared__ unsigned long long smallest;
  __shared__ BlockBest found;
  if (threadIdx.x == 0) smallest = ~0ULL;
  __syncthreads();
  const BlockBest* all = level.best + node * level.block_count;
  unsigned long long mine = ~0ULL;
  int64_t mine_at = 0;
  for (int64_t b = threadIdx.x; b < level.block_count; b += kUpdateThreads) {
    if (all[b].key < mine) {
      mine = all[b].key;
      mine_at = b;
    }
  }
  unsigned long long least = mine;
  for (int step = 16; step > 0; step /= 2) {
    least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
  }
  if (threadIdx.x % 32 == 0) atomicMin(&smallest, least);
  __syncthreads();
  const bool any = smallest != ~0ULL;
  if (any ? mine == smallest : threadIdx.x == 0) found = all[mine_at];
  __syncthreads();
  return found;
}

/// Notes the winner of the round and updates the weights for the next one. grid.y: nodes.
__global__ void __launch_bounds__(kUpdateThreads)
    update_kernel(const __grid_constant__ Level level, int round) {
  const int node = static_cast<int>(blockIdx.y);
  if (!runs(level, node, round)) return;
  const NodeRows rows = level.nodes[node];
  if (static_cast<int64_t>(blockIdx.x) * kUpdateThreads >= rows.count) return;
  const BlockBest best = best_of_blocks(level, node);
  if (best.key == ~0ULL) return;  // the round stays one that found nothing
  BoostRound out;
  out.found = true;
  const Slot slot = level.slots[best.slot];
  out.feature = slot.column;
  out.codes = slot.codes;
  out.total = *total_of(level, node, round);
  out.agreement = best.agreement;
  out.mask = repeat_last_bin(best.mask, level.bins);
  out.bins = level.maps[node * level.block_count * kColumns + best.slot];
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    level.result[int64_t{node} * level.most_rounds + round] = out;
  }
  const double error = out.error();
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kUpdateThreads + threadIdx.x;
  unsigned long long magnitude = 0;
  if (k < rows.count) {
    const int64_t row = rows.first + k;
    const uint32_t bin = level.matrix[(best.slot / kColumns * level.row_count + row) * kColumns +
                                      best.slot % kColumns];
    const bool vote = (out.mask >> bin) & 1;
    const double weight =
        updated_weight(level.weight[row], vote == (level.positive[row] != 0), error);
    level.weight[row] = weight;
    magnitude = quantise(level, row, weight);
  }
  add_to_total(total_of(level, node, round + 1), magnitude);
}

/// Parts of the samples: enough blocks for all processors, if each part stays worth its while.
unsigned parts_for(int64_t blocks, int64_t samples, const Device& device) {
  const int processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  const int64_t wanted = (2 * int64_t{processors} + blocks - 1) / blocks;
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, samples / 512)));
}

/// Kernels one after the other, launched as one.
class KernelChain {
 public:
  KernelChain() { LARCH_CUDA_CHECK(cudaGraphCreate(&graph_, 0)); }
  ~KernelChain() {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }
  KernelChain(const KernelChain&) = delete;
  KernelChain& operator=(const KernelChain&) = delete;

  template <typename... Args>
  void add(void (*kernel)(Args...), dim3 grid, unsigned threads, size_t shared_bytes,
           std::type_identity_t<Args>... args) {
    void* addresses[] = {&args...};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(kernel);
    params.gridDim = grid;
    params.blockDim = dim3(threads);
    params.sharedMemBytes = static_cast<unsigned>(shared_bytes);
    params.kernelParams = addresses;  // their values are copied
    cudaGraphNode_t node = nullptr;
    LARCH_CUDA_CHECK(cudaGraphAddKernelNode(&node, graph_, last_ == nullptr ? nullptr : &last_,
                                            last_ == nullptr ? 0 : 1, &params));
    last_ = node;
  }
  /// The chain has to live until the kernels have ended.
  void launch(const Device& device) {
    LARCH_CUDA_CHECK(cudaGraphInstantiateWithFlags(&ready_, graph_, 0));
    LARCH_CUDA_CHECK(cudaGraphLaunch(ready_, larch::cuda::stream_of(device)));
    larch::cuda::check_launch("the rounds of boosting");
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
  cudaGraphNode_t last_ = nullptr;
};

/// Runs all rounds and returns the result, [node][most_rounds].
std::vector<BoostRound> run_rounds(Level level, std::span<const NodeRows> nodes,
                                   const Device& device) {
  constexpr size_t kBytes = kHistogramWords * sizeof(int32_t);
  const auto count = static_cast<unsigned>(nodes.size());
  const auto blocks = static_cast<unsigned>(level.block_count);
  int64_t most_rows = 0;
  for (const NodeRows& node : nodes) most_rows = std::max(most_rows, node.count);
  const unsigned parts = parts_for(level.block_count * count, most_rows, device);
  const unsigned updates = larch::cuda::blocks_for(most_rows, kUpdateThreads);
  Buffer<unsigned long long> totals(device,
                                    nodes.size() * (static_cast<size_t>(level.most_rounds) + 1));
  totals.set_zero();
  level.totals = totals.data();
  Buffer<BlockBest> best(device, size_t{blocks} * count);
  level.best = best.data();
  Buffer<BoostRound> result(device, nodes.size() * static_cast<size_t>(level.most_rounds));
  result.set_zero();  // what is not written found nothing
  level.result = result.data();
  Buffer<int32_t> histograms;
  if (parts > 1) {
    histograms = Buffer<int32_t>(device, size_t{blocks} * count * kHistogramWords);
    histograms.set_zero();
    level.histograms = histograms.data();
  }
  KernelChain chain;
  chain.add(first_weights_kernel, dim3(updates, count), kUpdateThreads, 0, level);
  for (int round = 0; round < level.most_rounds; ++round) {
    chain.add(histogram_kernel, dim3(blocks, parts, count), kHistogramThreads, kBytes, level,
              round);
    if (parts > 1) {
      chain.add(choose_kernel, dim3(blocks, count), kHistogramThreads, kBytes, level, round);
    }
    chain.add(update_kernel, dim3(updates, count), kUpdateThreads, 0, level, round);
  }
  chain.launch(device);
  return result.to_vector();
}

/// May these two be boosted together? Then only their samples, weights and rounds differ.
bool alike(const BoostProblem& a, const BoostProblem& b) {
  return a.columns == b.columns && a.kind == b.kind && a.bins == b.bins;
}

/// Holds what the problems of one launch have by row, one after the other.
struct Rows {
  std::vector<NodeRows> nodes;
  std::vector<uint32_t> samples;
  std::vector<uint8_t> positive;
  std::vector<double> weight;
  int most_rounds = 0;
};

Rows join(std::span<const BoostProblem> problems) {
  Rows rows;
  for (const BoostProblem& p : problems) {
    rows.nodes.push_back({static_cast<int64_t>(rows.samples.size()),
                          static_cast<int64_t>(p.samples.size()), p.rounds});
    rows.samples.insert(rows.samples.end(), p.samples.begin(), p.samples.end());
    rows.positive.insert(rows.positive.end(), p.positive.begin(), p.positive.end());
    rows.weight.insert(rows.weight.end(), p.weight.begin(), p.weight.end());
    rows.most_rounds = std::max(rows.most_rounds, p.rounds);
  }
  return rows;
}

/// Boosts problems that are alike.
void boost_together(const BoostJob& job, std::span<const BoostProblem> problems,
                    std::vector<std::vector<BoostRound>>& results) {
  const Device& device = job.context.device;
  const BoostProblem& first = problems.front();
  const PreparedColumns& columns = *first.columns;
  const Rows rows = join(problems);
  const Buffer<uint8_t> positive(device, std::span<const uint8_t>(rows.positive));
  Buffer<double> weight(device, std::span<const double>(rows.weight));
  Buffer<int32_t> signed_weight(device, rows.samples.size());
  Buffer<BinMap> maps(device, rows.nodes.size() * columns.slots.size());
  const Buffer<NodeRows> nodes(device, std::span<const NodeRows>(rows.nodes));
  FeatureMatrix matrix = fill_matrix(job.source, columns, rows.samples, job.context);
  zoom_codes(matrix, nodes, first.bins, maps.data());
  Level level{};
  level.matrix = matrix.codes.data();
  level.slots = columns.on_device.data();
  level.nodes = nodes.data();
  level.block_count = static_cast<int64_t>(matrix.blocks);
  level.row_count = static_cast<int64_t>(matrix.rows);
  level.most_rounds = rows.most_rounds;
  level.maps = maps.data();
  level.positive = positive.data();
  level.weight = weight.data();
  level.signed_weight = signed_weight.data();
  level.kind = first.kind;
  level.bins = first.bins;
  const std::vector<BoostRound> all = run_rounds(level, rows.nodes, device);
  for (size_t n = 0; n < rows.nodes.size(); ++n) {
    std::vector<BoostRound>& found = results.emplace_back();
    for (int t = 0; t < rows.nodes[n].rounds; ++t) {
      found.push_back(all[n * static_cast<size_t>(rows.most_rounds) + static_cast<size_t>(t)]);
      if (!found.back().found) break;
    }
  }
}

}  // namespace

std::vector<std::vector<BoostRound>> boost(const BoostJob& job) {
  LARCH_CUDA_CHECK(cudaSetDevice(job.context.device.index));
  std::vector<std::vector<BoostRound>> results;
  for (size_t first = 0; first < job.problems.size();) {
    size_t end = first + 1;
    while (end < job.problems.size() && end - first < kMaximumNodes &&
           alike(job.problems[first], job.problems[end])) {
      ++end;
    }
    boost_together(job, job.problems.subspan(first, end - first), results);
    first = end;
  }
  return results;
}

}  // namespace larch::learning::cuda
