// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/core/random_math.h"
#include "larch/learning/feature_matrix.h"
#include "larch/tree/forest_math.h"

// The two operations of a round that adds a level to a tree (Sharp 2008, section 4): the best test
// of each open leaf from the histograms [leaf][class][column][bin], and the way of the samples.
namespace larch::tree {

/// The node of a sample that takes no part in a tree.
constexpr uint32_t kNoNode = UINT32_MAX;

/// The samples of a tree that grows, on one device. The open leaves of a round are the nodes from
/// `first_open` on, in a row.
struct GrowingSamples {
  Buffer<uint32_t> node;          ///< where each waits or has ended, or kNoNode
  Buffer<uint16_t> label;         ///< class
  Buffer<uint32_t> times;         ///< how often it counts; 0: it only goes along
  Buffer<uint32_t> class_weight;  ///< of each class
  Buffer<int64_t> entropy;        ///< entropy_term of the first numbers
};

/// How tests are chosen from the histograms of columns.
struct SplitRule {
  uint32_t classes = 0;
  int32_t bins = 30;
  int32_t intervals = 0;  ///< 1: any bins in a row may go to the right; 0: those from a bin on
  Criterion criterion = Criterion::kInformation;
  uint32_t min_leaf = 1;
  double min_gain = 0;
  uint64_t seed = 0, share_bound = UINT64_MAX;

  /// Tells whether a node looks at a column; share_bound / 2^64 is the probability.
  LARCH_HD bool looks_at(uint64_t node, uint32_t column) const {
    return share_bound == UINT64_MAX || hash64(seed, node, column) < share_bound;
  }
  /// Returns bytes of the histograms of a leaf.
  int64_t histogram_bytes(size_t slots) const {
    return int64_t{4} * bins * classes * static_cast<int64_t>(slots);
  }
};

/// The best test of a leaf so far: bins [begin, end) of a column go to the right.
struct LeafSplit {
  int64_t impurity = INT64_MAX;  ///< of both children; of equal ones the smallest column wins
  uint32_t column = learning::kFilling;
  uint16_t begin = 0, end = 0;

  LARCH_HD bool found() const { return column != learning::kFilling; }
  LARCH_HD void keep_better(const LeafSplit& other) {
    if (!other.found()) return;
    const bool equal = other.impurity == impurity;
    if (equal ? other.column < column : other.impurity < impurity) *this = other;
  }
};

/// Finds the splits of all open leaves by the columns of a matrix whose row k is of the sample
/// rows[k], or of sample k if no rows are given. The matrix and all buffers are on context.device.
struct SplitJob {
  const learning::FeatureMatrix& matrix;
  const learning::PreparedColumns& columns;
  std::span<const uint32_t> rows;
  const GrowingSamples& samples;
  const SplitRule& rule;
  uint32_t first_open;
  std::vector<LeafSplit>& best;  ///< of each open leaf
  int64_t memory_bytes;          ///< that histograms may take
  const Context& context;
};

/// Where the samples of a leaf go: those with codes from first to last in a slot of the matrix to
/// node left + 1, the others to `left`.
struct LeafRoute {
  uint32_t slot = UINT32_MAX;  ///< UINT32_MAX: they stay
  uint32_t left = 0;
  uint8_t first = 0, last = 255;

  LARCH_HD uint32_t node(uint8_t code) const {
    return left + (code >= first && code <= last ? 1 : 0);
  }
};
struct RouteJob {
  const learning::FeatureMatrix& matrix;
  std::span<const uint32_t> rows;
  Buffer<uint32_t>& node;
  uint32_t first_open;
  std::span<const LeafRoute> routes;  ///< of each open leaf
  const Context& context;
};

/// entropy_term of 0 .. ImpuritySums::kEntropies - 1, which are computed once.
const std::vector<int64_t>& entropy_terms();

/// Throws MemoryError if the histograms of a single leaf take more than memory_bytes.
void split_leaves(const SplitJob& job);
/// Moves the samples of the open leaves.
void route_leaves(const RouteJob& job);

/// The two sums from which the impurity of a set of samples follows.
struct ImpuritySums {
  const SplitRule& rule;
  const int64_t* entropy;  ///< entropy_term of 0 .. kEntropies - 1, which saves most logarithms
  uint64_t total = 0, terms = 0;

  static constexpr uint64_t kEntropies = 1 << 16;
  LARCH_HD int64_t entropy_of(uint64_t n) const {
    return n < kEntropies ? entropy[n] : entropy_term(n);
  }
  /// Adds a class of n samples, which may be weighted; all together are fewer than 2^32.
  LARCH_HD void add(uint64_t n) {
    total += n;
    terms +=
        rule.criterion == Criterion::kInformation ? static_cast<uint64_t>(entropy_of(n)) : n * n;
  }
  /// n E(n), or n times the Gini index.
  LARCH_HD int64_t impurity() const {
    if (rule.criterion == Criterion::kInformation) {
      return entropy_of(total) - static_cast<int64_t>(terms);
    }
    if (total == 0) return 0;
    const auto n = static_cast<double>(total);
    return static_cast<int64_t>(floor((n - static_cast<double>(terms) / n) * kGainUnit + 0.5));
  }
};

/// Returns the best test on one column at one leaf, not found where none gains enough. `upto(c,
/// b)`: samples of class c in the bins 0 .. b; `weight(c)`: of the class; `entropy`: see
/// ImpuritySums. Classes without a sample may be left out.
template <class Upto, class Weight>
LARCH_HD LeafSplit best_test(const SplitRule& rule, uint32_t column, const Upto& upto,
                             const Weight& weight, const int64_t* entropy) {
  const int32_t last = rule.bins - 1;
  uint64_t samples = 0;
  ImpuritySums all{rule, entropy};
  for (uint32_t c = 0; c < rule.classes; ++c) {
    samples += upto(c, last);
    all.add(upto(c, last) * weight(c));
  }
  const auto enough =
      static_cast<int64_t>(rule.min_gain * static_cast<double>(all.total) * kGainUnit);
  LeafSplit best;
  uint64_t below_before = 0;
  for (int32_t i = 1; i < rule.bins; ++i) {
    uint64_t below = 0;
    for (uint32_t c = 0; c < rule.classes; ++c) below += upto(c, i - 1);
    if (below == below_before && !rule.intervals) continue;  // the bin before is empty
    below_before = below;
    for (int32_t j = rule.intervals ? i + 1 : rule.bins; j <= rule.bins; ++j) {
      uint64_t count = 0;
      ImpuritySums inside{rule, entropy}, outside{rule, entropy};
      for (uint32_t c = 0; c < rule.classes; ++c) {
        const uint64_t in = upto(c, j - 1) - upto(c, i - 1);
        count += in;
        inside.add(in * weight(c));
        outside.add((upto(c, last) - in) * weight(c));
      }
      if (count < rule.min_leaf || samples - count < rule.min_leaf) continue;
      const int64_t parts = inside.impurity() + outside.impurity();
      if (parts >= best.impurity || all.impurity() - parts <= enough) continue;
      best = {parts, column, static_cast<uint16_t>(i), static_cast<uint16_t>(j)};
    }
  }
  return best;
}

namespace cuda {
void split_leaves(const SplitJob& job);
void route_leaves(const RouteJob& job);
}  // namespace cuda

}  // namespace larch::tree
