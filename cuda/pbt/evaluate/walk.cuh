// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/packed_tree.cuh"

namespace larch::pbt::cuda {

/// What every walk reads and writes, passed by value.
struct WalkArguments {
  PackedTreeView tree;
  const uint32_t* integral = nullptr;
  image::IntegralLayout layouts[kMaxChannels];
  Vec3i size{};
  const uint8_t* roi = nullptr;
  ProbabilityType type = ProbabilityType::kFloat32;
  void* out = nullptr;
  uint64_t* sum =
      nullptr;  ///< of an ensemble's trees: posteriors are added here, not written to out
};

/// What a walk made of a compiled tree, kept with it for the next volume of the same layout.
struct Prepared {
  Walk walk = Walk::kAuto;
  Vec3i tile{};
  Device device;
  PackedTree packed;
};
/// The tree's preparation for this walk, tile and device, or a new one by `make`, which returns a
/// shared pointer to a `P` derived from Prepared.
template <class P, class Make>
std::shared_ptr<const P> prepared(const EvaluateJob& job, Walk walk, const Device& device,
                                  Make make) {
  const CompiledTree& tree = job.trees[0];
  const auto kept = std::static_pointer_cast<const Prepared>(tree.on_device);
  if (kept != nullptr && kept->walk == walk && kept->tile == job.tile && kept->device == device) {
    return std::static_pointer_cast<const P>(kept);
  }
  const std::shared_ptr<P> made = make();
  made->walk = walk;
  made->tile = job.tile;
  made->device = device;
  tree.on_device = std::static_pointer_cast<const Prepared>(made);
  return made;
}
/// The tree for walks that read the integral volume directly.
std::shared_ptr<const Prepared> prepare_direct(const EvaluateJob& job, Walk walk,
                                               const Device& device);

/// The walks lead voxels through the first tree of the job. All give the same bytes; each returns
/// when its work is queued.
///
/// tile: a warp leads a block of voxels through the tree together, left subtree first, and skips
/// what none of them reaches; on a copy of the integral volume in shared memory if that fits, else
/// directly.
void tile_walk(const EvaluateJob& job, WalkArguments arguments, const Device& device);
/// stack: one thread per voxel, with a stack of its own (Birkbeck, Sofka, Zhou 2011, figure 2).
void stack_walk(const EvaluateJob& job, WalkArguments arguments, const Device& device);
/// queue: level by level, with the voxels at a node in one queue, so that all threads of a launch
/// are at work however unbalanced the tree is.
void queue_walk(const EvaluateJob& job, WalkArguments arguments, const Device& device);

inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

#ifdef __CUDACC__

__device__ inline int64_t linear_index(const Vec3i& size, const Vec3i& at) {
  return at.x + static_cast<int64_t>(size.x) * (at.y + static_cast<int64_t>(size.y) * at.z);
}

/// Notes the posterior of a voxel, which a walk does once.
__device__ inline void store(const WalkArguments& a, int64_t i, uint64_t q60) {
  if (a.sum != nullptr) {
    a.sum[i] += tree::ensemble_term(q60);
    return;
  }
  switch (a.type) {
    case ProbabilityType::kFloat32:
      static_cast<float*>(a.out)[i] = tree::probability_float(q60);
      break;
    case ProbabilityType::kUint16:
      static_cast<uint16_t*>(a.out)[i] = tree::probability_uint16(q60);
      break;
    case ProbabilityType::kUint8:
      static_cast<uint8_t*>(a.out)[i] = tree::probability_uint8(q60);
      break;
  }
}

/// Where the children of a node take over: what descends, and what ends here, as Q60.
struct SplitWeights {
  uint32_t left = 0, right = 0;
  uint64_t ended = 0;
};

__device__ inline SplitWeights split_weights(const PackedTreeView& tree, const PackedNode& node,
                                             uint32_t weight, int32_t h) {
  const Split s = split_weight(weight, h, tree.thresholds, tree.logistic);
  SplitWeights p;
  uint32_t left = s.stop_left, right = s.stop_right;
  if (node.left < 0) {
    left += s.descend_left;
  } else {
    p.left = s.descend_left;
  }
  if (node.right < 0) {
    right += s.descend_right;
  } else {
    p.right = s.descend_right;
  }
  p.ended = static_cast<uint64_t>(left) * node.q_left + static_cast<uint64_t>(right) * node.q_right;
  return p;
}

/// Adds the pairs of taps of one weak classifier at N places; all lanes read the same words. All
/// elements of two words are asked for before the first is used.
template <int N, class Index>
__device__ inline void add_taps(const uint4* taps, int words, const uint32_t* integral,
                                const Index (&at)[N], uint32_t (&sum)[N]) {
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

/// Early rejection: whether the outcome is certain at all N places after a weak classifier.
/// `votes`: sums of the alphas of the votes +1 so far; `rest`: sum of the alphas to come.
template <int N>
__device__ inline bool all_certain(const PackedTreeView& tree, const PackedNode& node, int32_t rest,
                                   int32_t (&votes)[N]) {
  // H so far, of the weak classifiers up to here, whose alphas add up to A - rest.
  const int32_t so_far = node.alpha_sum - rest;
  bool certain = true;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    certain = certain && is_certain(tree::strong_value(votes[j], so_far), rest, tree.thresholds);
  }
  return certain;
}
/// Values of H with the outcome that is certain.
template <int N>
__device__ inline void to_certain(const PackedTreeView& tree, const PackedNode& node, int32_t rest,
                                  const int32_t (&votes)[N], int32_t (&h)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    h[j] =
        certain_value(tree::strong_value(votes[j], node.alpha_sum - rest), rest, tree.thresholds);
  }
}

/// H of a node at N places of each lane. `place(channel, at)` finds the elements of a channel when
/// the weak classifiers turn to another one. kTogether: all lanes of the warp are at this node, and
/// leave it together when the outcome is certain for all.
template <int N, class Index, bool kTogether, class Place>
__device__ inline void strong_classifier(const PackedTreeView& tree, const PackedNode& node,
                                         const uint32_t* integral, Place place, int32_t (&h)[N]) {
  const uint4* at = tree.stream + node.first;
  Index base[N];
  int32_t votes[N] = {};
  int channel = -1;
  for (int w = 0; w < node.n_weak; ++w) {
    const WeakHeader weak(__ldg(at), __ldg(at + 1));
    if (weak.channel != channel) {
      channel = weak.channel;
      place(channel, base);
    }
    uint32_t sum[N] = {};
    add_taps(at + 2, weak.words, integral, base, sum);
    at += 2 + weak.words;
#pragma unroll
    for (int j = 0; j < N; ++j) weak.vote(static_cast<int32_t>(sum[j]), votes[j]);
    if (tree.early_rejection != 0) {
      bool certain = all_certain(tree, node, weak.rest, votes);
      if (kTogether) certain = __all_sync(0xffffffffu, certain);
      if (certain) return to_certain(tree, node, weak.rest, votes, h);
    }
  }
#pragma unroll
  for (int j = 0; j < N; ++j) h[j] = tree::strong_value(votes[j], node.alpha_sum);
}

#endif

}  // namespace larch::pbt::cuda
