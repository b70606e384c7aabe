// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/pbt/evaluate.h"

namespace larch::pbt::cuda {
namespace {

constexpr int kMaxChannels = 64;

/// Everything the kernels read, passed by value.
struct Arguments {
  TreeView tree;
  const uint32_t* integral;
  image::IntegralLayout layouts[kMaxChannels];
  int channel_count;
  Vec3i size;
  const uint8_t* roi;
  ProbabilityType type;
  void* out;
};

__device__ void store(const Arguments& a, int64_t i, uint64_t q60) {
  switch (a.type) {
    case ProbabilityType::kFloat32:
      static_cast<float*>(a.out)[i] = probability_float(q60);
      break;
    case ProbabilityType::kUint16:
      static_cast<uint16_t*>(a.out)[i] = probability_uint16(q60);
      break;
    case ProbabilityType::kUint8:
      static_cast<uint8_t*>(a.out)[i] = probability_uint8(q60);
      break;
  }
}

__device__ bool vote_at(const Arguments& a, const WeakRecord& weak, const Vec3i& at) {
  const uint32_t* base = a.integral + a.layouts[weak.channel].base(at);
  const int32_t value = features::linear_response(a.tree.taps + weak.first_tap, weak.n_tap, base);
  return weak_vote(weak.codes, weak.bins, weak.mask, value);
}

/// H of a node at one voxel.
__device__ int32_t strong_at(const Arguments& a, const NodeRecord& node, const Vec3i& at) {
  int32_t h = 0;
  for (int32_t w = node.first_weak; w < node.first_weak + node.n_weak; ++w) {
    const WeakRecord weak = a.tree.weaks[w];
    h += vote_at(a, weak, at) ? weak.alpha : -weak.alpha;
    if (a.tree.early_rejection && is_certain(h, a.tree.rest[w], a.tree.thresholds)) {
      return certain_value(h, a.tree.rest[w], a.tree.thresholds);
    }
  }
  return h;
}

/// The seed's kernel (Birkbeck et al. figure 2): one thread a voxel, each with its own stack.
__global__ void stack_kernel(const __grid_constant__ Arguments a) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= a.size.x || y >= a.size.y || z >= a.size.z) return;
  const int64_t i = x + static_cast<int64_t>(a.size.x) * (y + static_cast<int64_t>(a.size.y) * z);
  if (a.roi != nullptr && a.roi[i] == 0) {
    store(a, i, 0);
    return;
  }
  int32_t nodes[kMaxDepth + 2];
  uint32_t weights[kMaxDepth + 2];
  int height = 0;
  nodes[0] = 0;
  weights[0] = kOneQ30;
  height = 1;
  uint64_t total = 0;
  while (height > 0) {
    --height;
    const uint32_t weight = weights[height];
    const NodeRecord node = a.tree.nodes[nodes[height]];
    if (node.left < 0) {
      total += static_cast<uint64_t>(weight) * node.q;
      continue;
    }
    const int32_t h = strong_at(a, node, {x, y, z});
    const Split s = split_weight(weight, h, a.tree.thresholds, a.tree.logistic);
    total += static_cast<uint64_t>(s.stop_left) * a.tree.nodes[node.left].q +
             static_cast<uint64_t>(s.stop_right) * a.tree.nodes[node.right].q;
    if (s.descend_right > 0) {
      nodes[height] = node.right;
      weights[height++] = s.descend_right;
    }
    if (s.descend_left > 0) {
      nodes[height] = node.left;
      weights[height++] = s.descend_left;
    }
  }
  store(a, i, total);
}

/// Threads of a tile block; a tile of more voxels gives each thread several.
constexpr int kTileThreads = 256;

/// Scratch of the tile walk: per block, depth and voxel the weight that waits for the right
/// subtree.
struct TileScratch {
  uint32_t* waiting;
  int64_t per_block;
};

