// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "larch/dsa/samples.h"

namespace larch::dsa::cuda {
namespace {

constexpr int kThreads = 256;

uint32_t groups_for(int64_t items) {
  constexpr int64_t kMaximum = 1 << 16;  // the kernels go on from there
  return static_cast<uint32_t>(std::min((items + kThreads - 1) / kThreads, kMaximum));
}

__global__ void samples_kernel(const __grid_constant__ SampleJob job) {
  const int64_t total = job.frame_pixels * job.frames;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += step) {
    const bool is_in = job.region == nullptr || job.region[i % job.frame_pixels] != 0;
    job.samples[i] = sample_of(job, job.stored[i], is_in);
  }
}

/// Returns one filter pass over three samples; kNoSample if one of them is.
__device__ uint16_t filtered(const Taps& taps, uint16_t before, uint16_t here, uint16_t after) {
  if (before == kNoSample || here == kNoSample || after == kNoSample) return kNoSample;
  return tap_sum(taps, before, here, after);
}

/// Returns a pixel filtered along x and y; x is filtered three times, which costs less than a pass
/// more through memory.
__device__ uint16_t filtered_in_plane(const FilterJob& job, const uint16_t* plane, int32_t x,
                                      int32_t y) {
  const int32_t width = job.size.x;
  if (y < 1 || y + 1 >= job.size.y) return kNoSample;
  uint16_t rows[3];
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    const uint16_t* row = plane + static_cast<int64_t>(y + j - 1) * width;
    rows[j] = filtered(job.taps, x > 0 ? row[x - 1] : kNoSample, row[x],
                       x + 1 < width ? row[x + 1] : kNoSample);
  }
  return filtered(job.taps, rows[0], rows[1], rows[2]);
}

__global__ void filter_kernel(const __grid_constant__ FilterJob job) {
  const int64_t plane = static_cast<int64_t>(job.size.x) * job.size.y;
  const int64_t total = plane * job.frames;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += step) {
    const auto in_plane = static_cast<int32_t>(i % plane);
    const int32_t x = in_plane % job.size.x, y = in_plane / job.size.x;
    job.filtered[i] = filtered_in_plane(job, job.samples + (i - in_plane), x, y);
  }
}

}  // namespace

void to_samples(const SampleJob& job, const Context& context) {
  const int64_t total = job.frame_pixels * job.frames;
  if (total == 0) return;
  samples_kernel<<<groups_for(total), kThreads, 0, larch::cuda::stream_for(context.device)>>>(job);
  larch::cuda::check_launch("dsa samples_kernel");
}

void filter_at_zero(const FilterJob& job, const Context& context) {
  const int64_t total = static_cast<int64_t>(job.size.x) * job.size.y * job.frames;
  if (total == 0) return;
  filter_kernel<<<groups_for(total), kThreads, 0, larch::cuda::stream_for(context.device)>>>(job);
  larch::cuda::check_launch("dsa filter_kernel");
}

}  // namespace larch::dsa::cuda
