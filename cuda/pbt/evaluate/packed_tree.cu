// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

struct Corner {
  int dx, dy, dz;
};

/// Undoes IntegralLayout::linear_offset for a corner within the padding of the layout.
Corner corner_of(int32_t offset, const image::IntegralLayout& layout) {
  const int64_t row = layout.stride_size.x, plane = row * layout.stride_size.y;
  const int64_t from_first = offset + layout.pad * (1 + row + plane);
  return {static_cast<int>(from_first % row) - layout.pad,
          static_cast<int>(from_first / row % layout.stride_size.y) - layout.pad,
          static_cast<int>(from_first / plane) - layout.pad};
}

class StreamWriter {
 public:
  StreamWriter(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
               const StagedTaps* staged)
      : tree_(tree), layouts_(layouts), staged_(staged) {}

  void add(int32_t w) {
    const WeakRecord& weak = tree_.weaks[static_cast<size_t>(w)];
    const bool packed = staged_ != nullptr && weak.channel == staged_->channel;
    std::vector<features::LinearTap> taps(tree_.taps.begin() + weak.first_tap,
                                          tree_.taps.begin() + weak.first_tap + weak.n_tap);
    const int pure = packed ? pure_words_first(taps) : 0;
    const size_t in_word = packed ? 4 : 2;
    while (taps.size() % in_word != 0) taps.push_back({taps.back().offset, 0});
    const size_t words = taps.size() / in_word;
    if (words > 255) throw UsageError("pbt::evaluate: a feature has more than 510 taps");
    const learning::FastVote vote = make_fast_vote(weak.codes, weak.bins, weak.mask);
    stream_.push_back({static_cast<uint32_t>(vote.lo), vote.multiplier, vote.remainder,
                       static_cast<uint32_t>(words) | static_cast<uint32_t>(weak.channel) << 8 |
                           static_cast<uint32_t>(vote.shift) << 16 |
                           static_cast<uint32_t>(pure) << 18});
    stream_.push_back({static_cast<uint32_t>(vote.mask), static_cast<uint32_t>(vote.mask >> 32),
                       static_cast<uint32_t>(weak.alpha),
                       static_cast<uint32_t>(tree_.rest[static_cast<size_t>(w)])});
    for (size_t k = 0; k < taps.size(); k += in_word) {
      if (k < in_word * static_cast<size_t>(pure)) {
        stream_.push_back({byte_offset(weak, taps[k]), byte_offset(weak, taps[k + 1]),
                           byte_offset(weak, taps[k + 2]), byte_offset(weak, taps[k + 3])});
      } else if (packed) {
        stream_.push_back({packed_tap(weak, taps[k]), packed_tap(weak, taps[k + 1]),
                           packed_tap(weak, taps[k + 2]), packed_tap(weak, taps[k + 3])});
      } else {
        stream_.push_back(
            {static_cast<uint32_t>(taps[k].offset), static_cast<uint32_t>(taps[k].weight),
             static_cast<uint32_t>(taps[k + 1].offset), static_cast<uint32_t>(taps[k + 1].weight)});
      }
    }
  }
  /// The walks read a header and two words of taps ahead.
  void end() { stream_.resize(stream_.size() + 4, {0, 0, 0, 0}); }
  const std::vector<uint4>& stream() const { return stream_; }

 private:
  /// Brings pairs of taps with weights +1 and -1 to the front; returns how many words of two pairs
  /// they fill.
  static int pure_words_first(std::vector<features::LinearTap>& taps) {
    constexpr size_t kMost = 63;  // fits the header
    std::vector<features::LinearTap> plus, minus, rest, ordered;
    for (const features::LinearTap& tap : taps) {
      (tap.weight == 1 ? plus : tap.weight == -1 ? minus : rest).push_back(tap);
    }
    const size_t words = std::min({plus.size() / 2, minus.size() / 2, kMost});
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
  uint32_t byte_offset(const WeakRecord& weak, const features::LinearTap& linear) const {
    const Corner c = corner_of(linear.offset, layouts_[weak.channel]);
    const int element = c.dx - staged_->lo.x + staged_->row * (c.dy - staged_->lo.y) +
                        staged_->plane * (c.dz - staged_->lo.z);
    return static_cast<uint32_t>(element) * static_cast<uint32_t>(sizeof(uint32_t));
  }
  uint32_t packed_tap(const WeakRecord& weak, const features::LinearTap& linear) const {
    return byte_offset(weak, linear) << kWeightBits |
           (static_cast<uint32_t>(linear.weight) & ((1u << kWeightBits) - 1));
  }

  const CompiledTree& tree_;
  std::span<const image::IntegralLayout> layouts_;
  const StagedTaps* staged_;
  std::vector<uint4> stream_;
};

}  // namespace

