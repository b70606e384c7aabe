// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/learning/matrix_votes.h"

namespace larch::learning::cuda {
namespace {

struct Arguments {
  const uint8_t* codes;
  size_t rows, width;
  const SlotVote* weaks;
  int weak_count;
  uint32_t* bits;   ///< or null
  int32_t* scores;  ///< zeroed, or null
};

/// One thread per word of 32 votes, so that no two threads write the same word.
__global__ void matrix_votes_kernel(const __grid_constant__ Arguments a) {
  const size_t row = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  const int words = (a.weak_count + 31) / 32, word = static_cast<int>(blockIdx.y);
  const int end = min(a.weak_count, 32 * (word + 1));
  uint32_t bits = 0;
  int32_t h = 0;
  for (int t = 32 * word; t < end; ++t) {
    const SlotVote weak = a.weaks[t];
    const bool vote = slot_vote(weak, a.codes, a.rows, a.width, row);
    if (vote) bits |= 1u << (t % 32);
    h += vote ? weak.alpha_q20 : -weak.alpha_q20;
  }
  if (a.bits != nullptr)
    a.bits[row * static_cast<size_t>(words) + static_cast<size_t>(word)] = bits;
  if (a.scores != nullptr) atomicAdd(&a.scores[row], h);
}

}  // namespace

void matrix_votes(const MatrixVotesJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<SlotVote> weaks(device, job.weaks);
  Buffer<uint32_t> bits(device, job.bits.size());
  Buffer<int32_t> scores(device, job.scores.size());
  scores.set_zero();
  const Arguments arguments{job.matrix.codes.data(),
                            job.matrix.rows,
                            job.matrix.width,
                            weaks.data(),
                            static_cast<int>(job.weaks.size()),
                            bits.data(),
                            scores.data()};
  constexpr size_t kThreads = 128;
  const dim3 grid(larch::cuda::blocks_for(job.matrix.rows, kThreads),
                  static_cast<unsigned>((job.weaks.size() + 31) / 32));
  matrix_votes_kernel<<<grid, kThreads, 0, larch::cuda::stream_of(device)>>>(arguments);
  larch::cuda::check_launch("matrix_votes_kernel");
  bits.download(job.bits);
  scores.download(job.scores);
}

}  // namespace larch::learning::cuda