/// Voxels of one tile visit a node together, left subtree first; a subtree that no voxel of the
/// tile reaches is skipped. Blocks take tiles in turn. The way through the tree is the same for all
/// threads of a block, so there is no divergence between nodes and parameters are broadcast.
template <int kPerThread>
__global__ void tile_kernel(const __grid_constant__ Arguments a, Vec3i tile, Vec3i tiles,
                            TileScratch scratch) {
  __shared__ int32_t path[kMaxDepth + 2];
  __shared__ int8_t side[kMaxDepth + 2];
  const int voxels = tile.x * tile.y * tile.z;
  uint32_t* waiting = scratch.waiting + blockIdx.x * scratch.per_block;
  const int64_t tile_count = static_cast<int64_t>(tiles.x) * tiles.y * tiles.z;
  for (int64_t t = blockIdx.x; t < tile_count; t += gridDim.x) {
    const Vec3i corner{static_cast<int>(t % tiles.x) * tile.x,
                       static_cast<int>(t / tiles.x % tiles.y) * tile.y,
                       static_cast<int>(t / tiles.x / tiles.y) * tile.z};
    Vec3i at[kPerThread];
    uint32_t weight[kPerThread];
    uint64_t total[kPerThread];
#pragma unroll
    for (int v = 0; v < kPerThread; ++v) {
      const int k = threadIdx.x + v * kTileThreads;
      at[v] = corner + Vec3i{k % tile.x, k / tile.x % tile.y, k / tile.x / tile.y};
      const bool inside =
          k < voxels && at[v].x < a.size.x && at[v].y < a.size.y && at[v].z < a.size.z;
      if (!inside) at[v].x = -1;
      total[v] = 0;
      weight[v] = inside ? kOneQ30 : 0;
      if (inside && a.roi != nullptr) {
        const int64_t i = at[v].x + static_cast<int64_t>(a.size.x) *
                                        (at[v].y + static_cast<int64_t>(a.size.y) * at[v].z);
        if (a.roi[i] == 0) weight[v] = 0;
      }
    }
    // `depth` and the node are uniform over the block; -1 ends the walk.
    int depth = 0;
    int32_t index = 0;
    while (depth >= 0) {
      bool mine = false;
#pragma unroll
      for (int v = 0; v < kPerThread; ++v) mine |= weight[v] > 0;
      const bool reached = __syncthreads_or(mine);
      const NodeRecord node = a.tree.nodes[index];
      bool down = false;
      if (reached && node.left < 0) {
#pragma unroll
        for (int v = 0; v < kPerThread; ++v) {
          total[v] += static_cast<uint64_t>(weight[v]) * node.q;
        }
      } else if (reached) {
        const uint32_t q_left = a.tree.nodes[node.left].q, q_right = a.tree.nodes[node.right].q;
#pragma unroll
        for (int v = 0; v < kPerThread; ++v) {
          Split s;
          if (weight[v] > 0) {
            s = split_weight(weight[v], strong_at(a, node, at[v]), a.tree.thresholds,
                             a.tree.logistic);
            total[v] += static_cast<uint64_t>(s.stop_left) * q_left +
                        static_cast<uint64_t>(s.stop_right) * q_right;
          }
          weight[v] = s.descend_left;
          waiting[(depth * kPerThread + v) * kTileThreads + threadIdx.x] = s.descend_right;
        }
        down = true;
      }
      if (down) {
        if (threadIdx.x == 0) {
          path[depth] = index;
          side[depth] = 0;
        }
        index = node.left;
        ++depth;
        continue;
      }
      // Up to the nearest ancestor whose right subtree has not been visited.
      __syncthreads();
      int up = depth - 1;
      while (up >= 0 && side[up] == 1) --up;
      __syncthreads();
      depth = up;
      if (depth < 0) break;
      if (threadIdx.x == 0) side[depth] = 1;
      index = a.tree.nodes[path[depth]].right;
#pragma unroll
      for (int v = 0; v < kPerThread; ++v) {
        weight[v] = waiting[(depth * kPerThread + v) * kTileThreads + threadIdx.x];
      }
      ++depth;
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < kPerThread; ++v) {
      if (at[v].x < 0) continue;
      const int64_t i = at[v].x + static_cast<int64_t>(a.size.x) *
                                      (at[v].y + static_cast<int64_t>(a.size.y) * at[v].z);
      store(a, i, total[v]);
    }
  }
}

int count(int size, int tile) {
  return (size + tile - 1) / tile;
}

/// The compiled tree on the device.
struct DeviceTree {
  Buffer<NodeRecord> nodes;
  Buffer<WeakRecord> weaks;
  Buffer<features::LinearTap> taps;
  Buffer<int32_t> rest;
  Buffer<uint32_t> logistic;
  TreeView view;

  DeviceTree(const CompiledTree& tree, const Device& device)
      : nodes(device, std::span<const NodeRecord>(tree.nodes)),
        weaks(device, std::span<const WeakRecord>(tree.weaks)),
        taps(device, std::span<const features::LinearTap>(tree.taps)),
        rest(device, std::span<const int32_t>(tree.rest)),
        logistic(device, std::span<const uint32_t>(tree.logistic)),
        view(tree.view()) {
    view.nodes = nodes.data();
    view.weaks = weaks.data();
    view.taps = taps.data();
    view.rest = rest.data();
    view.logistic = logistic.data();
  }
};