TapBox tap_box(const CompiledTree& tree, const image::IntegralLayout& layout, int channel) {
  TapBox box;
  for (const WeakRecord& weak : tree.weaks) {
    if (weak.channel != channel) continue;
    for (int32_t t = weak.first_tap; t < weak.first_tap + weak.n_tap; ++t) {
      const Corner c = corner_of(tree.taps[static_cast<size_t>(t)].offset, layout);
      box.lo = {std::min(box.lo.x, c.dx), std::min(box.lo.y, c.dy), std::min(box.lo.z, c.dz)};
      box.hi = {std::max(box.hi.x, c.dx), std::max(box.hi.y, c.dy), std::max(box.hi.z, c.dz)};
    }
  }
  return box;
}

int busiest_channel(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts) {
  std::vector<int> uses(layouts.size(), 0);
  for (const WeakRecord& weak : tree.weaks) {
    if (layouts[weak.channel].level == 0) ++uses[weak.channel];
  }
  const auto most = std::max_element(uses.begin(), uses.end());
  return most == uses.end() || *most == 0 ? -1 : static_cast<int>(most - uses.begin());
}

bool fits_packed(const CompiledTree& tree, int channel) {
  constexpr int kLimit = 1 << (kWeightBits - 1);
  for (const WeakRecord& weak : tree.weaks) {
    if (weak.channel != channel) continue;
    for (int32_t t = weak.first_tap; t < weak.first_tap + weak.n_tap; ++t) {
      const int32_t weight = tree.taps[static_cast<size_t>(t)].weight;
      if (weight < -kLimit || weight >= kLimit) return false;
    }
  }
  return true;
}

PackedTree pack_tree(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
                     const StagedTaps* staged, const Device& device) {
  StreamWriter writer(tree, layouts, staged);
  std::vector<PackedNode> nodes;
  for (const NodeRecord& node : tree.nodes) {
    PackedNode out;
    out.first = static_cast<int32_t>(writer.stream().size());
    out.n_weak = node.n_weak;
    out.alpha_sum = node.alpha_sum;
    if (node.left >= 0) {
      const NodeRecord& left = tree.nodes[static_cast<size_t>(node.left)];
      const NodeRecord& right = tree.nodes[static_cast<size_t>(node.right)];
      out.left = left.left < 0 ? -1 : node.left;
      out.right = right.left < 0 ? -1 : node.right;
      out.q_left = left.q;
      out.q_right = right.q;
    }
    for (int32_t w = 0; w < node.n_weak; ++w) writer.add(node.first_weak + w);
    nodes.push_back(out);
  }
  writer.end();
  PackedTree packed;
  packed.nodes = Buffer<PackedNode>(device, std::span<const PackedNode>(nodes));
  packed.stream = Buffer<uint4>(device, std::span<const uint4>(writer.stream()));
  packed.logistic = Buffer<uint32_t>(device, std::span<const uint32_t>(tree.logistic));
  packed.view.nodes = packed.nodes.data();
  packed.view.stream = packed.stream.data();
  packed.view.logistic = packed.logistic.data();
  packed.view.thresholds = tree.thresholds;
  packed.view.early_rejection = tree.early_rejection ? 1 : 0;
  packed.view.depth = tree.depth;
  return packed;
}

}  // namespace larch::pbt::cuda
