// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void shrink_kernel(const __grid_constant__ ShrinkJob job) {
  const int32_t width = job.size.x / kShrink, height = job.size.y / kShrink;
  const int64_t small = static_cast<int64_t>(width) * height, total = small * job.frames;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += step) {
    const auto place = static_cast<int32_t>(i % small);
    const uint16_t* frame = job.samples + i / small * static_cast<int64_t>(job.size.x) * job.size.y;
    job.shrunk[i] = shrunk_sample(frame, job.size.x, place % width, place / width);
  }
}

/// One block of threads per candidate (x) and frame (y).
__global__ void frame_scores_kernel(const __grid_constant__ FrameScoresJob job,
                                    const TapTable* taps) {
  __shared__ uint32_t counts[kBins];
  __shared__ unsigned long long squares;
  __shared__ uint32_t counted;
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) counts[bin] = 0;
  if (threadIdx.x == 0) {
    squares = 0;
    counted = 0;
  }
  __syncthreads();
  const int64_t frame = blockIdx.y, place = frame * job.candidates + blockIdx.x;
  const Vec3i units = job.displacements[place];
  const bool is_whole = units.x % kUnit == 0 && units.y % kUnit == 0;
  const MaskView between{job.mask, job.size, taps, job.border == Border::kClamp,
                         job.subpixel == SubPixel::kLinear || job.subpixel == SubPixel::kNone};
  const int32_t shift = job.bin_shift[frame];
  const int32_t rows = (job.size.y + job.row_step - 1) / job.row_step;
  const uint16_t* contrast = job.contrast + frame * static_cast<int64_t>(job.size.x) * job.size.y;
  for (int64_t i = threadIdx.x; i < static_cast<int64_t>(rows) * job.size.x; i += kThreads) {
    const auto x = static_cast<int32_t>(i % job.size.x);
    const auto y = static_cast<int32_t>(i / job.size.x) * job.row_step;
    const int32_t here = contrast[static_cast<int64_t>(y) * job.size.x + x];
    if (here == kNoSample) continue;
    int32_t there = kNoSample;
    if (is_whole) {
      int32_t px = x + units.x / kUnit, py = y + units.y / kUnit;
      if (between.clamps) {
        px = min(max(px, 0), job.size.x - 1);
        py = min(max(py, 0), job.size.y - 1);
      }
      if (px >= 0 && px < job.size.x && py >= 0 && py < job.size.y) {
        there = job.mask_at_zero[static_cast<int64_t>(py) * job.size.x + px];
      }
    } else {
      there = mask_sample(between, x * kUnit + units.x, y * kUnit + units.y);
    }
    if (there == kNoSample) continue;
    atomicAdd(&counts[bin_index(bin_number(here - there, 0, shift), Overflow::kWrap)], 1U);
  }
  __syncthreads();
  unsigned long long sum = 0;
  uint32_t count = 0;
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    sum += static_cast<unsigned long long>(counts[bin]) * counts[bin];
    count += counts[bin];
  }
  atomicAdd(&squares, sum);
  atomicAdd(&counted, count);
  __syncthreads();
  if (threadIdx.x == 0) job.scores[place] = {squares, counted, 0};
}

}  // namespace

void shrink(const ShrinkJob& job, const Context& context) {
  const int64_t cells =
      static_cast<int64_t>(job.size.x / kShrink) * (job.size.y / kShrink) * job.frames;
  if (cells == 0) return;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const auto groups =
      static_cast<uint32_t>(std::min<int64_t>((cells + kThreads - 1) / kThreads, 1 << 16));
  shrink_kernel<<<groups, kThreads, 0, larch::cuda::stream_of(context.device)>>>(job);
  larch::cuda::check_launch("dsa shrink_kernel");
}

void frame_scores(const FrameScoresJob& job, const Context& context) {
  if (job.frames == 0 || job.candidates == 0) return;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const TapTable table = taps_of(job.subpixel);
  const Buffer<TapTable> taps(context.device, std::span<const TapTable>(&table, 1));
  constexpr int64_t kMostFrames = 65535;  // of one launch
  for (int64_t first = 0; first < job.frames; first += kMostFrames) {
    FrameScoresJob part = job;
    part.frames = std::min(kMostFrames, job.frames - first);
    part.contrast += first * static_cast<int64_t>(job.size.x) * job.size.y;
    part.bin_shift += first;
    part.displacements += first * job.candidates;
    part.scores += first * job.candidates;
    const dim3 groups(static_cast<uint32_t>(job.candidates), static_cast<uint32_t>(part.frames));
    frame_scores_kernel<<<groups, kThreads, 0, larch::cuda::stream_of(context.device)>>>(
        part, taps.data());
    larch::cuda::check_launch("dsa frame_scores_kernel");
  }
}

}  // namespace larch::dsa::cuda
