// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/tree/tree_config.h"

namespace larch::tree {

/// Samples as the tree sees them; sample i is sample i of a feature source.
struct Samples {
  std::vector<uint64_t> id;       ///< of hashes, the same whatever the order of the samples
  std::vector<uint8_t> positive;  ///< 1 or 0
  /// Q32: how many members of the class it stands for, or a share of that (fit_sum).
  std::vector<uint64_t> mass;

  size_t size() const { return id.size(); }
  void add(uint64_t its_id, bool is_positive, uint64_t its_mass) {
    id.push_back(its_id);
    positive.push_back(is_positive ? 1 : 0);
    mass.push_back(its_mass);
  }
};

/// Halves all masses until their sum is below 2^63, where it is 2^64 or more: they count beside
/// each other alone.
void fit_sum(std::vector<uint64_t>& masses);

/// A held-out sample at a node: the weight with which evaluation brings it there, and the node's H.
struct HeldOutVisit {
  uint32_t sample = 0;
  uint32_t weight = 0;  ///< Q30
  int32_t h = 0;
};

/// The samples that reached a node.
struct NodeSamples {
  std::vector<uint32_t> index;  ///< ascending
  std::vector<uint64_t> mass;   ///< Q32
  std::vector<HeldOutVisit> held_out;
};

/// Returns those that visit a node.
inline std::vector<uint32_t> visited_samples(const NodeSamples& list) {
  std::vector<uint32_t> index;
  index.reserve(list.held_out.size());
  for (const HeldOutVisit& visit : list.held_out) index.push_back(visit.sample);
  return index;
}

/// Returns the seed of everything that a tree of several draws.
inline uint64_t tree_seed(uint64_t seed, size_t tree) {
  constexpr uint64_t kStream = 0x74726565;  // "tree"
  return hash64(seed, kStream, tree);
}

/// Counts how often each of `count` volumes occurs among as many draws with replacement. Every
/// attempt draws anew.
inline std::vector<uint32_t> bootstrap_counts(size_t count, uint64_t seed, uint64_t attempt = 0) {
  constexpr uint64_t kStream = 0x626f6f74;  // "boot"
  std::vector<uint32_t> times(count, 0);
  for (size_t draw = 0; draw < count; ++draw) {
    ++times[hash_below(seed, kStream, attempt * count + draw, static_cast<uint32_t>(count))];
  }
  return times;
}

/// Masses of the positive and negative samples of a list.
void sum_masses(const Samples& samples, const NodeSamples& list, uint64_t* positive,
                uint64_t* negative);

/// The subset a node is trained on: of each class at most so many of lowest hash, ascending.
std::vector<uint32_t> select_samples(const Samples& samples, const NodeSamples& list,
                                     const TreeConfig& config, uint64_t seed, uint64_t heap_index,
                                     int threads);

/// AdaBoost's starting weights of the selected samples, sum 1.
std::vector<double> initial_weights(const Samples& samples, const std::vector<uint32_t>& selected,
                                    const NodeSamples& list, Balance balance);

/// Returns the `wanted` of lowest hash among the columns `from` of `all` columns, ascending. Empty
/// stands for all columns, in `from` and in the result.
std::vector<uint32_t> draw_columns(const std::vector<uint32_t>& from, size_t all, size_t wanted,
                                   uint64_t seed, uint64_t id);

}  // namespace larch::tree
