// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

class StreamWriter {
 public:
  StreamWriter(const CompiledTree& tree, const Tiling* tiling) : tree_(tree), tiling_(tiling) {}

  void add(size_t w) {
    const tree::FlatWeak& weak = tree_.weaks[w];
    const int32_t channel = tree_.ranges[w].channel;
    std::vector<features::Tap> taps(tree_.taps_of(w).begin(), tree_.taps_of(w).end());
    const bool packed = tiling_ != nullptr && channel == tiling_->channel;
    const int pure = packed ? pure_words_first(taps) : 0;
    const size_t in_word = packed ? 4 : 2;
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
      if (k < in_word * static_cast<size_t>(pure)) {
        stream_.push_back({byte_offset(taps[k]), byte_offset(taps[k + 1]), byte_offset(taps[k + 2]),
                           byte_offset(taps[k + 3])});
      } else if (packed) {
        stream_.push_back({packed_tap(taps[k]), packed_tap(taps[k + 1]), packed_tap(taps[k + 2]),
                           packed_tap(taps[k + 3])});
      } else {
        unplaced_.resize(2 * stream_.size());
        unplaced_.insert(unplaced_.end(), {taps[k], taps[k + 1]});
        stream_.push_back({0, static_cast<uint32_t>(taps[k].weight), 0,
                           static_cast<uint32_t>(taps[k + 1].weight)});
      }
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
  uint32_t byte_offset(const features::Tap& tap) const {
    const int element = tap.dx - tiling_->lo.x + tiling_->row * (tap.dy - tiling_->lo.y) +
                        tiling_->plane * (tap.dz - tiling_->lo.z);
    return static_cast<uint32_t>(element) * static_cast<uint32_t>(sizeof(uint32_t));
  }
  uint32_t packed_tap(const features::Tap& tap) const {
    return byte_offset(tap) << kWeightBits |
           (static_cast<uint32_t>(tap.weight) & ((1u << kWeightBits) - 1));
  }

  const CompiledTree& tree_;
  const Tiling* tiling_;
  std::vector<uint4> stream_;
  std::vector<features::Tap> unplaced_;  // two a word
};

}  // namespace

PackedTree pack_tree(const CompiledTree& tree, const Tiling* tiling, const Device& device) {
  StreamWriter writer(tree, tiling);
  std::vector<tree::FlatNode> nodes = tree.nodes;
  for (tree::FlatNode& node : nodes) {
    const auto first = static_cast<size_t>(node.first);
    node.first = static_cast<int32_t>(writer.stream().size());
    for (size_t w = 0; w < static_cast<size_t>(node.n_weak); ++w) writer.add(first + w);
  }
  writer.end();
  PackedTree packed;
  packed.nodes = Buffer<tree::FlatNode>(device, std::span<const tree::FlatNode>(nodes));
  packed.stream = Buffer<uint4>(device, std::span<const uint4>(writer.stream()));
  packed.logistic = Buffer<uint32_t>(device, std::span<const uint32_t>(tree.logistic));
  packed.taps = Buffer<features::Tap>(device, std::span<const features::Tap>(writer.unplaced()));
  packed.view.nodes = packed.nodes.data();
  packed.view.stream = packed.stream.data();
  packed.view.logistic = packed.logistic.data();
  packed.view.thresholds = tree.thresholds;
  packed.view.depth = tree.depth;
  return packed;
}

}  // namespace larch::pbt::cuda
