// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/tile.cuh"
#include "larch/core/buffer.h"

// The tile-coherent walk. All lanes of a warp evaluate the same weak classifier, so its parameters
// are broadcast and nothing diverges inside a node. Each lane owns kPasses voxels of the warp's
// brick and keeps, as bits, which of them are at the node; a node takes as many passes as the
// busiest lane has voxels there, a subtree that no voxel of the brick reaches costs nothing, and
// what goes to the right child waits on a stack. The bricks of a tile share a copy of the integral
// volume in shared memory, where lanes never meet in a bank, whichever of their voxels they are at
// and whatever the offset of a tap: each owns the voxels of one bank.
//
// Trees of few levels are walked level by level instead (tile_by_level.cu), which packs the lanes
// better but needs memory for all nodes of a level.
namespace larch::pbt::cuda {
namespace {

/// What waits for the right subtrees, and the sums so far, in global memory.
struct Scratch {
  uint32_t* weights;          ///< [warp][depth][pass][lane]
  uint32_t* masks;            ///< [warp][depth][lane]
  unsigned long long* total;  ///< [warp][pass][lane], Q60
  int depth;
};

/// One warp's part of shared memory.
struct WarpState {
  uint32_t weight[kPasses][32];        ///< of the voxels at the node, Q30
  int32_t stack[tree::kMaxDepth + 1];  ///< nodes whose right subtree waits
};

/// The bits of a lane's voxels.
struct Sides {
  uint32_t left = 0, right = 0;
};

/// Leads the next N voxels of each lane through a node; lanes with fewer repeat pass 0 in vain.
template <int N, bool kStaged, bool kMany, class NodeTest, class Leaf>
__device__ void evaluate_node(const WalkArguments& a, const tree::FlatNode& node, uint32_t copy,
                              const Lane<kStaged>& lane, WarpState& state, uint32_t& here,
                              Sides& sides, uint32_t* right_weights, unsigned long long* total) {
  int pass[N];
  uint32_t weight[N];
  int32_t h[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    pass[j] = here != 0 ? __ffs(static_cast<int>(here)) - 1 : 0;
    weight[j] = here != 0 ? state.weight[pass[j]][lane.lane] : 0;
    here &= here - 1;
  }
  uint32_t staged[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    staged[j] = kStaged ? copy + 4 * static_cast<uint32_t>(lane.staged_element(pass[j])) : 0;
    asm("" : "+r"(staged[j]));  // keeps the compiler from computing it anew at every tap
  }
  NodeTest::template ask<N, kStaged, true, true, kMany>(a.tree, node, lane, staged, pass, h);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (weight[j] == 0) continue;
    const tree::Shares share = tree::shares_of(node, NodeTest::split(a.tree, weight[j], h[j]));
    const uint64_t ended = Leaf::mixed(node, share);
    if (ended > 0) total[pass[j] * 32] += ended;
    if (share.left > 0) {
      state.weight[pass[j]][lane.lane] = share.left;
      sides.left |= 1u << pass[j];
    }
    if (share.right > 0) {
      right_weights[pass[j] * 32] = share.right;
      sides.right |= 1u << pass[j];
    }
  }
}

/// All voxels of the brick through one node.
template <bool kStaged, bool kMany, class NodeTest, class Leaf>
__device__ Sides visit(const WalkArguments& a, const tree::FlatNode& node, uint32_t copy,
                       const Lane<kStaged>& lane, WarpState& state, uint32_t here,
                       uint32_t* right_weights, unsigned long long* total) {
  Sides sides;
  int passes = static_cast<int>(__reduce_max_sync(0xffffffffu, __popc(here)));
  for (; passes > 0; passes -= kTogether) {
    switch (passes) {
      case 1:
        evaluate_node<1, kStaged, kMany, NodeTest, Leaf>(a, node, copy, lane, state, here, sides,
                                                         right_weights, total);
        break;
      case 2:
        evaluate_node<2, kStaged, kMany, NodeTest, Leaf>(a, node, copy, lane, state, here, sides,
                                                         right_weights, total);
        break;
      case 3:
        evaluate_node<3, kStaged, kMany, NodeTest, Leaf>(a, node, copy, lane, state, here, sides,
                                                         right_weights, total);
        break;
      default:
        evaluate_node<kTogether, kStaged, kMany, NodeTest, Leaf>(a, node, copy, lane, state, here,
                                                                 sides, right_weights, total);
    }
  }
  return sides;
}

/// The whole tree for the voxels in `here`, left before right.
template <bool kStaged, bool kMany, class NodeTest, class Leaf>
__device__ void walk(const WalkArguments& a, uint32_t copy, const Lane<kStaged>& lane,
                     WarpState& state, uint32_t here, const Scratch& mine) {
  int height = 0;
  int32_t index = 0;
  while (true) {
    const tree::FlatNode node = a.tree.nodes[index];
    uint32_t* weights = mine.weights + height * kPasses * 32 + lane.lane;
    const Sides next = visit<kStaged, kMany, NodeTest, Leaf>(a, node, copy, lane, state, here,
                                                             weights, mine.total + lane.lane);
    if (__any_sync(0xffffffffu, next.right != 0)) {
      mine.masks[height * 32 + lane.lane] = next.right;
      if (lane.lane == 0) state.stack[height] = node.right;
      ++height;
    }
    if (__any_sync(0xffffffffu, next.left != 0)) {
      index = node.left;
      here = next.left;
      continue;
    }
    if (height == 0) return;
    --height;
    __syncwarp();
    index = state.stack[height];
    here = mine.masks[height * 32 + lane.lane];
    for (uint32_t rest = here; rest != 0; rest &= rest - 1) {
      const int pass = __ffs(static_cast<int>(rest)) - 1;
      state.weight[pass][lane.lane] = mine.weights[(height * kPasses + pass) * 32 + lane.lane];
    }
    __syncwarp();
  }
}

/// Which of the lane's voxels lie in the image and the region of interest.
template <bool kStaged>
__device__ uint32_t enter(const Lane<kStaged>& lane, WarpState& state, const Scratch& mine) {
  uint32_t here = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    mine.total[pass * 32 + lane.lane] = 0;
    if (!lane.is_wanted(lane.voxel(pass))) continue;
    here |= 1u << pass;
    state.weight[pass][lane.lane] = tree::kOneQ30;
  }
  return here;
}

