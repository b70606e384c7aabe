// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/core/team.cuh"
#include "cuda/tree/part_of_warp.cuh"
#include "larch/boundary/refine.h"
#include "larch/mesh/sphere_template.h"

namespace larch::boundary::cuda {
namespace {

using larch::cuda::blocks_for;
using larch::cuda::BlockTeam;
using larch::cuda::kTeamPlaces;
using tree::cuda::PartOfWarp;

constexpr int kThreads = 128, kBlocks = 8;  // so many per processor hide the reads of images

/// Several lanes evaluate an item.
__device__ int64_t item_of_lanes() {
  return (int64_t{blockIdx.x} * kThreads + threadIdx.x) / PartOfWarp::kCount;
}

// The kernels of one block go over the whole mesh, whose steps wait for each other.

__global__ void __launch_bounds__(kTeamThreads)
    begin_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state) {
  __shared__ double warps[kTeamPlaces];
  begin_level(BlockTeam{warps}, level, state);
}

/// The arrays of an update lie in shared memory where a block may have so much: its steps are short
/// and wait for each other.
constexpr int kMaximum = mesh::kMaximumTemplateVertices;
constexpr int kUpdateBytes =
    kMaximum * static_cast<int>(sizeof(Vec3d) + 6 * sizeof(double) + sizeof(mesh::Ring));
extern __shared__ __align__(16) char shared_places[];

__device__ void take_shared_memory(const BlockTeam& team, LevelView& level, MeshState& state) {
  const MeshState far = state;
  const mesh::Ring* far_rings = level.rings;
  state.x = reinterpret_cast<Vec3d*>(shared_places);
  double* next = reinterpret_cast<double*>(state.x + kMaximum);
  if (!level.smooths_positions) {  // what comes after the smoothing takes the same places
    state.points = reinterpret_cast<Vec3d*>(next);
    state.part = state.points + kMaximum;
  }
  for (double** array :
       {&state.weights, &state.moved, &state.smoothing.residual, &state.smoothing.direction,
        &state.smoothing.product, &state.smoothing.inverse}) {
    *array = next;
    next += kMaximum;
  }
  auto* rings = reinterpret_cast<mesh::Ring*>(next);
  level.rings = rings;
  team.each(level.count, [&](int v) {
    state.x[v] = far.x[v];
    state.weights[v] = far.weights[v];
    rings[v] = far_rings[v];
  });
}

__global__ void __launch_bounds__(kTeamThreads)
    update_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state,
                  bool is_near) {
  __shared__ double warps[kTeamPlaces];
  const BlockTeam team{warps};
  LevelView near_level = level;
  MeshState near = state;
  if (is_near) take_shared_memory(team, near_level, near);
  update_mesh(team, near_level, near);
  team.each(level.count, [&](int v) { state.x[v] = near.x[v]; });
}

__global__ void __launch_bounds__(kTeamThreads)
    choose_kernel(const __grid_constant__ LevelView level,
                  const __grid_constant__ SearchView search,
                  const __grid_constant__ MeshState state) {
  __shared__ double warps[kTeamPlaces];
  choose_shape(BlockTeam{warps}, level, search, state);
}

__global__ void __launch_bounds__(kThreads, kBlocks)
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
    peak_kernel(const __grid_constant__ LevelView level, const __grid_constant__ MeshState state,
                double range) {
  const auto v = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (v < level.count) take_peak(level, state, range, v);
}

__global__ void __launch_bounds__(kThreads)
    place_kernel(const __grid_constant__ LevelView level,
                 const __grid_constant__ SearchView search) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item >= int64_t{level.count} * search.candidates) return;
  place_candidate(level, search, static_cast<int>(item / level.count),
                  static_cast<int>(item % level.count));
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    score_candidates_kernel(const __grid_constant__ LevelView level,
                            const __grid_constant__ SearchView search) {
  const int64_t item = item_of_lanes();
  if (item >= int64_t{level.count} * search.candidates) return;
  const features::SteerableFrame frame = candidate_frame(
      level, search, static_cast<int>(item / level.count), static_cast<int>(item % level.count));
  const float p = level.classifier.probability(frame, PartOfWarp{});
  if (PartOfWarp{}.index() == 0) search.probabilities[item] = p;
}

}  // namespace

void begin_level(const LevelView& level, const MeshState& state, const Context& context) {
  begin_kernel<<<1, kTeamThreads, 0, larch::cuda::stream_for(context.device)>>>(level, state);
  larch::cuda::check_launch("begin_kernel");
}

void score(const LevelView& level, const MeshState& state, double range, const Context& context) {
  const int64_t threads = int64_t{level.count} * kDisplacements * PartOfWarp::kCount;
  score_kernel<<<blocks_for(threads, kThreads), kThreads, 0,
                 larch::cuda::stream_for(context.device)>>>(level, state, range);
  larch::cuda::check_launch("score_kernel");
}

void update(const LevelView& level, const MeshState& state, double range, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  peak_kernel<<<blocks_for(level.count, kThreads), kThreads, 0, stream>>>(level, state, range);
  constexpr int kOwn = 1024;  // more than the kernel declares itself
  const bool is_near = larch::cuda::most_shared_bytes(context.device) - kOwn >= kUpdateBytes;
  if (is_near) {
    LARCH_CUDA_CHECK(cudaFuncSetAttribute(
        update_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kUpdateBytes));
  }
  update_kernel<<<1, kTeamThreads, is_near ? kUpdateBytes : 0, stream>>>(level, state, is_near);
  larch::cuda::check_launch("update_kernel");
}

void search_shape(const LevelView& level, const SearchView& search, const MeshState& state,
                  const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  if (search.modes > 0) {
    const int64_t items = int64_t{level.count} * search.candidates;
    place_kernel<<<blocks_for(items, kThreads), kThreads, 0, stream>>>(level, search);
    score_candidates_kernel<<<blocks_for(items * PartOfWarp::kCount, kThreads), kThreads, 0,
                              stream>>>(level, search);
  }
  choose_kernel<<<1, kTeamThreads, 0, stream>>>(level, search, state);
  larch::cuda::check_launch("choose_kernel");
}

}  // namespace larch::boundary::cuda