template <int kPerThread>
void launch_tiles(const Arguments& arguments, const Vec3i& tile, const Device& device) {
  const Vec3i tiles{count(arguments.size.x, tile.x), count(arguments.size.y, tile.y),
                    count(arguments.size.z, tile.z)};
  int processors = 0, per_processor = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  LARCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_processor, tile_kernel<kPerThread>, kTileThreads, 0));
  const int64_t all = static_cast<int64_t>(tiles.x) * tiles.y * tiles.z;
  const auto blocks = static_cast<unsigned>(
      std::min<int64_t>(all, static_cast<int64_t>(processors) * std::max(1, per_processor)));
  const int64_t per_block =
      static_cast<int64_t>(arguments.tree.depth + 1) * kPerThread * kTileThreads;
  Buffer<uint32_t> waiting(device, static_cast<size_t>(per_block * blocks));
  tile_kernel<kPerThread>
      <<<blocks, kTileThreads>>>(arguments, tile, tiles, TileScratch{waiting.data(), per_block});
  larch::cuda::check_launch("tile_kernel");
  LARCH_CUDA_CHECK(cudaDeviceSynchronize());
}

/// Most voxels of a tile that a block holds.
constexpr int kMaxTile = 8 * kTileThreads;

/// Halves the longest edge until the tile fits a block; the result does not depend on the tile.
Vec3i fitting_tile(Vec3i tile) {
  while (static_cast<int64_t>(tile.x) * tile.y * tile.z > kMaxTile) {
    const int longest = tile.z >= tile.y && tile.z >= tile.x ? 2 : tile.y >= tile.x ? 1 : 0;
    tile[longest] = (tile[longest] + 1) / 2;
  }
  return tile;
}

void tile_walk(const Arguments& arguments, const Vec3i& wanted, const Device& device) {
  const Vec3i tile = fitting_tile(wanted);
  const int voxels = tile.x * tile.y * tile.z;
  if (voxels <= kTileThreads) {
    launch_tiles<1>(arguments, tile, device);
  } else if (voxels <= 4 * kTileThreads) {
    launch_tiles<4>(arguments, tile, device);
  } else {
    launch_tiles<8>(arguments, tile, device);
  }
}

size_t bytes_per_voxel(ProbabilityType type) {
  return type == ProbabilityType::kFloat32 ? 4 : type == ProbabilityType::kUint16 ? 2 : 1;
}

}  // namespace

void evaluate(const EvaluateJob& job) {
  if (job.channel_count > kMaxChannels) {
    throw UsageError("pbt::evaluate: more than 64 channels on a CUDA device");
  }
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  const DeviceTree tree(*job.tree, device);
  const auto voxels = static_cast<size_t>(job.size.x) * static_cast<size_t>(job.size.y) *
                      static_cast<size_t>(job.size.z);
  Buffer<uint8_t> roi;
  if (job.roi != nullptr) roi = Buffer<uint8_t>(device, std::span<const uint8_t>(job.roi, voxels));
  Buffer<uint8_t> out(device, voxels * bytes_per_voxel(job.type));
  Arguments arguments{};
  arguments.tree = tree.view;
  arguments.integral = job.integral;
  for (int c = 0; c < job.channel_count; ++c) arguments.layouts[c] = job.layouts[c];
  arguments.channel_count = job.channel_count;
  arguments.size = job.size;
  arguments.roi = job.roi != nullptr ? roi.data() : nullptr;
  arguments.type = job.type;
  arguments.out = out.data();
  if (job.walk == Walk::kStack) {
    const dim3 threads(32, 4, 2);
    const dim3 grid(static_cast<unsigned>(count(job.size.x, 32)),
                    static_cast<unsigned>(count(job.size.y, 4)),
                    static_cast<unsigned>(count(job.size.z, 2)));
    stack_kernel<<<grid, threads>>>(arguments);
    larch::cuda::check_launch("stack_kernel");
    LARCH_CUDA_CHECK(cudaDeviceSynchronize());
  } else {
    tile_walk(arguments, job.tile, device);
  }
  out.download(std::span<uint8_t>(static_cast<uint8_t*>(job.host_out), out.size()));
}

}  // namespace larch::pbt::cuda