template <bool kStaged, bool kMany, class NodeTest, class Leaf>
__global__ void __launch_bounds__(32 * kMaxBricks, 1)
    tile_kernel(const __grid_constant__ WalkArguments a, const __grid_constant__ Tiling t,
                Scratch scratch, unsigned long long* next_tile) {
  extern __shared__ __align__(16) uint8_t shared[];
  __shared__ unsigned long long tile_number;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  WarpState& state = reinterpret_cast<WarpState*>(shared)[warp];
  auto* copy = reinterpret_cast<uint32_t*>(shared + warps * sizeof(WarpState));
  const auto copy_address = static_cast<uint32_t>(__cvta_generic_to_shared(copy));
  const int64_t slot = static_cast<int64_t>(blockIdx.x) * warps + warp;
  const Scratch mine{scratch.weights + slot * scratch.depth * kPasses * 32,
                     scratch.masks + slot * scratch.depth * 32, scratch.total + slot * kPasses * 32,
                     scratch.depth};
  const int64_t tile_count = static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
  while (true) {
    if (threadIdx.x == 0) tile_number = atomicAdd(next_tile, 1ULL);
    __syncthreads();
    const auto n = static_cast<int64_t>(tile_number);
    if (n >= tile_count) return;
    const Lane<kStaged> lane{a, t, tile_corner<kStaged>(t, n), warp * kPasses,
                             static_cast<int>(threadIdx.x % 32)};
    const uint32_t here = enter(lane, state, mine);
    const bool wanted = __syncthreads_or(here != 0);
    if (kStaged && wanted) {
      stage(a, t, lane.tile, copy);
      __syncthreads();
    }
    if (__any_sync(0xffffffffu, here != 0))
      walk<kStaged, kMany, NodeTest, Leaf>(a, copy_address, lane, state, here, mine);
    for (int pass = 0; pass < kPasses; ++pass) {
      const Vec3i at = lane.voxel(pass);
      if (lane.in_image(at)) {
        store(a, linear_index(a.size, at), mine.total[pass * 32 + lane.lane]);
      }
    }
    __syncthreads();  // the copy and the tile's number are reused
  }
}

int count_of(int size, int part) {
  return (size + part - 1) / part;
}

template <bool kStaged>
Vec3i voxels_of(const Vec3i& bricks) {
  return {bricks.x * Brick<kStaged>::kX, bricks.y * Brick<kStaged>::kY,
          bricks.z * Brick<kStaged>::kZ};
}

int volume_of(const Vec3i& v) {
  return v.x * v.y * v.z;
}

/// Shared memory of a tile with the extent of the taps around it.
size_t staged_bytes(Tiling& t, const TapBox& box) {
  t.lo = box.lo;
  t.extent = voxels_of<true>(t.bricks) + box.hi - box.lo;
  t.row = t.extent.x;
  // Planes 8 banks apart: the 8 x 4 voxels of a pass then meet in no bank.
  t.plane = t.row * t.extent.y;
  t.plane += ((8 - t.plane % 32) + 32) % 32;
  return static_cast<size_t>(t.plane) * static_cast<size_t>(t.extent.z) * sizeof(uint32_t) +
         static_cast<size_t>(volume_of(t.bricks)) * sizeof(WarpState);
}

