// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/select.cuh"
#include "larch/core/buffer.h"
#include "larch/pbt/evaluate/candidates.h"
#include "larch/tree/tree_math.h"

// Radix selection: each voxel has a key of its own, which orders the candidates; the key of the
// last one wanted is found digit by digit, from the highest on, and the voxels that are not below
// it are the candidates. Nothing depends on the order in which threads run.
namespace larch::pbt::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr int kThreads = 256;

/// Larger for what comes before: the probability, in an order that integers have too, above the
/// complement of the index.
__device__ uint64_t key_of(const float* probability, uint32_t i) {
  const float p = probability[i] == 0 ? 0.0F : probability[i];  // no negative zero
  return static_cast<uint64_t>(tree::ordered_bits(p)) << 32 | static_cast<uint32_t>(~i);
}

/// Counts the digits at `shift` of the keys whose bits above it are those of `above`.
__global__ void __launch_bounds__(kThreads)
    count_digits(const float* probability, int64_t voxels, uint64_t above, int shift,
                 unsigned long long* counts) {
  __shared__ uint32_t block[kDigits];
  for (int d = static_cast<int>(threadIdx.x); d < kDigits; d += kThreads) block[d] = 0;
  __syncthreads();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < voxels;
       i += step) {
    const uint64_t key = key_of(probability, static_cast<uint32_t>(i));
    const int above_shift = shift + kDigitBits;
    if (above_shift < 64 && key >> above_shift != above >> above_shift) continue;
    atomicAdd(&block[key >> shift & (kDigits - 1)], 1u);
  }
  __syncthreads();
  for (int d = static_cast<int>(threadIdx.x); d < kDigits; d += kThreads) {
    if (block[d] != 0) atomicAdd(&counts[d], static_cast<unsigned long long>(block[d]));
  }
}

struct NotBelow {
  const float* probability;
  uint64_t key;
  __device__ bool operator()(uint32_t i) const { return key_of(probability, i) >= key; }
};

__global__ void read_kernel(const float* probability, const uint32_t* voxels, int64_t count,
                            float* out) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < count) out[k] = probability[voxels[k]];
}

/// The key of the candidate of rank `count`.
uint64_t last_key(const CandidatesJob& job, const Device& device) {
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>((job.voxels + kThreads - 1) / kThreads, 1024));
  Buffer<unsigned long long> counts(device, kDigits);
  std::array<unsigned long long, kDigits> on_host{};
  auto wanted = static_cast<unsigned long long>(job.count);
  uint64_t key = 0;
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    counts.set_zero();
    count_digits<<<blocks, kThreads, 0, larch::cuda::stream_of(device)>>>(
        job.probability, job.voxels, key, shift, counts.data());
    larch::cuda::check_launch("count_digits");
    counts.download(on_host);
    size_t digit = kDigits - 1;
    for (; digit > 0 && on_host[digit] < wanted; --digit) wanted -= on_host[digit];
    key |= static_cast<uint64_t>(digit) << shift;
  }
  return key;
}

}  // namespace

std::vector<Candidate> top_candidates(const CandidatesJob& job, const Context& context) {
  const Device& device = context.device;
  const cudaStream_t stream = larch::cuda::stream_of(device);
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.voxels >= kMaximumSelected) {
    throw UsageError("pbt::top_candidates takes fewer than " + std::to_string(kMaximumSelected) +
                     " voxels on a CUDA device with this CUDA toolkit, and these are " +
                     std::to_string(job.voxels) + "; use the CPU");
  }
  const NotBelow wanted{job.probability, last_key(job, device)};
  Buffer<uint32_t> voxels(device, static_cast<size_t>(job.count));
  Buffer<int64_t> found(device, 1);
  select_voxels(job.voxels, wanted, voxels.data(), found.data(), device);
  // Two arrays and not one of candidates, which have four bytes that nobody writes.
  Buffer<float> probabilities(device, static_cast<size_t>(job.count));
  read_kernel<<<static_cast<unsigned>((job.count + kThreads - 1) / kThreads), kThreads, 0,
                stream>>>(job.probability, voxels.data(), job.count, probabilities.data());
  larch::cuda::check_launch("read_kernel");
  const std::vector<uint32_t> voxel = voxels.to_vector();
  const std::vector<float> probability = probabilities.to_vector();
  std::vector<Candidate> best(voxel.size());
  for (size_t k = 0; k < best.size(); ++k) best[k] = {voxel[k], probability[k]};
  std::sort(best.begin(), best.end(), comes_before);
  return best;
}

}  // namespace larch::pbt::cuda
