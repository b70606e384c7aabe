// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

class StreamWriter {
 public:
  explicit StreamWriter(const CompiledTree& tree) : tree_(tree) {}

  /// `copy`: that the taps shall refer to; it may be null.
  void add(size_t w, const Copy* copy) {
    const tree::FlatWeak& weak = tree_.weaks[w];
    const int32_t channel = tree_.ranges[w].channel;
    std::vector<features::Tap> taps(tree_.taps_of(w).begin(), tree_.taps_of(w).end());
    const int pure = copy != nullptr ? pure_words_first(taps) : 0;
    const size_t in_word = copy != nullptr ? 4 : 2;
    while (taps.size() % in_word != 0) {
      taps.push_back(taps.back());
      taps.back().weight = 0;
    }
    const size_t words = taps.size() / in_word;
    if (words > 255) throw UsageError("pbt::evaluate: a feature has too many taps for a GPU");
    const learning::FastVote vote = learning::make_fast_vote(weak.codes, weak.bins, weak.mask);
    stream_.push_back({static_cast<uint32_t>(vote.lo), vote.multiplier, vote.remainder,
                       static_cast<uint32_t>(words) | static_cast<uint32_t>(channel) << 8 |
                           static_cast<uint32_t>(vote.shift) << 16 |
                           static_cast<uint32_t>(pure) << 18});
    stream_.push_back({static_cast<uint32_t>(vote.mask), static_cast<uint32_t>(vote.mask >> 32),
                       static_cast<uint32_t>(weak.alpha), 0});
    for (size_t k = 0; k < taps.size(); k += in_word) {
      if (copy != nullptr) {
        const bool is_pure = k < in_word * static_cast<size_t>(pure);
        const auto word = [&](size_t i) {
          const Vec3i at = Vec3i{taps[i].dx, taps[i].dy, taps[i].dz} - copy->lo;
          const auto offset =
              static_cast<uint32_t>(4 * (at.x + copy->row * at.y + copy->plane * at.z));
          const auto weight = static_cast<uint32_t>(taps[i].weight);
          return is_pure ? offset : offset << kWeightBits | (weight & ((1u << kWeightBits) - 1));
        };
        stream_.push_back({word(k), word(k + 1), word(k + 2), word(k + 3)});
        continue;
      }
      unplaced_.resize(2 * stream_.size());
      unplaced_.insert(unplaced_.end(), {taps[k], taps[k + 1]});
      stream_.push_back(
          {0, static_cast<uint32_t>(taps[k].weight), 0, static_cast<uint32_t>(taps[k + 1].weight)});
    }
  }
  /// The walks read a header and two words of taps ahead.
  void end() {
    stream_.resize(stream_.size() + 4, {0, 0, 0, 0});
    if (!unplaced_.empty()) unplaced_.resize(2 * stream_.size());
  }
  const std::vector<uint4>& stream() const { return stream_; }
  const std::vector<features::Tap>& unplaced() const { return unplaced_; }

 private:
  /// Brings pairs of taps with weights +1 and -1 to the front; returns how many words of two pairs
  /// they fill.
  static int pure_words_first(std::vector<features::Tap>& taps) {
    constexpr size_t kMaximum = 63;  // fits the header
    std::vector<features::Tap> plus, minus, rest, ordered;
    for (const features::Tap& tap : taps) {
      (tap.weight == 1 ? plus : tap.weight == -1 ? minus : rest).push_back(tap);
    }
    const size_t words = std::min({plus.size() / 2, minus.size() / 2, kMaximum});
    for (size_t k = 0; k < 2 * words; ++k) {
      ordered.push_back(plus[k]);
      ordered.push_back(minus[k]);
    }
    const auto used = static_cast<std::ptrdiff_t>(2 * words);
    ordered.insert(ordered.end(), plus.begin() + used, plus.end());
    ordered.insert(ordered.end(), minus.begin() + used, minus.end());
    ordered.insert(ordered.end(), rest.begin(), rest.end());
    taps = ordered;
    return static_cast<int>(words);
  }

  const CompiledTree& tree_;
  std::vector<uint4> stream_;
  std::vector<features::Tap> unplaced_;  // two a word
};

}  // namespace

PackedTree pack_tree(const CompiledTree& tree, std::span<const image::ChannelSpec> channels,
                     const Tiling* tiling, const Device& device) {
  StreamWriter writer(tree);
  std::vector<tree::FlatNode> nodes;
  for (int c = 0; c < (tiling != nullptr ? tiling->channel_count : 1); ++c) {
    for (tree::FlatNode node : tree.nodes) {
      const auto first = static_cast<size_t>(node.first);
      const size_t end = first + static_cast<size_t>(node.n_weak);
      node.first = static_cast<int32_t>(writer.stream().size());
      node.n_weak = 0;
      for (size_t w = first; w < end; ++w) {
        const auto channel = static_cast<size_t>(tree.ranges[w].channel);
        if (tiling != nullptr && channel != tiling->channels[c]) continue;
        writer.add(w, tiling != nullptr ? &tiling->copies[channels[channel].level] : nullptr);
        ++node.n_weak;
      }
      nodes.push_back(node);
    }
  }
  writer.end();
  PackedTree packed{Buffer<tree::FlatNode>(device, nodes), Buffer<uint4>(device, writer.stream()),
                    Buffer<uint32_t>(device, tree.logistic),
                    Buffer<features::Tap>(device, writer.unplaced())};
  packed.view = {packed.nodes.data(),
                 static_cast<int32_t>(tree.nodes.size()),
                 packed.stream.data(),
                 packed.logistic.data(),
                 {},
                 tree.depth};
  return packed;
}

}  // namespace larch::pbt::cuda