/// The tile with the most bricks, at most one per warp, whose copy fits shared memory; of those the
/// one with the smallest copy. A wanted tile bounds the bricks along each axis. 0 bytes if the taps
/// reach so far that too few warps would share a copy.
size_t plan_staged(const Vec3i& wanted, const TapBox& box, size_t limit, Tiling& t) {
  const Vec3i most = wanted.x == 0 ? Vec3i{4, 2, 4}
                                   : Vec3i{count_of(wanted.x, Brick<true>::kX),
                                           count_of(wanted.y, Brick<true>::kY),
                                           count_of(wanted.z, Brick<true>::kZ)};
  Tiling best;
  size_t best_bytes = 0;
  for (int x = 1; x <= most.x; ++x) {
    for (int y = 1; y <= most.y; ++y) {
      for (int z = 1; z <= most.z; ++z) {
        Tiling tried = t;
        tried.bricks = {x, y, z};
        const int bricks = volume_of(tried.bricks), before = volume_of(best.bricks);
        const size_t bytes = staged_bytes(tried, box);
        if (bricks > kMaxBricks || bytes > limit || bricks < before) continue;
        if (bricks > before || bytes < best_bytes) {
          best = tried;
          best_bytes = bytes;
        }
      }
    }
  }
  constexpr int kFewest = 4;
  if (volume_of(best.bricks) < std::min(kFewest, volume_of(most))) return 0;
  t = best;
  return best_bytes;
}

template <bool kStaged, bool kMany>
void launch(const WalkArguments& arguments, const TilePlan& plan, const Device& device) {
  const auto kernel = tile_kernel<kStaged, kMany, TileStrongNode, tree::ProbabilityLeaf>;
  Tiling t = plan.tiling;
  const size_t bytes = plan.shared_bytes;
  const Vec3i voxels = voxels_of<kStaged>(t.bricks);
  t.tiles = {count_of(arguments.size.x, voxels.x), count_of(arguments.size.y, voxels.y),
             count_of(arguments.size.z, voxels.z)};
  const auto warps = static_cast<size_t>(volume_of(t.bricks));
  const auto threads = static_cast<unsigned>(32 * warps);
  allow_shared_memory(kernel, device);
  int per_processor = 0;
  LARCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel,
                                                                 static_cast<int>(threads), bytes));
  const int64_t all = static_cast<int64_t>(t.tiles.x) * t.tiles.y * t.tiles.z;
  const int64_t resident =
      static_cast<int64_t>(larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device)) *
      std::max(1, per_processor);
  const auto blocks = static_cast<size_t>(std::min(all, resident));
  const auto depth = static_cast<size_t>(std::max(1, arguments.tree.depth));
  Buffer<uint32_t> weights(device, blocks * warps * depth * kPasses * 32);
  Buffer<uint32_t> masks(device, blocks * warps * depth * 32);
  Buffer<unsigned long long> total(device, blocks * warps * kPasses * 32);
  Buffer<unsigned long long> next(device, 1);
  next.set_zero();
  kernel<<<static_cast<unsigned>(blocks), threads, bytes, larch::cuda::stream_of(device)>>>(
      arguments, t, Scratch{weights.data(), masks.data(), total.data(), static_cast<int>(depth)},
      next.data());
  larch::cuda::check_launch("tile_kernel");
}

}  // namespace

int most_shared_memory(const Device& device) {
  return larch::cuda::most_shared_bytes(device) - kStaticShared;
}

TilePlan plan_tiles(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
                    const Vec3i& wanted, const Device& device, StagedTaps* staged) {
  TilePlan made;
  const int channel = busiest_channel(tree, layouts);
  if (channel >= 0 && !has_many_channels(tree)) {
    made.tiling.channel = channel;
    made.mixed = std::any_of(tree.ranges.begin(), tree.ranges.end(),
                             [channel](const TapRange& r) { return r.channel != channel; });
    const TapBox box = tap_box(tree, channel);
    const size_t limit = static_cast<size_t>(most_shared_memory(device)) - level_state_bytes();
    made.shared_bytes = plan_staged(wanted, box, limit, made.tiling);
    made.staged = made.shared_bytes > 0 && fits_packed(tree, channel);
    made.copy_bytes = static_cast<size_t>(made.tiling.plane) *
                      static_cast<size_t>(made.tiling.extent.z) * sizeof(uint32_t);
    *staged = {channel, made.tiling.row, made.tiling.plane, box.lo};
  }
  if (!made.staged) {
    made.tiling.bricks = {1, 2, 4};
    made.shared_bytes = static_cast<size_t>(volume_of(made.tiling.bricks)) * sizeof(WarpState);
  }
  return made;
}

void tile_walk(const WalkJob& job, const WalkArguments& arguments) {
  const TilePlan& plan = job.tree.tiles;
  if (plan.staged && arguments.tree.depth <= kMaxLevels) {
    walk_levels(arguments, plan, job.device);
  } else if (plan.staged) {
    launch<true, false>(arguments, plan, job.device);
  } else if (job.tree.many_channels) {
    launch<false, true>(arguments, plan, job.device);
  } else {
    launch<false, false>(arguments, plan, job.device);
  }
}

}  // namespace larch::pbt::cuda
