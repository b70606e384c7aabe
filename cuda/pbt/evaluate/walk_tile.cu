// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/tile.cuh"
#include "larch/core/buffer.h"

// The tile-coherent walk, level by level. A block works off the nodes of one level for all voxels
// of its tile before the next level: each node has a list of the voxels that reached it, one part
// for each bank of shared memory, and lane l reads from part l, so that the lanes of a warp are at
// different voxels but never meet in a bank. A task is four voxels of each lane at one node; the
// warps of the block take tasks in turn. A list fills in any order: what a voxel adds up does not
// depend on it.
namespace larch::pbt::cuda {
namespace {

constexpr int kMaximumNodes = 1 << (kTileLevels - 1);  ///< inner nodes of a level
constexpr int kPassesOfTile = kMaximumBricks * kPasses;

/// Warps of a block, measured: more hide more latency, but weak classifiers on channels that are
/// not copied take more registers than they would leave.
template <bool kMixed>
constexpr int kWarps = kMixed ? 12 : 20;

/// The lists of one level of one block, in global memory: [node][pass][lane].
struct Lists {
  uint32_t* weights;  ///< Q30
  uint32_t* places;   ///< which of the lane's voxels, and where it lies in the copy
};

/// A voxel's element of the copy above the 8 bits of its pass.
constexpr int kPassBits = 8;
__device__ uint32_t place_of(const Lane& lane, int pass) {
  return static_cast<uint32_t>(lane.staged_element(pass)) << kPassBits |
         static_cast<uint32_t>(pass);
}

/// Of all blocks; a block has two levels, this one and the next.
struct LevelScratch {
  uint32_t* weights;
  uint32_t* places;
  unsigned long long* totals;  ///< [block][pass][lane], Q60
  int nodes;                   ///< most inner nodes of a level
};

/// One level's nodes in shared memory.
struct LevelNodes {
  int32_t node[kMaximumNodes];
  int32_t first_task[kMaximumNodes + 1];
  int32_t count[kMaximumNodes][32];  ///< entries of each lane's part
};

struct LevelState {
  LevelNodes levels[2];
  int32_t node_count[2];
  int32_t task_count;
  int32_t next_task;
};

/// Leads up to N voxels of each lane through a node. `idle`: the place that lanes without a voxel
/// read in vain, in a bank of their own.
template <int N, bool kMixed, class NodeTest, class Leaf>
__device__ void evaluate_node(const WalkArguments& a, const tree::FlatNode& node, uint32_t copy,
                              const Lane& lane, uint32_t idle, const Lists& from, int begin,
                              int count, unsigned long long* totals, const Lists& to,
                              const int (&child)[2], LevelNodes& next, int nodes_stride) {
  int pass[N];
  uint32_t place[N], staged[N], weight[N];
  int32_t h[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const bool real = begin + j < count;
    place[j] = real ? from.places[(begin + j) * 32 + lane.lane] : idle;
    weight[j] = real ? from.weights[(begin + j) * 32 + lane.lane] : 0;
    pass[j] = static_cast<int>(place[j] & ((1u << kPassBits) - 1));
    staged[j] = copy + 4 * (place[j] >> kPassBits);
    asm("" : "+r"(staged[j]));  // keeps the compiler from computing it anew at every tap
  }
  NodeTest::template ask<N, kMixed>(a.tree, node, lane, staged, pass, h);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (weight[j] == 0) continue;
    const tree::Shares share = tree::shares_of(node, NodeTest::split(a.tree, weight[j], h[j]));
    const unsigned long long ended = Leaf::mixed(node, share);
    if (ended > 0) atomicAdd(&totals[pass[j] * 32 + lane.lane], ended);
    const uint32_t down[2] = {share.left, share.right};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (down[side] == 0) continue;
      const int slot = atomicAdd(&next.count[child[side]][lane.lane], 1);
      const int64_t at = static_cast<int64_t>(child[side]) * nodes_stride + slot * 32 + lane.lane;
      to.weights[at] = down[side];
      to.places[at] = place[j];
    }
  }
}

/// One warp: numbers the tasks of a level.
__device__ void number_tasks(LevelState& state, int which) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  LevelNodes& level = state.levels[which];
  int tasks = 0;
  for (int n = 0; n < state.node_count[which]; ++n) {
    const auto longest = static_cast<int>(
        __reduce_max_sync(0xffffffffu, static_cast<uint32_t>(level.count[n][lane])));
    if (lane == 0) level.first_task[n] = tasks;
    tasks += (longest + kTogether - 1) / kTogether;
  }
  if (lane == 0) {
    level.first_task[state.node_count[which]] = tasks;
    state.task_count = tasks;
    state.next_task = 0;
  }
}

