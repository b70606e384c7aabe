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
// depend on it. The channels that a tree reads are copied one after the other for each level, while
// the votes so far wait beside the list.
namespace larch::pbt::cuda {
namespace {

constexpr int kMaximumNodes = 1 << (kTileLevels - 1);  ///< inner nodes of a level

/// Entries of the lists of a node: its passes and lanes.
constexpr int kEntries = kMaximumBricks * kPasses * 32;

/// The lists of one level of one block, in global memory: [node][pass][lane].
struct Lists {
  uint32_t* weights;  ///< Q30
  uint32_t* places;   ///< which of the lane's voxels, and where it lies in the tile
  int32_t* votes;     ///< of the channels so far

  __device__ Lists of_node(int n) const {
    return {weights + n * kEntries, places + n * kEntries, votes + n * kEntries};
  }
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

/// Holds what the tasks of a level have in common.
struct Round {
  Lists from, to;              ///< of this level and the next
  unsigned long long* totals;  ///< [pass][lane], Q60
  uint32_t copy;               ///< address of the copied channel ...
  int number;                  ///< ... which is the level's first, second, ...
  int channel;                 ///< ... at this place in the tiling
  int level;                   ///< ... of this level
};

/// Asks a node at up to N voxels of each lane on a channel, and leads them on after the last one.
/// Lanes without a voxel read in vain, in a bank of their own.
template <int N>
__device__ void evaluate_node(const WalkArguments& a, const Round& round,
                              const tree::FlatNode& node, const Lane& lane, const Lists& from,
                              int begin, int count, const int (&child)[2], LevelNodes& next) {
  uint32_t place[N], staged[N];
  int32_t votes[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const bool real = begin + j < count;
    const int at = (begin + j) * 32 + lane.lane;
    place[j] = real ? from.places[at] : lane.place(0);
    votes[j] = real && round.number > 0 ? from.votes[at] : 0;
    staged[j] = round.copy + 4 * lane.staged_element(place[j], round.level);
    asm("" : "+r"(staged[j]));  // keeps the compiler from computing it anew at every tap
  }
  add_votes(a.tree, node, staged, votes);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int own = (begin + j) * 32 + lane.lane;
    if (begin + j >= count) continue;
    if (round.number + 1 < lane.tiling.channel_count) {
      from.votes[own] = votes[j];
      continue;
    }
    const int32_t h = tree::strong_value(votes[j], node.alpha_sum);
    const tree::Shares share = tree::shares_of(
        node, tree::split_weight(from.weights[own], h, a.tree.thresholds, a.tree.logistic));
    const unsigned long long ended = tree::ProbabilityLeaf::mixed(node, share);
    const uint32_t pass = place[j] & ((1u << kPassBits) - 1);
    if (ended > 0) atomicAdd(&round.totals[pass * 32 + lane.lane], ended);
    const uint32_t down[2] = {share.left, share.right};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      if (down[side] == 0) continue;
      const int at = atomicAdd(&next.count[child[side]][lane.lane], 1) * 32 + lane.lane;
      const Lists to = round.to.of_node(child[side]);
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

__device__ void work_off(const WalkArguments& a, const Round& round, const Lane& lane,
                         LevelState& state, int which) {
  const LevelNodes& level = state.levels[which];
  LevelNodes& next = state.levels[1 - which];
  while (true) {
    int task = 0;
    if (lane.lane == 0) task = atomicAdd(&state.next_task, 1);
    task = __shfl_sync(0xffffffffu, task, 0);
    if (task >= state.task_count) return;
    int n = 0;
    while (level.first_task[n + 1] <= task) ++n;
    const tree::FlatNode node = a.tree.nodes[round.channel * a.tree.node_count + level.node[n]];
    const int begin = (task - level.first_task[n]) * kTogether;
    const int count = level.count[n][lane.lane];
    const int longest =
        min(kTogether, static_cast<int>(__reduce_max_sync(
                           0xffffffffu, static_cast<uint32_t>(max(0, count - begin)))));
    const int child[2] = {child_index(next, state.node_count[1 - which], node.left),
                          child_index(next, state.node_count[1 - which], node.right)};
    const Lists from = round.from.of_node(n);
    with_constant(longest, [&](auto voxels) {
      evaluate_node<voxels.value>(a, round, node, lane, from, begin, count, child, next);
    });
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
  for (int pass = static_cast<int>(threadIdx.x) / 32; pass < passes; pass += kWarps) {
    totals[pass * 32 + lane.lane] = 0;
    if (!lane.is_wanted(lane.voxel(pass))) continue;
    const int slot = atomicAdd(&state.levels[0].count[0][lane.lane], 1);
    list.weights[slot * 32 + lane.lane] = tree::kOneQ30;
    list.places[slot * 32 + lane.lane] = lane.place(pass);
  }
}

/// `all`: the lists of all blocks, which have two levels, this one and the next, of so many inner
/// nodes at most; `all_totals`: [block][pass][lane], Q60.
__global__ void __launch_bounds__(32 * kWarps, 1)
    level_kernel(const __grid_constant__ WalkArguments a, const __grid_constant__ Tiling t,
                 Lists all, unsigned long long* all_totals, int level_nodes,
                 unsigned long long* next_tile) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ unsigned long long tile_number;
  LevelState& state = *reinterpret_cast<LevelState*>(shared);
  auto* copy = reinterpret_cast<uint32_t*>(shared + sizeof(LevelState));
  const auto copy_address = static_cast<uint32_t>(__cvta_generic_to_shared(copy));
  const int passes = t.bricks.x * t.bricks.y * t.bricks.z * kPasses;
  const int64_t level_size = static_cast<int64_t>(level_nodes) * kEntries;
  const auto lists = [&](int which) {
    const int64_t first = (blockIdx.x * int64_t{2} + which) * level_size;
    return Lists{all.weights + first, all.places + first, all.votes + blockIdx.x * level_size};
  };
  unsigned long long* totals = all_totals + blockIdx.x * int64_t{kEntries};
  const int64_t tile_count = static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
  while (true) {
    if (threadIdx.x == 0) tile_number = atomicAdd(next_tile, 1ULL);
    __syncthreads();
    const auto n = static_cast<int64_t>(tile_number);
    if (n >= tile_count) return;
    const Lane lane{a, t, tile_corner(t, n), static_cast<int>(threadIdx.x % 32)};
    stage(a, t, t.channels[0], lane.tile, copy);
    enter(lane, state, lists(0), totals, passes);
    for (int which = 0;; which = 1 - which) {
      __syncthreads();
      if (threadIdx.x < 32) {
        number_tasks(state, which);
      } else if (threadIdx.x == 32) {
        number_children(a.tree, state, which);
      }
      LevelNodes& next = state.levels[1 - which];
      for (int i = static_cast<int>(threadIdx.x); i < kMaximumNodes * 32; i += 32 * kWarps) {
        next.count[i / 32][i % 32] = 0;
      }
      __syncthreads();
      if (state.task_count == 0) break;
      // Back and forth: a level begins with the channel that the one above has ended with.
      for (int k = 0; k < t.channel_count; ++k) {
        const int c = which == 0 ? k : t.channel_count - 1 - k;
        if (k > 0) {
          __syncthreads();
          stage(a, t, t.channels[c], lane.tile, copy);
          if (threadIdx.x == 0) state.next_task = 0;
          __syncthreads();
        }
        const int level = a.layouts[t.channels[c]].level;
        const Round round{lists(which), lists(1 - which), totals, copy_address, k, c, level};
        work_off(a, round, lane, state, which);
      }
    }
    __threadfence_block();
    for (int pass = static_cast<int>(threadIdx.x) / 32; pass < passes; pass += kWarps) {
      const Vec3i at = lane.voxel(pass);
      if (lane.in_image(at)) store(a, a.out.linear(at), __ldcg(&totals[pass * 32 + lane.lane]));
    }
    __syncthreads();  // the copy, the lists and the tile's number are reused
  }
}

/// Cuts an image into tiles; returns their number.
int64_t cut(Tiling& t, const Vec3i& size) {
  t.tiles = parts_in(size, voxels_of(t));
  return static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
}

}  // namespace

size_t most_copy_bytes(const Device& device) {
  constexpr int kDeclared = 64;  // the kernel itself declares so much, rounded up
  return static_cast<size_t>(larch::cuda::most_shared_bytes(device) - kDeclared) -
         sizeof(LevelState);
}

void tile_walk(const WalkJob& job, const WalkArguments& arguments) {
  if (!job.tree.tiling) return queue_walk(job, arguments);
  const Device& device = job.device;
  Tiling t = *job.tree.tiling;
  const int64_t processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  int64_t all = cut(t, arguments.out.size);
  const Vec3i planned = voxels_of(t);
  for (int axis = 2; axis >= 0; --axis) {
    // Half of the processors would be idle otherwise. The strides of copies stay as they are.
    while (2 * all <= processors && t.bricks[axis] > 1) {
      --t.bricks[axis];
      all = cut(t, arguments.out.size);
    }
    for (int level = 0; level < kMaximumLevels; ++level) {
      t.copies[level].extent[axis] +=
          most_cells(voxels_of(t)[axis], level) - most_cells(planned[axis], level);
    }
  }
  // The attribute belongs to the kernel and not to a launch: it is the same for all, so that
  // threads which launch the kernel side by side do not lower it for each other.
  LARCH_CUDA_CHECK(
      cudaFuncSetAttribute(level_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(most_copy_bytes(device) + sizeof(LevelState))));
  const auto blocks = static_cast<size_t>(std::min(all, processors));
  const int levels = std::max(1, arguments.tree.depth);
  const size_t nodes = size_t{1} << (levels - 1);
  const size_t entries = blocks * 2 * nodes * kEntries;
  Buffer<uint32_t> weights(device, entries);
  Buffer<uint32_t> places(device, entries);
  Buffer<int32_t> votes(device, t.channel_count > 1 ? entries / 2 : 0);
  Buffer<unsigned long long> totals(device, blocks * kEntries);
  Buffer<unsigned long long> next(device, 1);
  next.set_zero();
  level_kernel<<<static_cast<unsigned>(blocks), 32 * kWarps, t.copy_bytes + sizeof(LevelState),
                 job.stream()>>>(arguments, t, Lists{weights.data(), places.data(), votes.data()},
                                 totals.data(), static_cast<int>(nodes), next.data());
  larch::cuda::check_launch("level_kernel");
}

}  // namespace larch::pbt::cuda
