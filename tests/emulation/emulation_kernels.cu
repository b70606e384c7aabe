// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cuda_runtime.h>

#include "tests/emulation/emulation_kernels.h"

// Kernels with known answers, and kernels with one mistake each.
namespace larch::test {
namespace {

constexpr uint32_t kAll = 0xffffffffU;

__global__ void lanes_kernel(uint32_t* out) {
  const uint32_t t = threadIdx.x, lane = t % 32;
  out[t] = __ballot_sync(kAll, lane % 3 == 0);
  out[64 + t] = __reduce_add_sync(kAll, t);
  out[128 + t] = __shfl_up_sync(kAll, t, 1U);
  out[192 + t] = __shfl_sync(kAll, t, 5);
  out[256 + t] = static_cast<uint32_t>(__syncthreads_or(static_cast<int>(t == 40)));
}

/// Every thread writes, and reads what another warp wrote.
__global__ void neighbour_kernel(uint32_t* out, bool has_barrier) {
  __shared__ uint32_t values[128];
  values[threadIdx.x] = threadIdx.x;
  if (has_barrier) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 32) % 128];
}

/// A lane reads what another lane of its warp wrote.
__global__ void lane_kernel(uint32_t* out, bool has_barrier) {
  __shared__ uint32_t values[32];
  values[threadIdx.x] = threadIdx.x;
  if (has_barrier) __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}

/// Adds without an atomic operation, or with one.
__global__ void add_kernel(uint32_t* sum, bool is_atomic) {
  if (is_atomic) {
    atomicAdd(sum, 1U);
  } else {
    *sum = __ldcg(sum) + 1;
  }
}

__global__ void forgotten_kernel(uint32_t* out) {
  if (threadIdx.x < 32) return;
  asm volatile("bar.sync %0, %1;" ::"r"(3), "n"(64) : "memory");
  out[threadIdx.x] = 1;
}

__global__ void beyond_kernel(uint32_t* out, int32_t count) {
  if (threadIdx.x == 0) out[count] = 1;
}

__global__ void unwritten_kernel(uint32_t* out) {
  extern __shared__ __align__(16) uint32_t memory[];
  if (threadIdx.x == 0) *out = memory[3];
}

/// Each block adds what all blocks had before.
__global__ void grid_kernel(const __grid_constant__ GridRun run) {
  const auto grid = cooperative_groups::this_grid();
  for (int32_t step = 0; step < run.steps; ++step) {
    if (threadIdx.x == 0) atomicAdd(run.sums + step + 1, __ldcg(run.sums + step));
    grid.sync();
  }
}

/// Through addresses in shared memory: counts, copies, and reads what was copied.
__global__ void addresses_kernel(const uint32_t* from, uint32_t* out, bool waits) {
  extern __shared__ __align__(16) uint32_t memory[];
  __shared__ uint32_t counter, zero;
  const uint32_t t = threadIdx.x;
  if (t == 0) counter = zero = 0;
  memory[t] = 7;
  __syncthreads();
  const auto count = static_cast<uint32_t>(__cvta_generic_to_shared(&counter));
  const auto copy = static_cast<uint32_t>(__cvta_generic_to_shared(memory + t));
  asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(count) : "memory");
  if (t < 32) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(copy), "l"(from + t));
  } else if (t % 4 == 0) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(copy), "l"(from + t));
  }
  if (waits) asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  uint32_t value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(copy ^ 4));
  if (*static_cast<const uint32_t*>(__cvta_shared_to_generic(copy ^ 4)) != value) value = 0;
  out[t] = value + 1000 * counter + zero;
}

__global__ void no_address_kernel(uint32_t* out) {
  extern __shared__ __align__(16) uint32_t memory[];
  const auto first = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  asm("ld.shared.u32 %0, [%1];" : "=r"(*out) : "r"(first - 4));
}

/// Parts of words, products and shifts, of pairs of numbers.
__global__ void words_kernel(const uint32_t* pairs, uint32_t* out) {
  const uint32_t a = __ldg(pairs + 2 * threadIdx.x), b = __ldg(pairs + 2 * threadIdx.x + 1);
  uint32_t* const own = out + 8 * threadIdx.x;
  own[0] = __vminu4(a, b);
  own[1] = __vmaxu4(a, b);
  own[2] = __vmaxu2(a, b);
  own[3] = __byte_perm(a, b, 0x5432);
  own[4] = __byte_perm(a, b, 0x7610);
  own[5] = __umulhi(a, b);
  own[6] = static_cast<uint32_t>(
      __viaddmin_s32_relu(static_cast<int32_t>(a), static_cast<int32_t>(b), 1000));
  uint32_t bits;
  asm("{ .reg .u64 all; shr.u64 all, %1, %2; cvt.u32.u64 %0, all; }"
      : "=r"(bits)
      : "l"(static_cast<uint64_t>(b) << 32 | a), "r"(b % 70));
  own[7] = bits;
}

