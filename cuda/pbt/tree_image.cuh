// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/buffer.h"
#include "larch/pbt/evaluate.h"

namespace larch::pbt::cuda {

constexpr int kMaxChannels = 64;

/// A node as the walks read it. Values of children stand at their parent, so that leaves are never
/// visited.
struct ImageNode {
  int32_t first = 0;  ///< element of the stream
  int32_t n_weak = 0;
  int32_t left = -1, right = -1;  ///< -1: a leaf
  uint32_t q_left = 0, q_right = 0;
  int32_t alpha_sum = 0;  ///< A: H = 2 sum(alpha of the votes +1) - A
  int32_t unused = 0;
};

/// The compiled tree as a stream of 16-byte words, the device image of section 1.2 of the
/// specification; a tree of one leaf has none. A weak classifier is
///   {lo, hi, multiplier, words | channel << 8 | first_code << 16 | shift << 24 | pure << 26}
///   {mask, mask >> 32, alpha, rest}
/// and then its taps: in pairs {offset, weight, offset, weight}, or, on the channel of which tiles
/// are copied to shared memory, four to a word, each byte offset << 10 | weight. The last word is
/// filled up with weight 0; the first `pure` words hold weights +1, -1, +1, -1, which most taps of
/// box features have and which need no product. All lanes of a warp read the same word.
struct TreeImageView {
  const ImageNode* nodes = nullptr;
  const uint4* stream = nullptr;
  const uint32_t* logistic = nullptr;
  Thresholds thresholds;
  int32_t early_rejection = 0;
  int32_t depth = 0;
};

/// Extent of the taps of a tree around a voxel, in elements along x, y and z.
struct TapBox {
  Vec3i lo{0, 0, 0}, hi{0, 0, 0};
};
/// Over all taps that refer to `channel`, from their offsets in `layout`.
TapBox tap_box(const CompiledTree& tree, const image::IntegralLayout& layout, int channel);

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
struct TreeImage {
  Buffer<ImageNode> nodes;
  Buffer<uint4> stream;
  Buffer<uint32_t> logistic;
  TreeImageView view;
};
/// `layouts`: of the job's integral volumes. With `staged`, the taps of that channel are packed.
TreeImage make_tree_image(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
                          const StagedTaps* staged, const Device& device);

#ifdef __CUDACC__

/// The fields of a weak classifier's two header words.
struct WeakHeader {
  int32_t lo, hi;
  uint32_t multiplier;
  int words, channel, first_code, shift, pure;
  uint32_t mask_low, mask_high;
  int32_t alpha, rest;

  __device__ explicit WeakHeader(const uint4* at) {
    const uint4 a = __ldg(at), b = __ldg(at + 1);
    lo = static_cast<int32_t>(a.x);
    hi = static_cast<int32_t>(a.y);
    multiplier = a.z;
    words = static_cast<int>(a.w & 255);
    channel = static_cast<int>(a.w >> 8 & 255);
    first_code = static_cast<int>(a.w >> 16 & 255);
    shift = static_cast<int>(a.w >> 24 & 3);
    pure = static_cast<int>(a.w >> 26);
    mask_low = b.x;
    mask_high = b.y;
    alpha = static_cast<int32_t>(b.z);
    rest = static_cast<int32_t>(b.w);
  }
  /// alpha if the vote is +1, else 0: weak_vote in fewer instructions. A multiplier of 0, which
  /// says that the code is the value, is written as 256 for a value that is shifted left by 24.
  __device__ int32_t vote(int32_t value) const {
    const uint32_t x = static_cast<uint32_t>(min(max(value, lo), hi)) - static_cast<uint32_t>(lo);
    const bool plain = multiplier == 0;
    const uint32_t code = __umulhi(plain ? x << 24 : x, plain ? 256u : multiplier);
    const uint32_t bin =
        min(static_cast<uint32_t>(max(static_cast<int>(code) - first_code, 0)) >> shift, 63u);
    const uint32_t half = bin & 32 ? mask_high : mask_low;
    return static_cast<int32_t>(half << (~bin & 31)) < 0 ? alpha : 0;
  }
};

#endif

}  // namespace larch::pbt::cuda
