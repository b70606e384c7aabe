// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/dsa/block_samples.cuh"
#include "cuda/dsa/histogram.cuh"
#include "larch/dsa/literal.h"
#include "larch/dsa/literal_math.h"

// The literal method on a card, as plainly as on the CPU: the patent's parallel processors are the
// blocks of threads, each of which owns a block of a picture.
namespace larch::dsa::cuda {
namespace {

/// A block as match_literally asks for it; all threads call its functions together and get the same
/// answers. The first two histograms of shared memory are empty before and after.
class LiteralBlock {
 public:
  __device__ LiteralBlock(const MatchArguments& a, int32_t frame, int32_t block)
      : a_(a),
        contrast_(a.contrast + static_cast<int64_t>(frame) * a.image.x * a.image.y),
        x_(a.starts_x[block % a.blocks_x]),
        y_(a.starts_y[block / a.blocks_x]),
        shift_(a.bin_shift[frame]) {}

  __device__ uint32_t count_contrast() const {
    uint32_t own = 0;
    for_pixels([&](int32_t, int32_t, uint16_t) { ++own; });
    return static_cast<uint32_t>(block_sum(own));
  }

  __device__ int32_t median_at(const Vec3i& units) const {
    return median_of([&](const auto& sink) {
      for_samples(units, [&](int32_t contrast, int32_t mask) { sink.one(contrast, mask); });
    });
  }

  __device__ Score score_at(const Vec3i& units, int32_t mu) const {
    for_samples(units, [&](int32_t contrast, int32_t mask) {
      count_in(0, clamped_bin(bin_number(contrast - mask, mu, shift_)));
    });
    __syncthreads();
    static_assert(kThreads == kBins / 4);
    auto* entries = reinterpret_cast<uint4*>(shared_words) + threadIdx.x;
    uint64_t sum = 0;
    uint32_t count = 0;
    add_terms(*entries, a_.ranking, sum, count);
    *entries = make_uint4(0, 0, 0, 0);
    Score score;
    score.sum = block_sum(sum);
    score.count = static_cast<uint32_t>(block_sum(count));
    return score;
  }

  __device__ uint32_t beyond_at(const Vec3i& units, int32_t mu) const {
    uint32_t own = 0;
    for_samples(units, [&](int32_t contrast, int32_t mask) {
      own += is_overflow(bin_number(contrast - mask, mu, shift_));
    });
    return static_cast<uint32_t>(block_sum(own));
  }

 private:
  /// Calls body(x, y, contrast) for this thread's contrast pixels that count.
  template <class Body>
  __device__ void for_pixels(const Body& body) const {
    const int32_t pixels = a_.block.x * a_.block.y;
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < pixels; i += kThreads) {
      const int32_t x = x_ + i % a_.block.x, y = y_ + i / a_.block.x;
      const uint16_t contrast = contrast_[static_cast<int64_t>(y) * a_.image.x + x];
      if (contrast != kNoSample) body(x, y, contrast);
    }
  }
  /// Calls body(contrast, mask) for those whose displaced mask counts.
  template <class Body>
  __device__ void for_samples(const Vec3i& units, const Body& body) const {
    const LiteralStep step = literal_step(units);
    for_pixels([&](int32_t x, int32_t y, uint16_t contrast) {
      const uint16_t mask = literal_sample(a_.mask, a_.image, {x, y, 0}, step);
      if (mask != kNoSample) body(contrast, mask);
    });
  }

  const MatchArguments& a_;
  const uint16_t* contrast_;
  const int32_t x_, y_, shift_;
};

/// One block of threads for each block of each frame.
__global__ void __launch_bounds__(kThreads)
    literal_kernel(const __grid_constant__ MatchArguments a) {
  clear_histograms(2);
  __syncthreads();
  const auto blocks = static_cast<uint32_t>(a.blocks);
  const auto frame = static_cast<int32_t>(blockIdx.x / blocks);
  const LiteralBlock block(a, frame, static_cast<int32_t>(blockIdx.x % blocks));
  const BlockMatch match = dsa::match_literally(block, static_cast<int64_t>(a.block.x) * a.block.y,
                                                a.centre == nullptr ? Vec3i{} : a.centre[frame], 2,
                                                a.range, a.bin_shift[frame], a.ranking);
  if (threadIdx.x == 0) a.out[blockIdx.x] = match;
}

}  // namespace

void match_literally(const MatchJob& job, const Context& context) {
  if (job.frames == 0) return;
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const UploadedArguments there = upload_arguments(job, device);
  literal_kernel<<<static_cast<uint32_t>(there.arguments.items), kThreads,
                   2 * kBins * sizeof(uint32_t), larch::cuda::stream_of(device)>>>(there.arguments);
  larch::cuda::check_launch("dsa literal_kernel");
}

}  // namespace larch::dsa::cuda
