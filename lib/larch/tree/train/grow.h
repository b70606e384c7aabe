// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/ensemble.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/tree_config.h"

namespace larch::tree {

/// A tree that is growing: the first `finished` nodes have been trained; the others are known by
/// their masses only. The features of its weak classifiers are columns of the source.
struct PartialTree {
  Ensemble tree;
  size_t finished = 0;
};

/// The nodes of the level that is trained next, `first_node` and those that follow.
struct Frontier {
  const Ensemble& tree;  ///< as far as it has grown
  size_t first_node = 0;
  std::vector<uint8_t> open;  ///< per node: whether it has samples
};

/// Samples first .. first + count - 1 of the source, which were mined for a node; none: it keeps
/// the negatives that it has.
struct MinedSamples {
  uint32_t first = 0, count = 0;
};

/// Looks for negatives that the tree so far takes for the class, appends them to the samples of the
/// task and to those of its source, and says which of them belong to which node of the frontier.
using Miner = std::function<std::vector<MinedSamples>(const Frontier&)>;

/// Samples with their source.
struct SampleSource {
  const learning::FeatureSource& source;
  const Samples& samples;
};

/// Holds what a tree is grown from. What it refers to outlives the growth.
struct GrowTask {
  const TreeConfig& config;
  const ValidationConfig& validation;
  SampleSource training;
  SampleSource held_out;                    ///< no samples: nothing is held out
  std::span<const learning::CodeMap> maps;  ///< of the columns, as FeatureSource::range gives them
  std::vector<uint32_t> columns{};          ///< that the tree may use, ascending; empty: all
  std::vector<uint32_t> times{};            ///< how often each sample counts; empty: once
  uint64_t seed = 0;                        ///< of everything that is drawn
  int bins = learning::kBins;               ///< of a weak classifier
  Miner mine{};                             ///< after each level below the root's; may be empty
  /// Called after a finished node; may be empty.
  std::function<void(const PartialTree&)> after_node{};
  /// Nodes of a level are trained together as long as they have at most so many samples; 0: as many
  /// as suits the device. The result does not depend on it.
  size_t samples_at_once = 0;
  const PartialTree* resume = nullptr;  ///< goes on from here: the result is the same bytes
  std::string name{};                   ///< for messages: " of tree 3"
  double progress_begin = 0, progress_share = 1;
};

/// A tree and, of each of its nodes, the held-out samples that visit it.
struct GrownTree {
  Ensemble tree;
  std::vector<std::vector<HeldOutVisit>> visits;
};

/// Returns a tree without nodes: what the configuration says of evaluation, and the mean mass of
/// `samples`. Throws UsageError if there are none.
Ensemble start_tree(const TreeConfig& config, const Samples& samples);

/// Grows the tree from the root, level by level: the recursion of Tu 2005 (Probabilistic
/// Boosting-Tree), in which a node is boosted on the samples that reach it. `start`: start_tree;
/// the masses of the samples together have to fit 64 bits. The result depends on task and seed, not
/// on device or threads. Throws InputError if task.resume comes from other samples, and Stopped
/// after a node when the context's stop flag is set.
GrownTree grow(const Ensemble& start, const GrowTask& task, const Context& context);

/// Throws the InputError for a checkpoint that does not fit the training data or the settings.
[[noreturn]] void throw_foreign_checkpoint();

}  // namespace larch::tree
