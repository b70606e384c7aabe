// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/pbt/evaluate/evaluate.h"

namespace larch::pbt::cuda {

using larch::cuda::blocks_for;

// Plans are what this device makes of compiled trees, once and for any number of volumes, streams
// and threads.

/// A tree on the device.
struct TreePlan {
  std::vector<tree::FlatNode> nodes;  ///< on the host, for the queue walk
  PackedTree direct;                  ///< for taps that are read where they are
  std::optional<Tiling> tiling;       ///< of the tile walk; none where queues take its place
  PackedTree tiled;                   ///< for that walk
};

struct Plan final : WalkPlan {
  std::vector<TreePlan> trees;
};

/// Holds what every walk reads and writes, passed by value.
struct WalkArguments {
  PackedTreeView tree;
  const uint32_t* integral = nullptr;
  image::IntegralLayout layouts[kMaximumChannels];
  VolumeView<float> out;
  const uint8_t* roi = nullptr;
  uint64_t* sum =
      nullptr;  ///< of an ensemble's trees: posteriors are added here, not written to out
};

/// Holds what a walk needs beside its arguments.
struct WalkJob {
  const TreePlan& tree;
  int64_t queue_items;
  const Device& device;

  cudaStream_t stream() const { return larch::cuda::stream_of(device); }
};

// The walks lead voxels through one tree, whose root is no leaf except in the stack walk. All give
// the same bytes; each returns when its work is queued. In each of them three things are apart:
// what is visited (tiles of a volume, its voxels one by one, the queues of a list), the node test
// (ask_node and, in tiles, add_votes), and the leaf (tree::ProbabilityLeaf).

/// tile: a block leads a tile of voxels through the tree together, level by level, on a copy of the
/// integral volume in shared memory. The queue walk takes the place of it where no copy fits.
void tile_walk(const WalkJob& job, const WalkArguments& arguments);
/// stack: one thread per voxel, with a stack of its own (Birkbeck, Sofka, Zhou 2011, figure 2).
void stack_walk(const WalkJob& job, const WalkArguments& arguments);
/// queue: level by level, with the voxels at a node in one queue, so that all threads of a launch
/// are at work however unbalanced the tree is. The stack walk takes the place of it for more voxels
/// than can be selected.
void queue_walk(const WalkJob& job, const WalkArguments& arguments);

#ifdef __CUDACC__

/// Calls use(n) with a number from 1 to 4 as a constant.
template <class Use>
__device__ inline void with_constant(int n, const Use& use) {
  if (n == 1) use(std::integral_constant<int, 1>());
  if (n == 2) use(std::integral_constant<int, 2>());
  if (n == 3) use(std::integral_constant<int, 3>());
  if (n == 4) use(std::integral_constant<int, 4>());
}

/// Notes the posterior of a voxel, which a walk does once.
__device__ inline void store(const WalkArguments& a, int64_t i, uint64_t q60) {
  if (a.sum != nullptr) {
    a.sum[i] += tree::ensemble_term(q60);
    return;
  }
  a.out.data[i] = tree::probability_float(q60);
}

/// Adds the pairs of taps of one weak classifier at N places; all lanes read the same words. All
/// elements of two words are asked for before the first is used.
template <int N>
__device__ inline void add_taps(const uint4* taps, int words, const uint32_t* integral,
                                const int64_t (&at)[N], uint32_t (&sum)[N]) {
  const auto add = [&](const uint4& t) {
    uint32_t first[N], second[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      first[j] = __ldg(integral + at[j] + static_cast<int32_t>(t.x));
      second[j] = __ldg(integral + at[j] + static_cast<int32_t>(t.z));
    }
#pragma unroll
    for (int j = 0; j < N; ++j) sum[j] += t.y * first[j] + t.w * second[j];
  };
  int k = 0;
#pragma unroll 2
  for (; k + 2 <= words; k += 2) {
    const uint4 a = __ldg(taps + k), b = __ldg(taps + k + 1);
    add(a);
    add(b);
  }
  if (k < words) add(__ldg(taps + k));
}

/// The node test of boosting trees on the integral volume: H of a strong classifier at N places of
/// each lane. `place(channel, at)` finds the elements of a channel when the weak classifiers turn
/// to another one.
template <int N, class Place>
__device__ inline void ask_node(const PackedTreeView& tree, const tree::FlatNode& node,
                                const uint32_t* integral, const Place& place, int32_t (&h)[N]) {
  const uint4* at = tree.stream + node.first;
  int64_t base[N];
  int32_t votes[N] = {};
  int channel = -1;
  for (int w = 0; w < node.n_weak; ++w) {
    const WeakHeader weak(__ldg(at), __ldg(at + 1));
    uint32_t sum[N] = {};
    if (weak.channel != channel) {
      channel = weak.channel;
      place(channel, base);
    }
    add_taps(at + 2, weak.words, integral, base, sum);
    at += 2 + weak.words;
#pragma unroll
    for (int j = 0; j < N; ++j) weak.vote(static_cast<int32_t>(sum[j]), votes[j]);
  }
#pragma unroll
  for (int j = 0; j < N; ++j) h[j] = tree::strong_value(votes[j], node.alpha_sum);
}

#endif

}  // namespace larch::pbt::cuda
