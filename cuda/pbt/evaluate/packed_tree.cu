// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

/// Holds what is written of a tree.
struct TreeStream {
  std::vector<uint4> words;
  std::vector<features::Tap> unplaced;  ///< two a word
};

/// Brings pairs of taps with weights +1 and -1 to the front; returns how many words of two pairs
/// they fill.
size_t pure_words_first(std::vector<features::Tap>& taps) {
  constexpr size_t kMaximum = 63;  // fits the header
  std::vector<features::Tap> plus, minus, rest;
  for (const features::Tap& tap : taps) {
    (tap.weight == 1 ? plus : tap.weight == -1 ? minus : rest).push_back(tap);
  }
  const size_t words = std::min({plus.size() / 2, minus.size() / 2, kMaximum});
  taps.clear();
  for (size_t k = 0; k < 2 * words; ++k) taps.insert(taps.end(), {plus[k], minus[k]});
  const auto used = static_cast<std::ptrdiff_t>(2 * words);
  taps.insert(taps.end(), plus.begin() + used, plus.end());
  taps.insert(taps.end(), minus.begin() + used, minus.end());
  taps.insert(taps.end(), rest.begin(), rest.end());
  return words;
}

/// Adds a weak classifier, whose taps refer to `copy`; that may be null.
void add_weak(const CompiledTree& tree, size_t w, const Copy* copy, TreeStream& out) {
  const tree::FlatWeak& weak = tree.weaks[w];
  std::vector<features::Tap> taps(tree.taps_of(w).begin(), tree.taps_of(w).end());
  const size_t pure = copy != nullptr ? pure_words_first(taps) : 0;
  const size_t in_word = copy != nullptr ? 4 : 2;
  while (taps.size() % in_word != 0) {
    taps.push_back(taps.back());
    taps.back().weight = 0;
  }
  const size_t words = taps.size() / in_word;
  if (words > 255) throw UsageError("pbt::evaluate: a feature has too many taps for a GPU");
  const learning::FastVote vote = learning::make_fast_vote(weak.codes, weak.bins, weak.mask);
  out.words.push_back(
      {static_cast<uint32_t>(vote.lo), vote.multiplier, vote.remainder,
       static_cast<uint32_t>(words) | static_cast<uint32_t>(tree.ranges[w].channel) << 8 |
           static_cast<uint32_t>(vote.shift) << 16 | static_cast<uint32_t>(pure) << 18});
  out.words.push_back({static_cast<uint32_t>(vote.mask), static_cast<uint32_t>(vote.mask >> 32),
                       static_cast<uint32_t>(weak.alpha), 0});
  for (size_t k = 0; k < taps.size(); k += in_word) {
    if (copy != nullptr) {
      const auto word = [&](size_t i) {
        const Vec3i at = Vec3i{taps[i].dx, taps[i].dy, taps[i].dz} - copy->lo;
        const auto offset =
            static_cast<uint32_t>(4 * (at.x + copy->row * at.y + copy->plane * at.z));
        const auto weight = static_cast<uint32_t>(taps[i].weight);
        return k < in_word * pure ? offset
                                  : offset << kWeightBits | (weight & ((1u << kWeightBits) - 1));
      };
      out.words.push_back({word(k), word(k + 1), word(k + 2), word(k + 3)});
      continue;
    }
    out.unplaced.resize(2 * out.words.size());
    out.unplaced.insert(out.unplaced.end(), {taps[k], taps[k + 1]});
    out.words.push_back(
        {0, static_cast<uint32_t>(taps[k].weight), 0, static_cast<uint32_t>(taps[k + 1].weight)});
  }
}

}  // namespace

PackedTree pack_tree(const CompiledTree& tree, std::span<const image::ChannelSpec> channels,
                     const Tiling* tiling, const Device& device) {
  TreeStream stream;
  std::vector<tree::FlatNode> nodes;
  for (int c = 0; c < (tiling != nullptr ? tiling->channel_count : 1); ++c) {
    for (tree::FlatNode node : tree.nodes) {
      const auto first = static_cast<size_t>(node.first);
      const size_t end = first + static_cast<size_t>(node.n_weak);
      node.first = static_cast<int32_t>(stream.words.size());
      node.n_weak = 0;
      for (size_t w = first; w < end; ++w) {
        const auto channel = static_cast<size_t>(tree.ranges[w].channel);
        if (tiling != nullptr && channel != tiling->channels[c]) continue;
        add_weak(tree, w, tiling != nullptr ? &tiling->copies[channels[channel].level] : nullptr,
                 stream);
        ++node.n_weak;
      }
      nodes.push_back(node);
    }
  }
  // The walks read a header and two words of taps ahead.
  stream.words.resize(stream.words.size() + 4, {0, 0, 0, 0});
  if (!stream.unplaced.empty()) stream.unplaced.resize(2 * stream.words.size());
  PackedTree packed{
      {device, nodes}, {device, stream.words}, {device, tree.logistic}, {device, stream.unplaced}};
  packed.view = {packed.nodes.data(), static_cast<int32_t>(tree.nodes.size()), packed.stream.data(),
                 packed.logistic.data(), tree.depth};
  return packed;
}

}  // namespace larch::pbt::cuda
