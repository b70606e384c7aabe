// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/field/warp_math.h"

// Subtraction in three launches: the field, the warped mask, the differences and their histogram;
// the mode of each frame; grey values.
namespace larch::dsa::cuda {
namespace {

constexpr int kThreads = 256;
/// Rows that a block of threads goes down, so that what depends on the column is done once.
constexpr int kRows = 16;
/// Bins of the histogram that are counted on chip, around the first difference that is met; others
/// are counted in the device's memory.
constexpr int kNearBins = 4096;
/// The counts of a frame become sums of those before each bin, and one more: of all.
constexpr int64_t kCounts = int64_t{kModeBins} + 1;

struct Counter {
  uint32_t* near;  ///< in shared memory
  uint32_t* all;   ///< of the frame
  int32_t first;   ///< bin of near[0]
  __device__ void add(int32_t difference) const {
    const int32_t bin = mode_bin(difference);
    if (bin >= first && bin < first + kNearBins) {
      atomicAdd(near + (bin - first), 1u);
    } else {
      atomicAdd(all + bin, 1u);
    }
  }
};

/// `counts`: kCounts of each frame, or null. The grid: columns, rows, frames.
__global__ void __launch_bounds__(kThreads)
    difference_kernel(const __grid_constant__ SubtractJob job, uint32_t* counts) {
  __shared__ uint32_t near[kNearBins];
  __shared__ int32_t first_bin;
  const Vec3i& size = job.size;
  const auto frame = static_cast<int64_t>(blockIdx.z);
  const int64_t rows = size.y;
  const FieldView view = view_of(job, frame);
  const int32_t x = static_cast<int32_t>(blockIdx.x) * kThreads + static_cast<int32_t>(threadIdx.x);
  const AxisWeights wx = axis_weights(view.axes[0], view.border, min(x, size.x - 1));
  Counter counter{near, counts == nullptr ? nullptr : counts + frame * kCounts, 0};
  for (int i = static_cast<int>(threadIdx.x); i < kNearBins; i += kThreads) near[i] = 0;
  bool is_first = counts != nullptr;
  const int64_t step = static_cast<int64_t>(gridDim.y) * kRows;
  for (int64_t first = static_cast<int64_t>(blockIdx.y) * kRows; first < rows; first += step) {
    for (int64_t row = first; row < min(first + kRows, rows); ++row) {
      const Vec3i at{min(x, size.x - 1), static_cast<int32_t>(row), 0};
      const Vec3i d = units_at(view, wx, axis_weights(view.axes[1], view.border, at.y), {});
      const DifferenceAt difference = difference_at(job, frame, at, d);
      if (is_first) {
        if (threadIdx.x == kThreads / 2) first_bin = mode_bin(difference.value) - kNearBins / 2;
        __syncthreads();
        counter.first = first_bin;
        is_first = false;
      }
      if (x >= size.x) continue;
      const int64_t i = (frame * rows + row) * size.x + x;
      job.differences[i] = difference.value;
      job.validity[i] = static_cast<uint8_t>(difference.validity);
      if (job.field_px != nullptr) job.field_px[i] = field_in_pixels(d);
      if (counts != nullptr && difference.validity == Validity::kValid) {
        counter.add(difference.value);
      }
    }
  }
  if (counts == nullptr) return;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kNearBins; i += kThreads) {
    if (near[i] != 0) atomicAdd(counter.all + counter.first + i, near[i]);
  }
}

constexpr int kModeThreads = 1024;

/// Sums of the counts of a frame before each bin, in place; all threads together.
__device__ void sum_up(uint32_t* counts) {
  constexpr int kPart = kModeBins / kModeThreads;
  __shared__ uint32_t warps[kModeThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  uint32_t* part = counts + static_cast<int64_t>(thread) * kPart;
  uint32_t own = 0;
  for (int i = 0; i < kPart; i += 4) {
    // Four at once: a frame has fewer than 2^32 pixels.
    own += part[i] + part[i + 1] + part[i + 2] + part[i + 3];
  }
  uint32_t up_to = own;
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffu, up_to, step);
    if (lane >= step) up_to += other;
  }
  if (lane == 31) warps[thread / 32] = up_to;
  __syncthreads();
  uint32_t before = up_to - own;
  for (int w = 0; w < thread / 32; ++w) before += warps[w];
  for (int i = 0; i < kPart; ++i) {
    const uint32_t count = part[i];
    part[i] = before;
    before += count;
  }
  if (thread == kModeThreads - 1) counts[kModeBins] = before;
  __syncthreads();
}

