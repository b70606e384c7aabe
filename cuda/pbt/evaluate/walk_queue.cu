// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/pbt/evaluate/walk.cuh"
#include "larch/core/buffer.h"
#include "larch/pbt/evaluate/walk_queues.h"

// The level-synchronous walk: the voxels that reach a node wait in its queue. All queues of a level
// are worked off by one launch, or by several if they are long (walk_queues.h), a warp taking 128
// items of one queue at a time, and the queues of the next level are laid out by prefix sums, never
// by atomics, so that their order is fixed. Good for sparse regions of interest, where a tile would
// hold few voxels.
namespace larch::pbt::cuda {
namespace {

constexpr int kChunk = kQueueChunk;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

/// A voxel on its way. It may be in several queues of a level.
struct Item {
  uint32_t id = 0;      ///< among the voxels that are evaluated
  uint32_t weight = 0;  ///< Q30
};

/// A portion of a level, on the device.
struct Level {
  const Queue* queues;
  int queue_count;
  uint32_t chunk_count;
  const Item* items;
  Item* parted;            ///< [chunk][left, right][128]
  uint32_t* counts;        ///< of each chunk's parts, in the order of the next level's items
  const uint32_t* voxels;  ///< of each id, or null: the id itself
  unsigned long long* totals;
};

__device__ const Queue& queue_of(const Level& level, uint32_t chunk) {
  int low = 0, high = level.queue_count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (level.queues[middle].chunk <= chunk) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return level.queues[low];
}

/// Place of a chunk's part in Level::counts: all left parts of a queue, then all right ones.
__device__ int64_t part_place(const Queue& queue, uint32_t chunk, int side) {
  const auto chunks = static_cast<int64_t>((queue.count + kChunk - 1) / kChunk);
  return 2 * static_cast<int64_t>(queue.chunk) + side * chunks + (chunk - queue.chunk);
}

template <int N>
__device__ void evaluate_node(const WalkArguments& a, const Level& level, const Queue& queue,
                              uint32_t chunk, int64_t first, int count) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Item item[N];
  Vec3i at[N];
  int32_t h[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int i = lane + 32 * j;
    item[j] = level.items[first + (i < count ? i : 0)];
    if (i >= count) item[j].weight = 0;
    const int64_t voxel = level.voxels != nullptr ? level.voxels[item[j].id] : item[j].id;
    at[j] = voxel_of(voxel, a.out.size);
  }
  const tree::FlatNode node = a.tree.nodes[queue.node];
  const auto place = [&](int channel, int64_t(&base)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) base[j] = a.layouts[channel].base(at[j]);
  };
  ask_node(a.tree, node, a.integral, place, h);
  Item* left = level.parted + static_cast<int64_t>(chunk) * 2 * kChunk;
  Item* right = left + kChunk;
  uint32_t lefts = 0, rights = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const tree::Shares share = tree::shares_of(
        node, tree::split_weight(item[j].weight, h[j], a.tree.thresholds, a.tree.logistic));
    const unsigned long long ended = tree::ProbabilityLeaf::mixed(node, share);
    if (ended > 0) atomicAdd(&level.totals[item[j].id], ended);
    const uint32_t below = (1u << lane) - 1;
    const uint32_t to_left = __ballot_sync(0xffffffffu, share.left > 0);
    const uint32_t to_right = __ballot_sync(0xffffffffu, share.right > 0);
    if (share.left > 0) left[lefts + __popc(to_left & below)] = {item[j].id, share.left};
    if (share.right > 0) right[rights + __popc(to_right & below)] = {item[j].id, share.right};
    lefts += __popc(to_left);
    rights += __popc(to_right);
  }
  if (lane == 0) {
    level.counts[part_place(queue, chunk, 0)] = lefts;
    level.counts[part_place(queue, chunk, 1)] = rights;
  }
}

__global__ void __launch_bounds__(kThreads)
    queue_kernel(const __grid_constant__ WalkArguments a, Level level) {
  const uint32_t chunk = blockIdx.x * kWarps + threadIdx.x / 32;
  if (chunk >= level.chunk_count) return;
  const Queue& queue = queue_of(level, chunk);
  const int64_t offset = static_cast<int64_t>(chunk - queue.chunk) * kChunk;
  const int count = static_cast<int>(min(queue.count - offset, static_cast<int64_t>(kChunk)));
  const int64_t first = queue.first + offset;
  with_constant((count + 31) / 32, [&](auto voxels) {
    evaluate_node<voxels.value>(a, level, queue, chunk, first, count);
  });
}

