// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/learning/boost.h"
#include "larch/learning/votes.h"
#include "larch/pbt/train/samples.h"
#include "larch/pbt/train/train.h"

namespace larch::pbt {

/// A held-out sample at a node: the weight with which evaluation brings it there, and the node's H.
struct HeldOutVisit {
  uint32_t sample = 0;
  uint32_t weight = 0;  ///< Q30
  int32_t h = 0;
};

/// The samples that reached a node.
struct NodeSamples {
  std::vector<uint32_t> index;
  std::vector<uint64_t> mass;  ///< Q32
  std::vector<HeldOutVisit> held_out;
};

/// Everything that growing a tree works on.
struct Growth {
  const TrainConfig& config;
  const std::vector<TrainingVolume>& volumes;
  const TrainingImages& images;
  learning::FeaturePool& pool;
  const std::vector<features::HaarFeature>& haar;
  SampleSet& samples;
  SampleSet& held_out;
  uint64_t seed = 0;                    ///< of everything that is drawn
  std::vector<uint32_t> features{};     ///< of the pool that the tree may use; empty: all
  std::vector<uint32_t> occurrences{};  ///< how often each volume counts; empty: once
  std::string of_tree{};                ///< for messages: " of tree 3"
  double progress_begin = 0, progress_share = 1;
  PartialModel partial{};
  std::vector<NodeSamples> lists{};                 ///< of the nodes not yet finished
  std::vector<std::vector<HeldOutVisit>> visits{};  ///< of every finished node, for pruning
};

/// The root with all samples that count, whose masses together have to fit 64 bits; `resume`: a
/// tree that has begun to grow, or null. Throws InputError if its samples are others.
void make_root(Growth& growth, const PartialModel* resume);

/// Throws the InputError for a checkpoint that does not fit the training data or the settings.
[[noreturn]] void throw_foreign_checkpoint();

/// Grows the tree from the root, level by level: the recursion of Tu 2005 (Probabilistic
/// Boosting-Tree), in which a node is boosted on the samples that reach it.
void grow(Growth& growth, const TrainHooks& hooks, const Context& context);

/// The `wanted` of lowest hash among the features `from` of a pool of `pool` features, ascending.
/// Empty stands for all features, in `from` and in the result.
std::vector<uint32_t> draw_features(const std::vector<uint32_t>& from, size_t pool, size_t wanted,
                                    uint64_t seed, uint64_t id);

/// The samples `index` of a set and where they lie in the images.
learning::SamplePlaces places_of(const TrainingImages& images, const SampleSet& samples,
                                 std::span<const uint32_t> index);

/// A node's weak classifiers with pool indices, as the votes are cast.
std::vector<WeakClassifier> pool_weaks(const Model& model, const Node& node);

/// Those that visit a node.
std::vector<uint32_t> visited_samples(const NodeSamples& list);

/// Masses of the positive and negative samples of a list.
void sum_masses(const SampleSet& samples, const NodeSamples& list, uint64_t* positive,
                uint64_t* negative);

/// The subset a node is trained on: of each class at most so many of lowest hash, ascending.
std::vector<uint32_t> select_samples(const SampleSet& samples, const NodeSamples& list,
                                     const TreeConfig& config, uint64_t seed, uint64_t heap_index,
                                     int threads);

/// AdaBoost's starting weights of the selected samples (`mass` parallel to `selected`), sum 1.
std::vector<double> initial_weights(const SampleSet& samples, const std::vector<uint32_t>& selected,
                                    const NodeSamples& list, Balance balance);

/// What a node is trained on.
struct NodeTask {
  size_t node = 0;
  std::vector<uint32_t> selected;  ///< of the samples
  std::vector<uint32_t> features;  ///< of the pool; empty: all
  std::vector<uint8_t> positive;
  std::vector<double> weight;
  int rounds = 0;
};
NodeTask make_task(const Growth& growth, size_t node, const Context& context);

/// Trains the strong classifiers of nodes of one level, which do not depend on each other.
std::vector<StrongClassifier> train_nodes(const Growth& growth, std::span<const NodeTask> tasks,
                                          const Context& context);

/// How many of the weak classifiers give the least exponential loss on the held-out samples of a
/// node, giving up after validation.patience rounds without improvement.
size_t best_length(const Growth& growth, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context);

/// Routes all training samples of a node to its children, those whose posterior lies within
/// routing_band of one half to both (Tu 2005): `scores`, the node's H at each sample of the list.
void route_training(const Growth& growth, const NodeSamples& list, std::span<const int32_t> scores,
                    NodeSamples children[2], int threads);

/// Routes the held-out samples as evaluation would, and notes the node's H at each.
void route_held_out(const Growth& growth, NodeSamples& list, std::span<const int32_t> scores,
                    NodeSamples children[2]);

/// The same, with the votes of the node's weak classifiers cast first.
void route_visits(const Growth& growth, const Node& node, NodeSamples& list,
                  NodeSamples children[2], const Context& context);

/// Replaces the negatives of the unfinished nodes of the level that begins at `first_node` by
/// voxels that the tree so far takes for the class. They share the mass of those that they replace,
/// so that the frequencies at the nodes remain those of the images.
void mine_negatives(Growth& growth, size_t first_node, const Context& context);

/// Reduced-error pruning: turns nodes into leaves, bottom-up, where the held-out log-loss does not
/// rise by more than 1e-6, and removes what became unreachable. Returns how many nodes were turned,
/// and the posterior of each held-out sample afterwards.
size_t prune(Model& model, const std::vector<std::vector<HeldOutVisit>>& visits,
             const SampleSet& held_out, std::vector<double>* posterior);

/// Log-loss and area under the ROC curve of posteriors, weighted by mass.
struct HeldOutScore {
  double log_loss = 0, auc = 0;
};
HeldOutScore score(const std::vector<double>& posterior, const SampleSet& samples);

/// Posterior of each held-out sample, by the tree as far as it has grown.
std::vector<double> held_out_posteriors(const Growth& growth);

}  // namespace larch::pbt
