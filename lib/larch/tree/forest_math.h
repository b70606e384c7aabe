// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/core/portable_math.h"
#include "larch/learning/weak_math.h"
#include "larch/tree/tree_config.h"

// Decision forests (Sharp 2008): the way of an item through a tree, and the gain of a split. Gains
// are integers of 2^-14, so that sums over classes do not depend on their order and ties are ties.
namespace larch::tree {

/// A node of a forest. An item whose feature has a value from `low` to `high` goes to the child
/// left + 1, any other to `left`; -1: a leaf, whose number is `leaf`.
struct ForestNode {
  int32_t left = -1;
  uint32_t feature = 0;
  int32_t low = INT32_MIN, high = INT32_MAX;
  int32_t leaf = -1;

  LARCH_HD bool is_leaf() const { return left < 0; }
};

/// Returns the number of the leaf at which an item ends that starts at a root. `value(node)` gives
/// the value of the node's feature. An item takes one way, so that nothing waits as in
/// tree::traverse.
template <class Value>
LARCH_HD uint32_t reached_leaf(const ForestNode* nodes, uint32_t root, const Value& value) {
  ForestNode node = nodes[root];
  while (!node.is_leaf()) {
    const int32_t r = value(node);
    node = nodes[node.left + (r >= node.low && r <= node.high ? 1 : 0)];
  }
  return static_cast<uint32_t>(node.leaf);
}

/// The trees of a forest on one device.
struct ForestView {
  const ForestNode* nodes = nullptr;
  const uint32_t* roots = nullptr;
  const uint32_t* probability = nullptr;  ///< [leaf][class], Q30
  uint32_t trees = 0, classes = 0;

  /// Returns the sum over the trees of the probability of a class, Q30. `leaf_of(t)`: the leaf that
  /// is reached in tree t.
  template <class LeafOf>
  LARCH_HD uint64_t sum(uint32_t of_class, const LeafOf& leaf_of) const {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < trees; ++t) {
      sum += probability[static_cast<size_t>(leaf_of(t)) * classes + of_class];
    }
    return sum;
  }
  LARCH_HD float mean(uint64_t sum_q30) const {
    return static_cast<float>(static_cast<double>(sum_q30) * 0x1.0p-30 / trees);
  }
};

constexpr double kGainUnit = 16384;  ///< 2^14

/// n log2 n, rounded to 2^-14; n is a count, or a weighted one.
LARCH_HD int64_t entropy_term(uint64_t n) {
  if (n < 2) return 0;
  const auto x = static_cast<double>(n);
  return static_cast<int64_t>(floor(x * (log_of(x) * 1.4426950408889634) * kGainUnit + 0.5));
}

/// Codes of a column to bins: (code * factor) >> 16 for codes of 0 .. last.
LARCH_HD uint32_t bin_factor(const learning::CodeMap& map, int bins) {
  const uint32_t codes = learning::code_of(map, map.hi) + 1;
  const uint32_t factor = (static_cast<uint32_t>(bins) << 16) / codes;
  return factor < 65536u ? factor : 65536u;
}
/// Returns the smallest code of a bin.
LARCH_HD uint32_t first_code(uint32_t factor, uint32_t bin) {
  return ((bin << 16) + factor - 1) / factor;
}

/// Returns the smallest value, from lo on, with a code of at least `code`, which is above 0.
LARCH_HD int32_t first_value(const learning::CodeMap& map, uint32_t code) {
  uint64_t above = code;
  if (map.multiplier != 0) {
    above = ((static_cast<uint64_t>(code) << 32) + map.multiplier - 1) / map.multiplier;
  }
  return static_cast<int32_t>(static_cast<uint32_t>(map.lo) + static_cast<uint32_t>(above));
}

}  // namespace larch::tree