/// Moves the parts of the chunks to where the next level's queues are; `places` is the exclusive
/// prefix sum of Level::counts.
__global__ void gather_kernel(Level level, const int64_t* places, Item* next) {
  const uint32_t chunk = blockIdx.x * kWarps + threadIdx.x / 32;
  if (chunk >= level.chunk_count) return;
  const Queue& queue = queue_of(level, chunk);
  for (int side = 0; side < 2; ++side) {
    const int64_t place = part_place(queue, chunk, side);
    const Item* from = level.parted + (static_cast<int64_t>(chunk) * 2 + side) * kChunk;
    for (uint32_t i = threadIdx.x % 32; i < level.counts[place]; i += 32) {
      next[places[place] + i] = from[i];
    }
  }
}

__global__ void first_items_kernel(Item* items, int64_t first, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) items[i] = {static_cast<uint32_t>(first + i), tree::kOneQ30};
}

__global__ void store_kernel(const __grid_constant__ WalkArguments a, const uint32_t* voxels,
                             const unsigned long long* totals, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) store(a, voxels != nullptr ? voxels[i] : i, totals[i]);
}

struct Add {
  __host__ __device__ int64_t operator()(int64_t a, int64_t b) const { return a + b; }
};

struct IsSet {
  const uint8_t* roi;
  __device__ bool operator()(uint32_t i) const { return roi[i] != 0; }
};

/// Lists are of fewer voxels than this: indices have 32 bits, and CUB counted with an int before
/// CUDA 13, where larger numbers would have lost bits without a word.
constexpr int64_t kMaximumListed = CUB_VERSION >= 300000 ? int64_t{1} << 32 : int64_t{1} << 31;

/// Returns the voxels of the region of interest, ascending.
Buffer<uint32_t> listed(const uint8_t* roi, int64_t voxels, int64_t* count, const Device& device) {
  Buffer<uint32_t> list(device, static_cast<size_t>(voxels));
  Buffer<int64_t> found(device, 1);
  const auto select = [&](void* memory, size_t& bytes) {
    LARCH_CUDA_CHECK(cub::DeviceSelect::If(memory, bytes, thrust::counting_iterator<uint32_t>(0),
                                           list.data(), found.data(), voxels, IsSet{roi},
                                           larch::cuda::stream_of(device)));
  };
  size_t bytes = 0;
  select(nullptr, bytes);
  Buffer<uint8_t> scratch(device, bytes);
  select(scratch.data(), bytes);
  found.download({count, 1});
  return list;
}

/// Returns the queues of the next level from the places of the parts.
std::vector<Queue> next_queues(const std::vector<tree::FlatNode>& nodes,
                               const std::vector<Queue>& queues,
                               const std::vector<int64_t>& places) {
  std::vector<Queue> next;
  uint32_t chunk = 0;
  for (const Queue& queue : queues) {
    const size_t chunks = chunks_of(queue.count);
    for (size_t side = 0; side < 2; ++side) {
      const size_t begin = 2 * size_t{queue.chunk} + side * chunks;
      const tree::FlatNode& node = nodes[static_cast<size_t>(queue.node)];
      const Queue child{side == 0 ? node.left : node.right, chunk, places[begin],
                        places[begin + chunks] - places[begin]};
      if (child.count == 0) continue;
      chunk += chunks_of(child.count);
      next.push_back(child);
    }
  }
  return next;
}

/// Items that wait at the nodes of a level.
struct Waiting {
  std::vector<Queue> queues;
  Buffer<Item> items;
};

