// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/tree/train/forest_split.h"

namespace larch::tree::cuda {
namespace {

using larch::cuda::blocks_for;

constexpr int kColumns = static_cast<int>(learning::kCudaWidth);

/// The kernels read this of a job: it is of the open leaves [first, first + count) of a portion.
struct Portion {
  const uint8_t* codes;
  int64_t rows;
  const learning::Slot* slots;
  int slot_count;
  const uint32_t* node;
  const uint16_t* label;
  const uint32_t* times;
  const uint32_t* class_weight;
  const int64_t* entropy;
  SplitRule rule;
  uint32_t first_open, first, count;
  uint32_t* histograms;  ///< [leaf][class][bin][slot]
  LeafSplit* found;      ///< [leaf][slot]
};

__device__ uint32_t* histogram_of(const Portion& p, uint32_t leaf, uint32_t of_class, int slot) {
  return p.histograms + (size_t{leaf} * p.rule.classes + of_class) * p.rule.bins * p.slot_count +
         slot;
}

/// A block takes 128 columns at some samples, a thread a column.
__global__ void count_kernel(const __grid_constant__ Portion p) {
  const int slot = static_cast<int>(blockIdx.y) * kColumns + static_cast<int>(threadIdx.x);
  const uint32_t factor = bin_factor(p.slots[slot].codes, p.rule.bins);
  const uint8_t* codes = p.codes + size_t{blockIdx.y} * p.rows * kColumns + threadIdx.x;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const uint32_t leaf = p.node[row] - p.first_open - p.first;
    const uint32_t times = p.times[row];
    if (leaf >= p.count || times == 0) continue;
    const uint32_t bin = (codes[row * kColumns] * factor) >> 16;
    atomicAdd(histogram_of(p, leaf, p.label[row], slot) + size_t{bin} * p.slot_count, times);
  }
}

/// One thread per leaf and column: sums over the bins, then the best test.
__global__ void test_kernel(const __grid_constant__ Portion p) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= static_cast<int64_t>(p.count) * p.slot_count) return;
  const auto leaf = static_cast<uint32_t>(k / p.slot_count);
  const int slot = static_cast<int>(k % p.slot_count);
  const learning::Slot column = p.slots[slot];
  p.found[k] = {};
  if (column.column == learning::kFilling || column.codes.lo == column.codes.hi ||
      !p.rule.looks_at(p.first_open + p.first + leaf, column.column)) {
    return;
  }
  for (uint32_t c = 0; c < p.rule.classes; ++c) {
    uint32_t* histogram = histogram_of(p, leaf, c, slot);
    for (int b = 1; b < p.rule.bins; ++b) {
      histogram[size_t{1} * b * p.slot_count] += histogram[size_t{1} * (b - 1) * p.slot_count];
    }
  }
  p.found[k] = best_test(
      p.rule, column.column,
      [&](uint32_t c, int32_t b) -> uint64_t {
        return histogram_of(p, leaf, c, slot)[size_t{1} * b * p.slot_count];
      },
      [&](uint32_t c) -> uint64_t { return p.class_weight[c]; }, p.entropy);
}

/// One thread per leaf: the best of its columns and of those before.
__global__ void best_kernel(const __grid_constant__ Portion p, LeafSplit* best) {
  const uint32_t leaf = blockIdx.x * blockDim.x + threadIdx.x;
  if (leaf >= p.count) return;
  LeafSplit mine = best[leaf];
  for (int slot = 0; slot < p.slot_count; ++slot) {
    mine.keep_better(p.found[size_t{leaf} * p.slot_count + slot]);
  }
  best[leaf] = mine;
}

__global__ void route_kernel(const uint8_t* codes, int64_t rows, uint32_t* node,
                             uint32_t first_open, const LeafRoute* routes, uint32_t open) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const uint32_t leaf = node[row] - first_open;
  if (leaf >= open) return;
  const LeafRoute route = routes[leaf];
  if (route.slot == UINT32_MAX) return;
  const uint8_t code =
      codes[(size_t{route.slot} / kColumns * rows + row) * kColumns + route.slot % kColumns];
  node[row] = route.node(code);
}

}  // namespace

void split_leaves(const SplitJob& job) {
  const Device& device = job.context.device;
  const cudaStream_t stream = larch::cuda::stream_for(device);
  const size_t slots = job.columns.slots.size();
  const int64_t least = job.rule.histogram_bytes(slots);
  const auto leaves = static_cast<uint32_t>(job.best.size());
  const auto at_once = static_cast<uint32_t>(
      std::clamp<int64_t>(job.memory_bytes / std::max<int64_t>(1, least), 1, leaves));
  Buffer<uint32_t> histograms(device, static_cast<size_t>(least / 4) * at_once);
  Buffer<LeafSplit> found(device, slots * at_once);
  Buffer<LeafSplit> best(device, std::span<const LeafSplit>(job.best));
  Portion p{job.matrix.codes.data(),
            static_cast<int64_t>(job.matrix.rows),
            job.columns.on_device.data(),
            static_cast<int>(slots),
            job.samples.node.data(),
            job.samples.label.data(),
            job.samples.times.data(),
            job.samples.class_weight.data(),
            job.samples.entropy.data(),
            job.rule,
            job.first_open,
            0,
            0,
            histograms.data(),
            found.data()};
  constexpr int64_t kMaximumBlocks = 8192;
  const dim3 grid(static_cast<unsigned>(std::clamp<int64_t>(p.rows, 1, kMaximumBlocks)),
                  static_cast<unsigned>(job.matrix.blocks));
  for (; p.first < leaves; p.first += at_once) {
    p.count = std::min(at_once, leaves - p.first);
    histograms.set_zero();
    count_kernel<<<grid, kColumns, 0, stream>>>(p);
    larch::cuda::check_launch("count_kernel");
    constexpr int kThreads = 128;
    test_kernel<<<blocks_for(static_cast<int64_t>(p.count) * p.slot_count, kThreads), kThreads, 0,
                  stream>>>(p);
    larch::cuda::check_launch("test_kernel");
    best_kernel<<<blocks_for(p.count, kThreads), kThreads, 0, stream>>>(p, best.data() + p.first);
    larch::cuda::check_launch("best_kernel");
  }
  best.download(job.best);
}

void route_leaves(const RouteJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<LeafRoute> routes(device, job.routes);
  constexpr int kThreads = 256;
  const auto rows = static_cast<int64_t>(job.matrix.rows);
  if (rows == 0) return;
  route_kernel<<<blocks_for(rows, kThreads), kThreads, 0, larch::cuda::stream_of(device)>>>(
      job.matrix.codes.data(), rows, job.node.data(), job.first_open, routes.data(),
      static_cast<uint32_t>(routes.size()));
  larch::cuda::check_launch("route_kernel");
}

}  // namespace larch::tree::cuda
