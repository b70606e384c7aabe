// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/dsa/histogram.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/literal_math.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa::cuda {
namespace {

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

/// Counts the bins of one frame's differences at a displacement; a warp takes row after row, and a
/// lane two neighbouring pixels at a time. kWords: rows begin with a word of two samples.
template <bool kWords>
class FrameCounter {
 public:
  __device__ FrameCounter(const FrameScoresJob& job, const TapTable* taps, int64_t frame,
                          const Vec3i& units)
      : job_(job),
        mask_{job.mask, job.size, taps},
        contrast_(job.contrast + frame * static_cast<int64_t>(job.size.x) * job.size.y),
        units_(units),
        shift_(job.bin_shift[frame]),
        sx_(split_step(units.x)),
        sy_(split_step(units.y)),
        tx_(taps->at[sx_.fraction + kUnit / 2]),
        ty_(taps->at[sy_.fraction + kUnit / 2]) {}

  __device__ void count() const {
    if (CountWrapped::fits(shift_)) {
      count(CountWrapped(0, 0, shift_));
    } else {
      count(CountBins<false>{0, 0, shift_});
    }
  }

 private:
  template <class Sink>
  __device__ void count(const Sink& sink) const {
    const auto warp = static_cast<int32_t>(threadIdx.x / 32);
    for (int32_t y = warp * job_.row_step; y < job_.size.y; y += kWarps * job_.row_step) {
      const uint16_t* row = contrast_ + static_cast<int64_t>(y) * job_.size.x;
      if (job_.literal) {
        count_literally(row, y, sink);
      } else if (sx_.fraction == 0 && sy_.fraction == 0) {
        count_whole(row, y, sink);
      } else if (sx_.pixel % 2 == 0) {
        count_between<true>(row, y, sink);
      } else {
        count_between<false>(row, y, sink);
      }
    }
  }

  template <class Sink>
  __device__ static void take(uint32_t here, uint32_t there, const Sink& sink) {
    if (here != kNoSample && there != kNoSample) sink.one(here, there);
  }
  /// Tells whether a sample of some pairs, of which `largest` holds the largest, does not count.
  __device__ static bool has_gap(uint32_t largest) {
    return (largest & 0xffffu) == kNoSample || largest >> 16 == kNoSample;
  }

  template <class Sink>
  __device__ void count_literally(const uint16_t* row, int32_t y, const Sink& sink) const {
    const LiteralStep step = literal_step(units_);
    for (int32_t x = static_cast<int32_t>(threadIdx.x % 32); x < job_.size.x; x += 32) {
      take(row[x], literal_sample(job_.mask, job_.size, {x, y, 0}, step), sink);
    }
  }

  template <class Sink>
  __device__ void count_whole(const uint16_t* row, int32_t y, const Sink& sink) const {
    const int32_t width = job_.size.x, at_y = y + sy_.pixel;
    if (at_y < 0 || at_y >= job_.size.y) return;
    const uint16_t* mask = job_.mask_at_zero + static_cast<int64_t>(at_y) * width;
    const auto one = [&](int32_t x) {
      const int32_t at_x = x + sx_.pixel;
      if (x < width && at_x >= 0 && at_x < width) take(row[x], mask[at_x], sink);
    };
    const bool is_odd = sx_.pixel & 1;
#pragma unroll 4
    for (int32_t x = 2 * static_cast<int32_t>(threadIdx.x % 32); x < width; x += 64) {
      const int32_t at_x = x + sx_.pixel;
      if (kWords && at_x >= 0 && at_x + 1 < width) {
        const auto* words = reinterpret_cast<const uint32_t*>(mask) + at_x / 2;
        const uint32_t contrast = *reinterpret_cast<const uint32_t*>(row + x);
        const uint32_t there = neighbours(words[0], is_odd ? words[1] : 0, is_odd);
        if (!has_gap(__vmaxu2(contrast, there))) {
          take_pair(sink, contrast, there);
          continue;
        }
      }
      one(x);
      one(x + 1);
    }
  }

