// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/tree/forest_math.h"
#include "larch/tree/traversal_math.h"

namespace larch::tree {

/// A seed of responses, which are drawn near the thresholds of the nodes, and the leaf that each
/// tree leads them to.
struct ForestSelfTest {
  uint64_t seed = 0;
  std::vector<uint32_t> leaves;
};

/// A random forest of any number of classes (Sharp 2008): all that knows neither images nor
/// features. The nodes of each tree are together, level by level; leaves are numbered in the order
/// of their nodes, through all trees.
struct Forest {
  uint32_t classes = 0;
  std::vector<ForestNode> nodes;
  std::vector<uint32_t> roots{0};      ///< the first node of each tree
  std::vector<uint32_t> counts;        ///< [leaf][class]: samples of the training that ended there
  std::vector<uint32_t> class_weight;  ///< factor of the counts of each class
  std::vector<ForestSelfTest> self_tests;

  size_t trees() const { return roots.size(); }
  size_t leaves() const { return classes == 0 ? 0 : counts.size() / classes; }
  int depth() const;
};

/// Checks every invariant that evaluation relies on. Throws InputError that says which one failed.
void check_forest(const Forest& forest, size_t features);

/// A forest on one device.
struct ResidentForest {
  Buffer<ForestNode> nodes;
  Buffer<uint32_t> roots, probability;
  ForestView view;
};
/// `nodes`: those of the forest, or the same with features numbered in another way.
ResidentForest make_resident(const Forest& forest, std::span<const ForestNode> nodes,
                             const Device& device);

/// Returns the probability of one class of an item. Lanes (as OneLane) share the trees, and all of
/// them get the float that a single one gets, since what they add up are integers.
template <class Response, class Lanes = OneLane>
LARCH_HD float item_probability(const ForestView& forest, uint32_t of_class,
                                const Response& response, size_t item, const Lanes& lanes = {}) {
  const auto value = [&](const ForestNode& node) { return response(node.feature, item); };
  uint64_t sum = 0;  // at most 2^40, so that both parts of it fit the integers that lanes add up
  for (auto t = static_cast<uint32_t>(lanes.index()); t < forest.trees; t += Lanes::kCount) {
    const size_t leaf = reached_leaf(forest.nodes, forest.roots[t], value);
    sum += forest.probability[leaf * forest.classes + of_class];
  }
  const auto low = static_cast<uint64_t>(lanes.sum(static_cast<int32_t>(sum & 0xffffff)));
  const auto high = static_cast<uint64_t>(lanes.sum(static_cast<int32_t>(sum >> 24)));
  return forest.mean((high << 24) + low);
}

/// Makes `count` self-tests.
std::vector<ForestSelfTest> make_self_tests(const Forest& forest, uint64_t seed, size_t count = 16);
/// Evaluates them again. Throws InputError when one differs: the file or this program is damaged.
void run_self_tests(const Forest& forest);

}  // namespace larch::tree
