// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/buffer.h"
#include "larch/pbt/evaluate/compiled_model.h"

namespace larch::pbt::cuda {

constexpr int kMaxChannels = 64;
/// In the header of a weak classifier whose feature reads several channels.
constexpr int kManyInStream = 255;

/// The compiled tree as a stream of 16-byte words, none for a tree of one leaf. A weak classifier
/// is
///   {lo, multiplier, remainder, words | channel << 8 | shift << 16 | pure << 18}
///   {mask, mask >> 32, alpha, rest}
/// and then its taps: in pairs {offset, weight, offset, weight}, or, on the channel of which tiles
/// are copied to shared memory, four to a word. Of those, the first `pure` words hold byte offsets
/// of taps with weights +1, -1, +1, -1, which most taps of box features have and which need no
/// product; in the others a tap is byte offset << 10 | weight. The last word is filled up with
/// weight 0. A feature that reads several channels has channel == kManyInStream and one tap to a
/// word, {offset, weight, channel, 0}. All lanes of a warp read the same word.
struct PackedTreeView {
  const tree::FlatNode* nodes = nullptr;  ///< FlatNode::first: an element of the stream
  const uint4* stream = nullptr;
  const uint32_t* logistic = nullptr;
  tree::Thresholds thresholds;
  int32_t early_rejection = 0;
  int32_t depth = 0;
};

/// Extent of the taps of a tree around a voxel, in elements along x, y and z.
struct TapBox {
  Vec3i lo{0, 0, 0}, hi{0, 0, 0};
};
/// Over all taps of features that read `channel` alone.
TapBox tap_box(const CompiledTree& tree, int channel);

/// Whether some feature reads several channels. Such trees are never led through copies of tiles.
bool has_many_channels(const CompiledTree& tree);

/// The channel of full resolution that most weak classifiers use, or -1.
int busiest_channel(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts);

constexpr int kWeightBits = 10;  ///< of a packed tap; the other 22 are its byte offset

/// A channel whose taps refer to a copy in shared memory, from the copy's first element on.
struct StagedTaps {
  int channel = -1;
  int row = 0, plane = 0;  ///< strides of the copy
  Vec3i lo{};              ///< its first element, relative to a voxel's own
};
/// Whether weights and counts of the channel's taps fit the packed form.
bool fits_packed(const CompiledTree& tree, int channel);

/// The tree on the device, owning.
struct PackedTree {
  Buffer<tree::FlatNode> nodes;
  Buffer<uint4> stream;
  Buffer<uint32_t> logistic;
  PackedTreeView view;
};
/// `layouts`: that the offsets shall be for. With `staged`, the taps of that channel are packed.
PackedTree pack_tree(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
                     const StagedTaps* staged, const Device& device);

#ifdef __CUDACC__

/// The fields of a weak classifier's two header words.
struct WeakHeader {
  int32_t lo;
  uint32_t multiplier, remainder;
  int words, channel, shift, pure;
  uint64_t mask;
  int32_t alpha, rest;

  __device__ WeakHeader(const uint4& a, const uint4& b) {
    lo = static_cast<int32_t>(a.x);
    multiplier = a.y;
    remainder = a.z;
    words = static_cast<int>(a.w & 255);
    channel = static_cast<int>(a.w >> 8 & 255);
    shift = static_cast<int>(a.w >> 16 & 3);
    pure = static_cast<int>(a.w >> 18);
    mask = static_cast<uint64_t>(b.y) << 32 | b.x;
    alpha = static_cast<int32_t>(b.z);
    rest = static_cast<int32_t>(b.w);
  }
  /// Adds alpha to `votes` if fast_vote says +1, in eight instructions.
  __device__ void vote(int32_t value, int32_t& votes) const {
    const uint32_t x = static_cast<uint32_t>(max(value, lo)) - static_cast<uint32_t>(lo);
    const auto codes =
        static_cast<uint32_t>((static_cast<uint64_t>(x) * multiplier + remainder) >> 32);
    const uint32_t bin = min(codes >> shift, 63u);
    uint32_t bits;  // in PTX, because the compiler would shift 1 to the left, which takes more
    asm("{ .reg .u64 all; shr.u64 all, %1, %2; cvt.u32.u64 %0, all; }"
        : "=r"(bits)
        : "l"(mask), "r"(bin));
    votes += static_cast<int32_t>(bits & 1) * alpha;
  }
};

#endif

}  // namespace larch::pbt::cuda
