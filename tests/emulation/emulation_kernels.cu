// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
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

}  // namespace

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