/// One thread: the inner children of a level's nodes become the next level.
__device__ void number_children(const PackedTreeView& tree, LevelState& state, int which) {
  const LevelNodes& level = state.levels[which];
  LevelNodes& next = state.levels[1 - which];
  int count = 0;
  for (int n = 0; n < state.node_count[which]; ++n) {
    const tree::FlatNode node = tree.nodes[level.node[n]];
    if (node.left >= 0) next.node[count++] = node.left;
    if (node.right >= 0) next.node[count++] = node.right;
  }
  state.node_count[1 - which] = count;
}

/// Returns the index of the child among the nodes of the next level: -1 if it is a leaf.
__device__ int child_index(const LevelNodes& next, int count, int32_t node) {
  for (int n = 0; n < count; ++n) {
    if (next.node[n] == node) return n;
  }
  return -1;
}

template <bool kMixed, class NodeTest, class Leaf>
__device__ void work_off(const WalkArguments& a, uint32_t copy, const Lane& lane, LevelState& state,
                         int which, const Lists (&lists)[2], unsigned long long* totals) {
  constexpr int kStride = kPassesOfTile * 32;
  const uint32_t idle = place_of(lane, 0);
  const LevelNodes& level = state.levels[which];
  LevelNodes& next = state.levels[1 - which];
  while (true) {
    int task = 0;
    if (lane.lane == 0) task = atomicAdd(&state.next_task, 1);
    task = __shfl_sync(0xffffffffu, task, 0);
    if (task >= state.task_count) return;
    int n = 0;
    while (level.first_task[n + 1] <= task) ++n;
    const tree::FlatNode node = a.tree.nodes[level.node[n]];
    const int begin = (task - level.first_task[n]) * kTogether;
    const int count = level.count[n][lane.lane];
    const int longest =
        min(kTogether, static_cast<int>(__reduce_max_sync(
                           0xffffffffu, static_cast<uint32_t>(max(0, count - begin)))));
    const int child[2] = {child_index(next, state.node_count[1 - which], node.left),
                          child_index(next, state.node_count[1 - which], node.right)};
    const Lists from{lists[which].weights + n * kStride, lists[which].places + n * kStride};
    const Lists& to = lists[1 - which];
    switch (longest) {
      case 1:
        evaluate_node<1, kMixed, NodeTest, Leaf>(a, node, copy, lane, idle, from, begin, count,
                                                 totals, to, child, next, kStride);
        break;
      case 2:
        evaluate_node<2, kMixed, NodeTest, Leaf>(a, node, copy, lane, idle, from, begin, count,
                                                 totals, to, child, next, kStride);
        break;
      case 3:
        evaluate_node<3, kMixed, NodeTest, Leaf>(a, node, copy, lane, idle, from, begin, count,
                                                 totals, to, child, next, kStride);
        break;
      default:
        evaluate_node<4, kMixed, NodeTest, Leaf>(a, node, copy, lane, idle, from, begin, count,
                                                 totals, to, child, next, kStride);
    }
  }
}

/// The list of the root: the tile's voxels in the image and the region of interest.
__device__ void enter(const Lane& lane, LevelState& state, const Lists& list,
                      unsigned long long* totals, int passes) {
  if (threadIdx.x < 32) state.levels[0].count[0][threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    state.levels[0].node[0] = 0;
    state.node_count[0] = 1;
  }
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int pass = static_cast<int>(threadIdx.x) / 32; pass < passes; pass += warps) {
    totals[pass * 32 + lane.lane] = 0;
    if (!lane.is_wanted(lane.voxel(pass))) continue;
    const int slot = atomicAdd(&state.levels[0].count[0][lane.lane], 1);
    list.weights[slot * 32 + lane.lane] = tree::kOneQ30;
    list.places[slot * 32 + lane.lane] = place_of(lane, pass);
  }
}

