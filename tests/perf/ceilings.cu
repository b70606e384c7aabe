// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "tests/perf/ceilings.h"

namespace larch::perf::cuda {
namespace {

using larch::cuda::stream_of;

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) cooperative_kernel(int32_t count) {
  const auto grid = cooperative_groups::this_grid();
  for (int32_t i = 0; i < count; ++i) grid.sync();
}

/// `arrived` is 0 before the launch.
__global__ void __launch_bounds__(kThreads) counter_kernel(int32_t count, uint32_t* arrived) {
  for (int32_t i = 0; i < count; ++i) {
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
      const uint32_t all = (static_cast<uint32_t>(i) + 1) * gridDim.x;
      uint32_t seen = 0;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
      } while (seen < all);
    }
    __syncthreads();
  }
}

__global__ void chase_kernel(int32_t count, const uint32_t* next, uint32_t* last) {
  uint32_t at = 0;
  for (int32_t i = 0; i < count; ++i) at = __ldcg(next + at);
  *last = at;
}

/// The time on the card between two marks.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    LARCH_CUDA_CHECK(cudaEventCreate(&begin_));
    LARCH_CUDA_CHECK(cudaEventCreate(&end_));
    LARCH_CUDA_CHECK(cudaEventRecord(begin_, stream_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  double seconds() {
    LARCH_CUDA_CHECK(cudaEventRecord(end_, stream_));
    LARCH_CUDA_CHECK(cudaEventSynchronize(end_));
    float milliseconds = 0;
    LARCH_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_{}, end_{};
};

}  // namespace

double seconds_of_barrier(GridBarrier barrier, int32_t count, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  int processors = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  Buffer<uint32_t> arrived(device, 1);
  arrived.set_zero();
  uint32_t* counter = arrived.data();
  void* arguments[] = {&count, &counter};
  const bool is_cooperative = barrier == GridBarrier::kCooperative;
  const void* kernel = is_cooperative ? reinterpret_cast<const void*>(cooperative_kernel)
                                      : reinterpret_cast<const void*>(counter_kernel);
  Stopwatch watch(stream_of(device));
  LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<uint32_t>(processors)),
                                               dim3(kThreads), arguments, 0, stream_of(device)));
  return watch.seconds() / count;
}

double seconds_of_read(int32_t count, const Context& context) {
  // 8 MB: more than the first cache of a processor, and less than the second. A step of an odd
  // number of lines comes by all of them.
  constexpr uint32_t kValues = 1U << 21, kStep = 32 * 1027;
  std::vector<uint32_t> next(kValues);
  for (uint32_t i = 0; i < kValues; ++i) next[i] = (i + kStep) % kValues;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const Buffer<uint32_t> there(context.device, std::span<const uint32_t>(next));
  Buffer<uint32_t> last(context.device, 1);
  Stopwatch watch(stream_of(context.device));
  chase_kernel<<<1, 1, 0, stream_of(context.device)>>>(count, there.data(), last.data());
  larch::cuda::check_launch("ceilings chase_kernel");
  return watch.seconds() / count;
}

double copy_rate(int64_t bytes, const Context& context) {
  const auto size = static_cast<size_t>(bytes);
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  Buffer<char> from(context.device, size), to(context.device, size);
  from.set_zero();
  Stopwatch watch(stream_of(context.device));
  LARCH_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), size, cudaMemcpyDeviceToDevice,
                                   stream_of(context.device)));
  return 2.0 * static_cast<double>(bytes) / watch.seconds();
}

}  // namespace larch::perf::cuda