  /// The fraction of a pixel is that of the displacement everywhere, and so are the weights. kOdd:
  /// the first sample of each pair's first tap lies in the upper half of a word.
  template <bool kOdd, class Sink>
  __device__ void count_between(const uint16_t* row, int32_t y, const Sink& sink) const {
    const int32_t width = job_.size.x, at_y = y + sy_.pixel;
    const bool is_inner = at_y > 0 && at_y + 1 < job_.size.y;
    const UpperTaps along_x(tx_), along_y(ty_);
    const auto one = [&](int32_t x) {
      if (x >= width) return;
      take(row[x], mask_sample(mask_, x * kUnit + units_.x, y * kUnit + units_.y), sink);
    };
    for (int32_t x = 2 * static_cast<int32_t>(threadIdx.x % 32); x < width; x += 64) {
      const int32_t at_x = x + sx_.pixel;
      if (kWords && is_inner && at_x > 0 && at_x + 2 < width) {
        const uint32_t contrast = *reinterpret_cast<const uint32_t*>(row + x);
        uint32_t largest = contrast, left[3], right[3];
#pragma unroll
        for (int j = 0; j < 3; ++j) {
          const auto* words = reinterpret_cast<const uint32_t*>(
                                  job_.mask + static_cast<int64_t>(at_y + j - 1) * width) +
                              (at_x - 1) / 2;
          const uint32_t w0 = words[0], w1 = words[1], w2 = kOdd ? words[2] : 0;
          const uint32_t ab = neighbours(w0, w1, kOdd), pq = neighbours(w1, w2, kOdd);
          largest = __vmaxu2(largest, __vmaxu2(ab, pq));
          left[j] = along_x.sum(ab & 0xffffu, ab >> 16, pq & 0xffffu) >> 16;
          right[j] = along_x.sum(ab >> 16, pq & 0xffffu, pq >> 16) >> 16;
        }
        if (!has_gap(largest)) {
          take_pair(sink, contrast,
                    __byte_perm(along_y.sum(left[0], left[1], left[2]),
                                along_y.sum(right[0], right[1], right[2]), 0x7632));
          continue;
        }
      }
      one(x);
      one(x + 1);
    }
  }

  const FrameScoresJob& job_;
  MaskView mask_;
  const uint16_t* contrast_;
  Vec3i units_;
  int32_t shift_;
  Step sx_, sy_;
  Taps tx_, ty_;
};

/// One block of threads per candidate (x) and frame (y).
template <bool kWords>
__global__ void __launch_bounds__(kThreads)
    frame_scores_kernel(const __grid_constant__ FrameScoresJob job, const TapTable* taps) {
  clear_histograms(1);
  __syncthreads();
  const int64_t frame = blockIdx.y, place = frame * job.candidates + blockIdx.x;
  FrameCounter<kWords>(job, taps, frame, job.displacements[place]).count();
  __syncthreads();
  uint64_t sum = 0;
  uint32_t count = 0;
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    sum += static_cast<uint64_t>(shared_words[bin]) * shared_words[bin];
    count += shared_words[bin];
  }
  sum = block_sum(sum);
  count = static_cast<uint32_t>(block_sum(count));
  if (threadIdx.x == 0) job.scores[place] = {sum, count, 0};
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
  const TapTable table = gain_taps();
  const Buffer<TapTable> taps(context.device, std::span<const TapTable>(&table, 1));
  const dim3 groups(static_cast<uint32_t>(job.candidates), static_cast<uint32_t>(job.frames));
  const bool has_words = have_whole_words(job.size.x, {job.mask, job.mask_at_zero, job.contrast});
  const auto kernel = has_words ? frame_scores_kernel<true> : frame_scores_kernel<false>;
  kernel<<<groups, kThreads, kBins * sizeof(uint32_t), larch::cuda::stream_of(context.device)>>>(
      job, taps.data());
  larch::cuda::check_launch("dsa frame_scores_kernel");
}

}  // namespace larch::dsa::cuda