/// Works off queues of a level and lays out those of their children. The host reads how many items
/// there are: they decide how much memory the next level takes.
Waiting work_off(const WalkJob& job, const WalkArguments& arguments, Level level,
                 const std::vector<Queue>& queues, const Buffer<Item>& items) {
  const Device& device = job.device;
  const Buffer<Queue> queues_on_device(device, queues);
  const uint32_t chunks = queues.back().chunk + chunks_of(queues.back().count);
  Buffer<Item> parted(device, size_t{chunks} * 2 * kChunk);
  Buffer<uint32_t> counts(device, 2 * size_t{chunks} + 1);
  Buffer<int64_t> places(device, 2 * size_t{chunks} + 1);
  counts.set_zero();
  level.queues = queues_on_device.data();
  level.queue_count = static_cast<int>(queues.size());
  level.chunk_count = chunks;
  level.items = items.data();
  level.parted = parted.data();
  level.counts = counts.data();
  const cudaStream_t stream = job.stream();
  queue_kernel<<<blocks_for(chunks, kWarps), kThreads, 0, stream>>>(arguments, level);
  larch::cuda::check_launch("queue_kernel");
  size_t bytes = 0;
  const auto n = static_cast<int64_t>(counts.size());
  LARCH_CUDA_CHECK(cub::DeviceScan::ExclusiveScan(nullptr, bytes, counts.data(), places.data(),
                                                  Add{}, int64_t{0}, n, stream));
  Buffer<uint8_t> scratch(device, bytes);
  LARCH_CUDA_CHECK(cub::DeviceScan::ExclusiveScan(scratch.data(), bytes, counts.data(),
                                                  places.data(), Add{}, int64_t{0}, n, stream));
  const std::vector<int64_t> on_host = places.to_vector();
  Waiting next{next_queues(job.tree.nodes, queues, on_host), {}};
  if (on_host.back() == 0) return next;
  next.items = Buffer<Item>(device, static_cast<size_t>(on_host.back()));
  gather_kernel<<<blocks_for(chunks, kWarps), kThreads, 0, stream>>>(level, places.data(),
                                                                     next.items.data());
  larch::cuda::check_launch("gather_kernel");
  return next;
}

/// Leads the voxels of ids [first, first + count) through the tree. A level below is done before
/// the one above goes on, so that each holds what one portion of the level above has left.
void walk_portion(const WalkJob& job, const WalkArguments& arguments, const Level& level,
                  int64_t first, int64_t count) {
  std::vector<Waiting> waiting;
  waiting.push_back({{{0, 0, 0, count}}, Buffer<Item>(job.device, static_cast<size_t>(count))});
  first_items_kernel<<<blocks_for(count, 256), 256, 0, job.stream()>>>(waiting[0].items.data(),
                                                                       first, count);
  larch::cuda::check_launch("first_items_kernel");
  while (!waiting.empty()) {
    Waiting& deepest = waiting.back();
    const std::vector<Queue> portion = take_portion(deepest.queues, level_portion(job.queue_items));
    Waiting next = work_off(job, arguments, level, portion, deepest.items);
    if (deepest.queues.empty()) waiting.pop_back();
    if (!next.queues.empty()) waiting.push_back(std::move(next));
  }
}

}  // namespace

void queue_walk(const WalkJob& job, const WalkArguments& arguments) {
  const Device& device = job.device;
  const int64_t voxels = arguments.out.voxels();
  if (voxels >= kMaximumListed) return stack_walk(job, arguments);
  int64_t count = voxels;
  Buffer<uint32_t> list;
  if (arguments.roi != nullptr) {
    list = listed(arguments.roi, voxels, &count, device);
    if (arguments.sum == nullptr) {
      const size_t bytes = static_cast<size_t>(voxels) * sizeof(float);
      LARCH_CUDA_CHECK(cudaMemsetAsync(arguments.out.data, 0, bytes, job.stream()));
    }
    if (count == 0) return;
  }
  Buffer<unsigned long long> totals(device, static_cast<size_t>(count));
  totals.set_zero();
  Level level{};
  level.voxels = list.data();
  level.totals = totals.data();
  const int64_t step = root_portion(job.queue_items);
  for (int64_t first = 0; first < count; first += step) {
    walk_portion(job, arguments, level, first, std::min(step, count - first));
  }
  store_kernel<<<blocks_for(count, 256), 256, 0, job.stream()>>>(arguments, level.voxels,
                                                                 totals.data(), count);
  larch::cuda::check_launch("store_kernel");
}

}  // namespace larch::pbt::cuda