template <bool kMixed, class NodeTest, class Leaf>
__global__ void __launch_bounds__(32 * kWarps<kMixed>, 1)
    level_kernel(const __grid_constant__ WalkArguments a, const __grid_constant__ Tiling t,
                 LevelScratch scratch, unsigned long long* next_tile) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ unsigned long long tile_number;
  LevelState& state = *reinterpret_cast<LevelState*>(shared);
  auto* copy = reinterpret_cast<uint32_t*>(shared + sizeof(LevelState));
  const auto copy_address = static_cast<uint32_t>(__cvta_generic_to_shared(copy));
  const int passes = t.bricks.x * t.bricks.y * t.bricks.z * kPasses;
  const int64_t level_size = static_cast<int64_t>(scratch.nodes) * kPassesOfTile * 32;
  const int64_t slot = blockIdx.x * 2 * level_size;
  const Lists lists[2] = {
      {scratch.weights + slot, scratch.places + slot},
      {scratch.weights + slot + level_size, scratch.places + slot + level_size}};
  unsigned long long* totals = scratch.totals + blockIdx.x * int64_t{kPassesOfTile} * 32;
  const int64_t tile_count = static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
  while (true) {
    if (threadIdx.x == 0) tile_number = atomicAdd(next_tile, 1ULL);
    __syncthreads();
    const auto n = static_cast<int64_t>(tile_number);
    if (n >= tile_count) return;
    const Lane lane{a, t, tile_corner(t, n), static_cast<int>(threadIdx.x % 32)};
    stage(a, t, lane.tile, copy);
    enter(lane, state, lists[0], totals, passes);
    for (int which = 0;; which = 1 - which) {
      __syncthreads();
      if (threadIdx.x < 32) {
        number_tasks(state, which);
      } else if (threadIdx.x == 32) {
        number_children(a.tree, state, which);
      }
      LevelNodes& next = state.levels[1 - which];
      for (int i = static_cast<int>(threadIdx.x); i < kMaximumNodes * 32;
           i += static_cast<int>(blockDim.x)) {
        next.count[i / 32][i % 32] = 0;
      }
      __syncthreads();
      if (state.task_count == 0) break;
      work_off<kMixed, NodeTest, Leaf>(a, copy_address, lane, state, which, lists, totals);
    }
    __threadfence_block();
    for (int pass = static_cast<int>(threadIdx.x) / 32; pass < passes;
         pass += static_cast<int>(blockDim.x) / 32) {
      const Vec3i at = lane.voxel(pass);
      if (lane.in_image(at)) {
        store(a, linear_index(a.size, at), __ldcg(&totals[pass * 32 + lane.lane]));
      }
    }
    __syncthreads();  // the copy, the lists and the tile's number are reused
  }
}

/// Shared memory that a block may ask for at its launch, beside what the kernel declares itself.
size_t most_shared_memory(const Device& device) {
  constexpr int kDeclared = 64;  // rounded up
  return static_cast<size_t>(larch::cuda::most_shared_bytes(device) - kDeclared);
}

/// Cuts an image into tiles; returns their number.
int64_t cut(Tiling& t, const Vec3i& size) {
  const Vec3i voxels = voxels_of(t);
  for (int axis = 0; axis < 3; ++axis) {
    t.tiles[axis] = (size[axis] + voxels[axis] - 1) / voxels[axis];
  }
  return static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
}

}  // namespace

size_t most_copy_bytes(const Device& device) {
  return most_shared_memory(device) - sizeof(LevelState);
}

void tile_walk(const WalkJob& job, const WalkArguments& arguments) {
  if (!job.tree.tiling) return queue_walk(job, arguments);
  const Device& device = job.device;
  Tiling t = *job.tree.tiling;
  const int64_t processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  int64_t all = cut(t, arguments.size);
  const Vec3i planned = voxels_of(t);
  for (int axis = 2; axis >= 0; --axis) {
    // Half of the processors would be idle otherwise. The strides of the copy stay as they are.
    while (2 * all <= processors && t.bricks[axis] > 1) {
      --t.bricks[axis];
      all = cut(t, arguments.size);
    }
    t.extent[axis] -= planned[axis] - voxels_of(t)[axis];
  }
  const auto kernel = t.mixed ? level_kernel<true, TileStrongNode, tree::ProbabilityLeaf>
                              : level_kernel<false, TileStrongNode, tree::ProbabilityLeaf>;
  // The attribute belongs to the kernel and not to a launch: it is the same for all, so that
  // threads which launch the kernel side by side do not lower it for each other.
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(most_shared_memory(device))));
  const unsigned threads = 32 * (t.mixed ? kWarps<true> : kWarps<false>);
  const auto blocks = static_cast<size_t>(std::min(all, processors));
  const int levels = std::max(1, arguments.tree.depth);
  const size_t nodes = size_t{1} << (levels - 1);
  const size_t entries = blocks * 2 * nodes * kPassesOfTile * 32;
  Buffer<uint32_t> weights(device, entries);
  Buffer<uint32_t> places(device, entries);
  Buffer<unsigned long long> totals(device, blocks * kPassesOfTile * 32);
  Buffer<unsigned long long> next(device, 1);
  next.set_zero();
  kernel<<<static_cast<unsigned>(blocks), threads, t.copy_bytes() + sizeof(LevelState),
           job.stream()>>>(
      arguments, t,
      LevelScratch{weights.data(), places.data(), totals.data(), static_cast<int>(nodes)},
      next.data());
  larch::cuda::check_launch("level_kernel");
}

}  // namespace larch::pbt::cuda
