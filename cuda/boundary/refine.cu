// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/core/team.cuh"
#include "cuda/tree/part_of_warp.cuh"
#include "larch/boundary/refine.h"

namespace larch::boundary::cuda {
namespace {

using larch::cuda::BlockTeam;
using tree::cuda::PartOfWarp;

constexpr int kThreads = 128;

unsigned blocks_for(int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}
/// Several lanes evaluate an item.
__device__ int64_t item_of_lanes() {
  return (int64_t{blockIdx.x} * kThreads + threadIdx.x) / PartOfWarp::kCount;
}

// The kernels of one block go over the whole mesh, whose steps wait for each other.

__global__ void __launch_bounds__(kTeamThreads)
    begin_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state) {
  __shared__ double warps[kTeamWarp];
  begin_level(BlockTeam{warps}, level, state);
}

__global__ void __launch_bounds__(kTeamThreads)
    update_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state,
                  double range) {
  __shared__ double warps[kTeamWarp];
  update_mesh(BlockTeam{warps}, level, state, range);
}

__global__ void __launch_bounds__(kTeamThreads)
    choose_kernel(const __grid_constant__ LevelView level,
                  const __grid_constant__ SearchView search,
                  const __grid_constant__ MeshState state) {
  __shared__ double warps[kTeamWarp];
  choose_shape(BlockTeam{warps}, level, search, state);
}

__global__ void __launch_bounds__(kThreads)
    score_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state,
                 double range) {
  const int64_t item = item_of_lanes();
  if (item >= int64_t{level.count} * kDisplacements) return;
  const auto v = static_cast<int>(item / kDisplacements);
  const auto j = static_cast<int>(item % kDisplacements);
  const features::SteerableFrame frame =
      features::moved_along_normal(state.frames[v], static_cast<float>(displacement(range, j)));
  const float p = level.classifier.probability(frame, PartOfWarp{});
  if (PartOfWarp{}.index() == 0) state.probabilities[item] = p;
}

__global__ void __launch_bounds__(kThreads)
    place_kernel(const __grid_constant__ LevelView level,
                 const __grid_constant__ SearchView search) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= int64_t{level.count} * search.candidates) return;
  place_candidate(level, search, static_cast<int>(item / level.count),
                  static_cast<int>(item % level.count));
}

__global__ void __launch_bounds__(kThreads)
    score_candidates_kernel(const __grid_constant__ LevelView level,
                            const __grid_constant__ SearchView search) {
  const int64_t item = item_of_lanes();
  if (item >= int64_t{level.count} * search.candidates) return;
  const features::SteerableFrame frame = candidate_frame(
      level, search, static_cast<int>(item / level.count), static_cast<int>(item % level.count));
  const float p = level.classifier.probability(frame, PartOfWarp{});
  if (PartOfWarp{}.index() == 0) search.probabilities[item] = p;
}

cudaStream_t stream_for(const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  return larch::cuda::stream_of(context.device);
}

}  // namespace

void begin_level(const LevelView& level, const MeshState& state, const Context& context) {
  begin_kernel<<<1, kTeamThreads, 0, stream_for(context)>>>(level, state);
  larch::cuda::check_launch("begin_kernel");
}

void score(const LevelView& level, const MeshState& state, double range, const Context& context) {
  const int64_t threads = int64_t{level.count} * kDisplacements * PartOfWarp::kCount;
  score_kernel<<<blocks_for(threads), kThreads, 0, stream_for(context)>>>(level, state, range);
  larch::cuda::check_launch("score_kernel");
}

void update(const LevelView& level, const MeshState& state, double range, const Context& context) {
  update_kernel<<<1, kTeamThreads, 0, stream_for(context)>>>(level, state, range);
  larch::cuda::check_launch("update_kernel");
}

void search_shape(const LevelView& level, const SearchView& search, const MeshState& state,
                  const Context& context) {
  const cudaStream_t stream = stream_for(context);
  if (search.modes > 0) {
    const int64_t items = int64_t{level.count} * search.candidates;
    place_kernel<<<blocks_for(items), kThreads, 0, stream>>>(level, search);
    score_candidates_kernel<<<blocks_for(items * PartOfWarp::kCount), kThreads, 0, stream>>>(
        level, search);
  }
  choose_kernel<<<1, kTeamThreads, 0, stream>>>(level, search, state);
  larch::cuda::check_launch("choose_kernel");
}

}  // namespace larch::boundary::cuda