/// Counts of windows of a histogram by sums of those before each bin.
struct Windows {
  const uint32_t* before;
  __device__ int64_t count(int32_t middle, int32_t half) const {
    const int32_t low = max(middle - half, 0), high = min(middle + half, kModeBins - 1);
    return low > high ? 0 : static_cast<int64_t>(before[high + 1]) - before[low];
  }
  /// spread_of.
  __device__ Spread spread() const {
    Spread spread;
    spread.total = before[kModeBins];
    if (spread.total == 0) return spread;
    const int64_t wanted = (spread.total + 1) / 2;
    int32_t low = 0, high = kModeBins - 1;  // the first bin up to which enough are counted
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (before[middle + 1] >= wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    spread.median = low;
    low = 0;
    high = kModeBins;
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (count(spread.median, middle) >= wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    spread.deviation = low;
    return spread;
  }
};

/// The fuller of two windows, the first of equally full ones.
struct Fullest {
  int64_t count;
  int32_t middle;
  __device__ void take(const Fullest& other) {
    if (other.count > count || (other.count == count && other.middle < middle)) *this = other;
  }
};

/// mode_of: a block of threads per frame.
__global__ void __launch_bounds__(kModeThreads)
    mode_kernel(const __grid_constant__ SubtractJob job, uint32_t* counts) {
  __shared__ Fullest of_warps[kModeThreads / 32];
  uint32_t* own = counts + blockIdx.x * kCounts;
  sum_up(own);
  const Windows windows{own};
  const Spread spread = windows.spread();
  if (spread.total == 0) return;  // the mode stays 0
  const int32_t half = mode_half_window(spread.deviation);
  Fullest fullest{-1, 0};
  for (int32_t middle = static_cast<int32_t>(threadIdx.x); middle < kModeBins;
       middle += kModeThreads) {
    fullest.take({windows.count(middle, half), middle});
  }
  for (int step = 16; step > 0; step /= 2) {
    fullest.take({__shfl_xor_sync(0xffffffffu, fullest.count, step),
                  __shfl_xor_sync(0xffffffffu, fullest.middle, step)});
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = fullest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const Fullest& other : of_warps) fullest.take(other);
  const int32_t width = 2 * half + 1;
  job.figures[blockIdx.x].mode =
      refined_mode(windows.count(fullest.middle - width, half), fullest.count,
                   windows.count(fullest.middle + width, half), fullest.middle, half);
}

/// The grid: pixels, frames.
__global__ void __launch_bounds__(kThreads) grey_kernel(const __grid_constant__ SubtractJob job) {
  const Vec3i& size = job.size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y;
  const auto frame = static_cast<int64_t>(blockIdx.y);
  const int32_t mode = job.figures[frame].mode;
  uint32_t counts[kValidities + 1] = {};
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pixels;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t at = frame * pixels + i;
    const GreyValue grey = grey_value(job.differences[at], mode, job.sign, job.shift);
    job.out[at] = grey.value;
    const uint8_t validity = job.validity[at];
#pragma unroll
    for (int v = 0; v < kValidities; ++v) counts[v] += validity == v;
    counts[kValidities] += grey.is_clipped;
  }
#pragma unroll
  for (int v = 0; v <= kValidities; ++v) {
    const uint32_t sum = __reduce_add_sync(0xffffffffu, counts[v]);
    if (threadIdx.x % 32 != 0 || sum == 0) continue;
    atomicAdd(v < kValidities ? &job.figures[frame].pixels[v] : &job.figures[frame].clipped, sum);
  }
}

void subtract_part(const SubtractJob& job, const Device& device) {
  const Vec3i& size = job.size;
  const int64_t rows = size.y, pixels = rows * size.x;
  const auto frames = static_cast<uint32_t>(job.frames);
  const cudaStream_t stream = larch::cuda::stream_of(device);
  Buffer<uint32_t> counts;
  if (job.takes_mode) {
    counts = Buffer<uint32_t>(device, static_cast<size_t>(job.frames * kCounts));
    counts.set_zero();
  }
  LARCH_CUDA_CHECK(cudaMemsetAsync(job.figures, 0, frames * sizeof(SubtractFigures), stream));
  const dim3 groups(static_cast<uint32_t>((size.x + kThreads - 1) / kThreads),
                    static_cast<uint32_t>(std::min<int64_t>((rows + kRows - 1) / kRows, 65535)),
                    frames);
  difference_kernel<<<groups, kThreads, 0, stream>>>(job, counts.data());
  larch::cuda::check_launch("dsa difference_kernel");
  if (job.takes_mode) {
    mode_kernel<<<frames, kModeThreads, 0, stream>>>(job, counts.data());
    larch::cuda::check_launch("dsa mode_kernel");
  }
  const int64_t of_frame = std::clamp<int64_t>(pixels / (16 * kThreads), 1, 4096);
  grey_kernel<<<dim3(static_cast<uint32_t>(of_frame), frames), kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("dsa grey_kernel");
}

}  // namespace

void subtract(const SubtractJob& job, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const Vec3i& size = job.size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y;
  const int64_t blocks = static_cast<int64_t>(job.axes[0].count) * job.axes[1].count;
  constexpr int64_t kMaximumFrames = 1024;  // of one launch: each has a histogram of a megabyte
  for (int64_t first = 0; first < job.frames; first += kMaximumFrames) {
    SubtractJob part = job;
    part.frames = std::min(kMaximumFrames, job.frames - first);
    part.contrast_values += first * pixels;
    part.contrast_samples += first * pixels;
    if (part.vectors != nullptr) part.vectors += first * blocks;
    part.differences += first * pixels;
    part.out += first * pixels;
    part.validity += first * pixels;
    if (part.field_px != nullptr) part.field_px += first * pixels;
    part.figures += first;
    subtract_part(part, context.device);
  }
}

}  // namespace larch::dsa::cuda
