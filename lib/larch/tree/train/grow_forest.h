// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/forest.h"
#include "larch/tree/tree_config.h"

namespace larch::tree {

/// The columns that a round chooses from: columns of a source with their code maps. The nodes name
/// a column by round and index here; who draws the same round again gets the same column.
struct RoundColumns {
  std::shared_ptr<const learning::FeatureSource> source;
  std::vector<uint32_t> columns;        ///< of the source, ascending
  std::vector<learning::CodeMap> maps;  ///< of each
};

/// Returns all columns of a source.
RoundColumns all_columns(std::shared_ptr<const learning::FeatureSource> source,
                         std::vector<learning::CodeMap> maps);
/// Draws `wanted` of the columns by hash; all, if there are no more.
RoundColumns draw_round(const RoundColumns& all, int wanted, uint64_t seed, uint32_t round);

/// Which column a node asks: the round that drew it, and its number in the source.
struct PickedColumn {
  uint32_t round = 0, column = 0;
};

/// A tree as it grows. The feature of a node is an index into `picked`; leaves have no numbers.
struct ForestTree {
  std::vector<ForestNode> nodes{1};
  std::vector<PickedColumn> picked;
  uint32_t rounds = 0;           ///< that are done
  std::vector<uint32_t> counts;  ///< [node][class] when the tree is grown
};

/// Holds what a tree is grown from.
struct ForestTask {
  const ForestConfig& config;
  uint32_t classes = 0;
  std::span<const uint16_t> label;         ///< class of each sample
  std::span<const uint32_t> times;         ///< how often each counts for this tree; those from
                                           ///< times.size() on are held out and only go along
  std::span<const uint32_t> class_weight;  ///< of each class
  uint64_t seed = 0;                       ///< of this tree
  /// The columns of a round of this tree.
  std::function<RoundColumns(uint32_t round)> draw{};
  /// All rounds have the same columns: their codes are kept here, for all trees, once filled.
  std::shared_ptr<learning::FeatureMatrix>* kept = nullptr;
  int64_t memory_bytes = 0;  ///< of matrix and histograms; 0: half of what is free
  const ForestTree* resume = nullptr;
  std::function<void(const ForestTree&)> after_round{};
};

/// A grown tree and the node that each sample ends at, kNoNode for those that take no part.
struct GrownForestTree {
  ForestTree tree;
  std::vector<uint32_t> node;
};

/// Grows a tree level by level: each round draws columns, fills their codes, counts them and adds a
/// level (Sharp 2008, section 4). The result depends on the task alone, not on the device, the
/// number of threads, the memory or where it was resumed. Throws MemoryError, and Stopped between
/// rounds.
GrownForestTree grow_tree(const ForestTask& task, const Context& context);

/// Returns the nodes of grown trees as a forest; `feature_of(tree, pick)` numbers the features.
Forest forest_of(const std::vector<ForestTree>& trees, uint32_t classes,
                 std::span<const uint32_t> class_weight,
                 const std::function<uint32_t(size_t tree, const PickedColumn&)>& feature_of);

/// Whole factors of the counts of the classes, by the configuration and how many samples there are
/// of each, so small that all samples together weigh less than 2^32.
std::vector<uint32_t> class_weights(const ForestConfig& config, std::span<const uint64_t> samples);

}  // namespace larch::tree
