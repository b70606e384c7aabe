// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/buffer.h"
#include "larch/pbt/evaluate/compiled_model.h"

namespace larch::pbt::cuda {

constexpr int kMaximumChannels = 64;
constexpr int kMaximumLevels = 6;

/// The compiled tree as a stream of 16-byte words, none for a tree of one leaf. A weak classifier
/// is
///   {lo, multiplier, remainder, words | channel << 8 | shift << 16 | pure << 18}
///   {mask, mask >> 32, alpha, 0}
/// and then its taps: in pairs {offset, weight, offset, weight}, whose offsets follow from the
/// image, or, for channels of which tiles are copied to shared memory, four to a word. Of those,
/// the first `pure` words hold byte offsets of taps with weights +1, -1, +1, -1, which most taps of
/// box features have and which need no product; in the others a tap is byte offset << 10 | weight.
/// The last word is filled up with weight 0. All lanes of a warp read the same word.
struct PackedTreeView {
  const tree::FlatNode* nodes = nullptr;  ///< FlatNode::first: an element of the stream
  int32_t node_count = 0;  ///< nodes for tiles are [channel][node], with weak classifiers of each
  const uint4* stream = nullptr;
  const uint32_t* logistic = nullptr;
  int32_t depth = 0;
  tree::Thresholds thresholds{};  ///< of a job
};

constexpr int kWeightBits = 10;  ///< of a packed tap; the other 22 are its byte offset

/// Says how a tile's part of a channel lies in shared memory, to which packed taps refer.
struct Copy {
  Vec3i lo{};              ///< first element, relative to the tile's first voxel
  Vec3i extent{};          ///< elements
  int row = 0, plane = 0;  ///< strides
};

/// A tile, whose channels are copied one after the other.
struct Tiling {
  Vec3i bricks{};                        ///< of a tile, along x, y, z
  Vec3i tiles{};                         ///< of the image
  Copy copies[kMaximumLevels];           ///< of a channel, by its level
  uint8_t channels[kMaximumChannels]{};  ///< that the tree reads
  int channel_count = 0;
  size_t copy_bytes = 0;  ///< of the largest copy
};

/// The tree on the device, owning.
struct PackedTree {
  Buffer<tree::FlatNode> nodes;
  Buffer<uint4> stream;
  Buffer<uint32_t> logistic;
  Buffer<features::Tap> taps;  ///< two a word of the stream, to whose offsets they are to be added
  PackedTreeView view{};
};
/// For the walk of these tiles, or for those that read taps where they are (null). `channels`: of
/// the model.
PackedTree pack_tree(const CompiledTree& tree, std::span<const image::ChannelSpec> channels,
                     const Tiling* tiling, const Device& device);

#ifdef __CUDACC__

/// The fields of a weak classifier's two header words.
struct WeakHeader {
  int32_t lo;
  uint32_t multiplier, remainder;
  int words, channel, shift, pure;
  uint64_t mask;
  int32_t alpha;

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
  }
  /// Adds alpha to `votes` if learning::FastVote says +1, in eight instructions.
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