/// Sums over the block, and the extremes of numbers with a sign over a warp; keys are sorted.
__global__ void block_kernel(const int32_t* keys, uint32_t* out, bool has_barrier) {
  using Reduce = cub::BlockReduce<uint32_t, 64>;
  using Sort = cub::BlockRadixSort<int32_t, 64, 4>;
  __shared__ typename Reduce::TempStorage sums;
  __shared__ typename Sort::TempStorage sorting;
  for (uint32_t turn = 0; turn < 2; ++turn) {
    const uint32_t sum = Reduce(sums).Sum(threadIdx.x + turn);
    if (threadIdx.x == 0) out[turn] = sum;
    if (has_barrier) __syncthreads();
  }
  int32_t own[4];
  for (uint32_t i = 0; i < 4; ++i) own[i] = keys[i * 64 + threadIdx.x];
  out[2] = static_cast<uint32_t>(__reduce_min_sync(kAll, threadIdx.x < 32 ? own[0] : -1000000));
  out[3] = static_cast<uint32_t>(__reduce_max_sync(kAll, threadIdx.x < 32 ? own[0] : -1000000));
  Sort(sorting).Sort(own);
  for (uint32_t i = 0; i < 4; ++i) out[4 + threadIdx.x * 4 + i] = static_cast<uint32_t>(own[i]);
}

}  // namespace

void run_addresses(const uint32_t* from, uint32_t* out, bool waits) {
  addresses_kernel<<<1, 64, 256>>>(from, out, waits);
}
void run_no_address(uint32_t* out) {
  no_address_kernel<<<1, 1, 64>>>(out);
}
void run_words(const uint32_t* pairs, uint32_t* out, uint32_t count) {
  words_kernel<<<1, count>>>(pairs, out);
}
void run_block(const int32_t* keys, uint32_t* out, bool has_barrier) {
  block_kernel<<<1, 64>>>(keys, out, has_barrier);
}
void run_graph(uint32_t* sum, uint32_t* out) {
  uint32_t* arguments[] = {sum, out};
  bool is_atomic = true;
  void* of_add[] = {&arguments[0], &is_atomic};
  void* of_lanes[] = {&arguments[1]};
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t node = nullptr;
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(add_kernel);
  params.gridDim = dim3(3);
  params.blockDim = dim3(32);
  params.kernelParams = of_add;
  cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
  params.func = reinterpret_cast<void*>(lanes_kernel);
  params.gridDim = dim3(1);
  params.blockDim = dim3(64);
  params.kernelParams = of_lanes;
  cudaGraphAddKernelNode(&node, graph, &node, 1, &params);
  arguments[0] = arguments[1] = nullptr;  // they have been copied
  cudaGraphExec_t ready = nullptr;
  cudaGraphInstantiateWithFlags(&ready, graph, 0);
  cudaGraphLaunch(ready, nullptr);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

void run_lanes(uint32_t* out) {
  lanes_kernel<<<1, 64>>>(out);
}
void run_neighbour(uint32_t* out, bool has_barrier) {
  neighbour_kernel<<<1, 128>>>(out, has_barrier);
}
void run_lane(uint32_t* out, bool has_barrier) {
  lane_kernel<<<1, 32>>>(out, has_barrier);
}
void run_add(uint32_t* sum, bool is_atomic) {
  add_kernel<<<dim3(8, 2), 64>>>(sum, is_atomic);
}
void run_forgotten(uint32_t* out) {
  forgotten_kernel<<<1, 64>>>(out);
}
void run_beyond(uint32_t* out, int32_t count) {
  beyond_kernel<<<1, 32>>>(out, count);
}
void run_unwritten(uint32_t* out) {
  unwritten_kernel<<<1, 32, 64, nullptr>>>(out);
}
void run_grid(const GridRun& run, uint32_t blocks) {
  GridRun copy = run;
  void* arguments[] = {&copy};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_kernel), dim3(blocks), dim3(64),
                              arguments, 0, nullptr);
}

}  // namespace larch::test
