// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <cub/block/block_reduce.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "cuda/core/check.cuh"
#include "cuda/tree/part_of_warp.cuh"
#include "larch/hdn/stages.h"

namespace larch::hdn::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kClusterThreads = pose::kMaximumCandidates;  ///< one for each candidate

using larch::cuda::blocks_for;
using tree::cuda::PartOfWarp;

template <StageKind kind>
__global__ void __launch_bounds__(kThreads)
    score_kernel(const __grid_constant__ StageView stage, uint64_t begin, uint64_t end) {
  const uint64_t thread = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const uint64_t slot = begin + thread / PartOfWarp::kCount;
  if (slot < end) score_slot<kind>(stage, slot, PartOfWarp{});
}

__global__ void __launch_bounds__(kThreads)
    keep_kernel(const __grid_constant__ StageView stage, const uint64_t* sorted) {
  const uint32_t kept = blockIdx.x * kThreads + threadIdx.x;
  if (kept < stage.kept) keep_candidate(stage, sorted, kept);
}

/// Queues the hypotheses of all segments, sorted. The sort is stable and the slots of a segment
/// are in the order of the numbers, so that the bits of the number need no pass; nor do those bits
/// of the segment that are the same in all keys.
Buffer<uint64_t> sort_keys(const StageView& stage, const Device& device) {
  Buffer<uint64_t> sorted(device, stage.slots);
  const int end_bit = 56 + std::bit_width(static_cast<uint32_t>(stage.segment_count - 1));
  size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    LARCH_CUDA_CHECK(cub::DeviceRadixSort::SortKeysDescending(
        scratch, bytes, stage.keys, sorted.data(), static_cast<uint32_t>(stage.slots), 24, end_bit,
        larch::cuda::stream_of(device)));
  };
  sort(nullptr);
  Buffer<uint8_t> scratch(device, bytes);
  sort(scratch.data());
  return sorted;
}

/// A candidate and how dense the candidates around it are.
struct Mode {
  double density = -1;
  int32_t candidate = pose::kMaximumCandidates;  ///< as it is: none
};
struct Denser {
  __device__ Mode operator()(const Mode& a, const Mode& b) const {
    const bool first =
        a.density > b.density || (a.density == b.density && a.candidate < b.candidate);
    return first ? a : b;
  }
};

/// One block per job.
__global__ void __launch_bounds__(kClusterThreads) cluster_kernel(const ClusterJob* jobs) {
  using Reduce = cub::BlockReduce<Mode, kClusterThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ uint8_t taken[pose::kMaximumCandidates];
  __shared__ double sums[pose::kClusterSums];
  __shared__ int32_t mode;
  const ClusterJob job = jobs[blockIdx.x];
  const int32_t count = *job.count;
  const auto own = static_cast<int32_t>(threadIdx.x);
  taken[own] = 0;
  __syncthreads();
  int32_t found = 0;
  for (; found < pose::kMaximumClusters; ++found) {
    Mode best;
    if (own < count && taken[own] == 0) {
      best = {pose::density(job.candidates, taken, count, job.rule, own), own};
    }
    best = Reduce(storage).Reduce(best, Denser{});
    if (own == 0) mode = best.candidate;
    __syncthreads();
    if (mode == pose::kMaximumCandidates) break;
    const auto mark = static_cast<uint8_t>(found + 1);
    const bool is_member =
        own < count && pose::joins(job.candidates, taken, job.rule, found, mode, own);
    __syncthreads();  // words of `taken` are read before parts of them are written
    if (is_member) taken[own] = mark;
    __syncthreads();
    if (own < pose::kClusterSums) {
      sums[own] = pose::cluster_sum(job.candidates, taken, mark, count,
                                    pose::is_plain(job.rule, found), own);
    }
    __syncthreads();
    if (own == 0) {
      Cluster cluster = pose::cluster_of(sums);
      pose::measure_spread(job.candidates, taken, mark, count, cluster);
      job.clusters[found] = cluster;
    }
  }
  if (own == 0) *job.cluster_count = found;
}

/// One block per job, with a thread for each cluster.
__global__ void seed_kernel(const SeedJob* jobs) {
  make_seed(jobs[blockIdx.x], static_cast<int32_t>(threadIdx.x));
}

}  // namespace

void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context) {
  if (end <= begin) return;
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  const unsigned blocks = blocks_for((end - begin) * PartOfWarp::kCount, kThreads);
  const auto kernel = stage.kind == StageKind::kPosition ? score_kernel<StageKind::kPosition>
                      : stage.kind == StageKind::kOrientation
                          ? score_kernel<StageKind::kOrientation>
                          : score_kernel<StageKind::kScale>;
  kernel<<<blocks, kThreads, 0, stream>>>(stage, begin, end);
  larch::cuda::check_launch("score_kernel");
}

void keep_stage(const StageView& stage, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  const Buffer<uint64_t> sorted = sort_keys(stage, context.device);
  keep_kernel<<<blocks_for(stage.kept, kThreads), kThreads, 0, stream>>>(stage, sorted.data());
  larch::cuda::check_launch("keep_kernel");
}

void make_clusters(const Buffer<ClusterJob>& jobs, const Context& context) {
  cluster_kernel<<<static_cast<unsigned>(jobs.size()), kClusterThreads, 0,
                   larch::cuda::stream_for(context.device)>>>(jobs.data());
  larch::cuda::check_launch("cluster_kernel");
}

void make_seeds(const Buffer<SeedJob>& jobs, const Context& context) {
  seed_kernel<<<static_cast<unsigned>(jobs.size()), pose::kMaximumClusters, 0,
                larch::cuda::stream_for(context.device)>>>(jobs.data());
  larch::cuda::check_launch("seed_kernel");
}

}  // namespace larch::hdn::cuda
