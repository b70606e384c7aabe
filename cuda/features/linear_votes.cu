// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/features/linear/linear_source.h"

namespace larch::features::cuda {
namespace {

struct Arguments {
  const LinearTap* taps;
  const VoteRecord* weaks;
  int weak_count;
  const uint32_t* integral;
  const int64_t* bases;
  int64_t sample_count;
  const uint32_t* index;
  int64_t selected;
  uint32_t* bits;   ///< or null
  int32_t* scores;  ///< zeroed, or null
};

/// One thread per word of 32 votes, so that no two threads write the same word.
__global__ void votes_kernel(Arguments a) {
  const int words = (a.weak_count + 31) / 32;
  const int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= a.selected) return;
  const int word = blockIdx.y;
  const int end = min(a.weak_count, 32 * (word + 1));
  uint32_t bits = 0;
  int32_t h = 0;
  for (int t = 32 * word; t < end; ++t) {
    const VoteRecord weak = a.weaks[t];
    const int32_t value =
        response_of_channels(a.taps + weak.first_tap, weak.n_tap, [&](uint32_t channel) {
          return a.integral + a.bases[channel * a.sample_count + a.index[k]];
        });
    const bool vote = learning::weak_vote(weak.codes, weak.bins, weak.mask, value);
    if (vote) bits |= 1u << (t % 32);
    h += vote ? weak.alpha_q20 : -weak.alpha_q20;
  }
  if (a.bits != nullptr) a.bits[k * words + word] = bits;
  if (a.scores != nullptr) atomicAdd(&a.scores[k], h);
}

}  // namespace

void vote(const LinearVoteJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<VoteRecord> weaks(device, job.weaks);
  const Buffer<uint32_t> index(device, job.request.samples);
  Buffer<uint32_t> bits(device, job.request.bits.size());
  Buffer<int32_t> scores(device, job.request.scores.size());
  scores.set_zero();
  const Arguments arguments{job.taps,
                            weaks.data(),
                            static_cast<int>(job.weaks.size()),
                            job.places.integral,
                            job.places.bases,
                            static_cast<int64_t>(job.places.count),
                            index.data(),
                            static_cast<int64_t>(index.size()),
                            bits.data(),
                            scores.data()};
  const auto words = static_cast<unsigned>((job.weaks.size() + 31) / 32);
  constexpr int kThreads = 128;
  const unsigned blocks = larch::cuda::blocks_for(std::ssize(index), kThreads);
  votes_kernel<<<dim3(blocks, words), kThreads, 0, larch::cuda::stream_of(device)>>>(arguments);
  larch::cuda::check_launch("votes_kernel");
  bits.download(job.request.bits);
  scores.download(job.request.scores);
}

}  // namespace larch::features::cuda
