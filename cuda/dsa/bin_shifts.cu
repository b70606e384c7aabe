// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/dsa/histogram.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/match/match.h"

// The median absolute deviation of the differences of whole frames, exactly: values of 17 bits are
// ranked by their upper ten bits, then those of the bin in question by their lower seven. First the
// differences, then their distances from their median.
namespace larch::dsa::cuda {
namespace {

constexpr int32_t kLow = 7;
constexpr int32_t kGroupPixels = 1 << 16;  ///< pixels that a block of threads counts

/// Holds what is known of a frame's ranks.
struct FrameRanks {
  uint32_t rank = 0;     ///< sought among those of the current bin
  uint32_t middle = 0;   ///< rank of the lower median
  int32_t high = -1;     ///< upper bits of what is sought, if they are known
  int32_t found = 0;     ///< the last value found
  int32_t is_empty = 0;  ///< nothing is counted
};

/// Step 0 and 1: upper and lower bits of the median; 2 and 3: of the deviation.
__global__ void __launch_bounds__(kThreads)
    count_kernel(const __grid_constant__ BinShiftJob job, const FrameRanks* ranks, int step,
                 uint32_t* counts) {
  __shared__ uint32_t histogram[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) histogram[i] = 0;
  __syncthreads();
  const auto frame = static_cast<int64_t>(blockIdx.y);
  const Vec3i& size = job.size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kGroupPixels;
  const int64_t last = first + kGroupPixels < pixels ? first + kGroupPixels : pixels;
  const Vec3i centre = job.centre == nullptr ? Vec3i{} : job.centre[frame];
  const FrameRanks known = ranks[frame];
  const uint16_t* contrast = job.contrast + frame * pixels;
  for (int64_t i = first + threadIdx.x; i < last; i += kThreads) {
    const auto row = static_cast<int32_t>(i / size.x);
    const int32_t x = static_cast<int32_t>(i - static_cast<int64_t>(row) * size.x) + centre.x;
    const int32_t y = row + centre.y;
    if (x < 0 || y < 0 || x >= size.x || y >= size.y) continue;
    const int32_t here = contrast[i];
    const int32_t there = job.mask_at_zero[static_cast<int64_t>(y) * size.x + x];
    if (here == kNoSample || there == kNoSample) continue;
    int32_t value = here - there + kNoSample;
    if (step >= 2) value = value < known.found ? known.found - value : value - known.found;
    const int32_t high = value >> kLow;
    if (step % 2 == 0) {
      atomicAdd(histogram + high, 1u);
    } else if (high == known.high) {
      atomicAdd(histogram + (value & ((1 << kLow) - 1)), 1u);
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) {
    if (histogram[i] != 0) atomicAdd(counts + frame * kBins + i, histogram[i]);
  }
}

/// A warp per frame goes from the counts of a step to its ranks.
__global__ void rank_kernel(const __grid_constant__ BinShiftJob job, FrameRanks* ranks, int step,
                            uint32_t* counts) {
  const auto frame = static_cast<int64_t>(blockIdx.x);
  uint32_t* own = counts + frame * kBins;
  FrameRanks known = ranks[frame];
  if (step == 0) {
    uint32_t total = 0;
    for (int i = static_cast<int>(threadIdx.x); i < kBins; i += 32) total += own[i];
    total = __reduce_add_sync(kAllLanes, total);
    known.is_empty = total == 0;
    known.middle = known.rank = total == 0 ? 0 : (total - 1) / 2;
  }
  if (!known.is_empty) {
    const Rank found = find_rank(own, known.rank);
    if (step % 2 == 0) {
      known.high = found.bin;
      known.rank -= found.below;
    } else {
      known.found = (known.high << kLow) + found.bin;
      known.rank = known.middle;
    }
  }
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += 32) own[i] = 0;
  if (threadIdx.x != 0) return;
  ranks[frame] = known;
  if (step == 3)
    job.shifts[frame] = bin_shift_of(known.is_empty ? 0 : known.found, job.least_shift);
}

}  // namespace

void bin_shifts(const BinShiftJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.frames == 0) return;
  const auto frames = static_cast<size_t>(job.frames);
  Buffer<FrameRanks> ranks(device, frames);
  Buffer<uint32_t> counts(device, frames * kBins);
  ranks.set_zero();
  counts.set_zero();
  const int64_t pixels = static_cast<int64_t>(job.size.x) * job.size.y;
  const auto groups = static_cast<uint32_t>((pixels + kGroupPixels - 1) / kGroupPixels);
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const auto on_all = static_cast<uint32_t>(frames);
  for (int step = 0; step < 4; ++step) {
    count_kernel<<<dim3(groups, on_all), kThreads, 0, stream>>>(job, ranks.data(), step,
                                                                counts.data());
    larch::cuda::check_launch("dsa count_kernel");
    rank_kernel<<<on_all, 32, 0, stream>>>(job, ranks.data(), step, counts.data());
    larch::cuda::check_launch("dsa rank_kernel");
  }
}

}  // namespace larch::dsa::cuda
