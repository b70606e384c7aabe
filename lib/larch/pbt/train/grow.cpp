// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/grow.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/learning/votes.h"

namespace larch::pbt {
namespace {

/// Why the node may not be split, by its depth and samples; kGrown if it may.
NodeReason stop_before(const Growth& g, const Node& node, const NodeSamples& list) {
  const TreeConfig& config = g.config.tree;
  if (node.reason != NodeReason::kGrown) return node.reason;
  if (node.depth >= config.depth) return NodeReason::kMaxDepth;
  if (node.mass_positive == 0 || node.mass_negative == 0) return NodeReason::kPure;
  const auto total =
      static_cast<double>(node.mass_positive) + static_cast<double>(node.mass_negative);
  const auto larger = static_cast<double>(std::max(node.mass_positive, node.mass_negative));
  if (larger / total >= config.purity) return NodeReason::kPure;
  if (list.index.size() < static_cast<size_t>(config.min_samples)) return NodeReason::kFewSamples;
  size_t positive = 0;
  for (const uint32_t i : list.index) positive += g.samples.positive[i];
  if (std::min(positive, list.index.size() - positive) <
      static_cast<size_t>(config.min_class_samples)) {
    return NodeReason::kFewOfOneClass;
  }
  return NodeReason::kGrown;
}

/// The feature's place in the model, added when it is used for the first time.
uint32_t model_feature(Model& model, const features::HaarFeature& feature) {
  for (size_t f = 0; f < model.features.size(); ++f) {
    if (model.features[f].pool_index == feature.pool_index) return static_cast<uint32_t>(f);
  }
  model.features.push_back(feature);
  return static_cast<uint32_t>(model.features.size() - 1);
}

/// Appends the strong classifier of a node, as long as the held-out samples want it, to the model.
void put_strong(Growth& g, const NodeTask& task, StrongClassifier strong, const Context& context) {
  Model& model = g.partial.model;
  const NodeSamples& list = g.lists[task.node];
  strong.weaks.resize(best_length(g, list, strong.weaks, context));
  Node& node = model.nodes[task.node];
  node.first_weak = static_cast<uint32_t>(model.weaks.size());
  node.n_weak = static_cast<uint32_t>(strong.weaks.size());
  for (WeakClassifier weak : strong.weaks) {
    weak.feature = model_feature(model, g.haar[weak.feature]);
    model.weaks.push_back(weak);
  }
  const auto positives =
      static_cast<uint32_t>(std::accumulate(task.positive.begin(), task.positive.end(), 0));
  model.history.push_back({static_cast<int32_t>(task.node),
                           static_cast<uint32_t>(list.index.size()), positives,
                           static_cast<uint32_t>(task.selected.size()) - positives, strong.errors});
  if (node.n_weak == 0) node.reason = NodeReason::kNoWeakClassifier;
}

/// Gives node `n` its two children.
void split_node(Growth& g, size_t n, const Context& context) {
  Model& model = g.partial.model;
  NodeSamples list = std::move(g.lists[n]);
  const std::vector<WeakClassifier> weaks = pool_weaks(model, model.nodes[n]);
  NodeSamples children[2];
  route_training(
      g, list,
      learning::strong_scores(g.pool, weaks, places_of(g.images, g.samples, list.index), context),
      children, context.threads);
  route_visits(g, model.nodes[n], list, children, context);
  g.visits[n] = std::move(list.held_out);
  const bool separated = !children[0].index.empty() && !children[1].index.empty();
  for (int side = 0; side < 2; ++side) {
    Node child;
    child.depth = model.nodes[n].depth + 1;
    child.heap_index = 2 * model.nodes[n].heap_index + static_cast<uint64_t>(side);
    sum_masses(g.samples, children[side], &child.mass_positive, &child.mass_negative);
    if (children[side].index.empty()) {
      child.reason = NodeReason::kEmpty;
    } else if (!separated) {
      child.reason = NodeReason::kNothingSeparated;
    }
    const auto id = static_cast<int32_t>(g.lists.size());
    (side == 0 ? model.nodes[n].left : model.nodes[n].right) = id;
    g.lists.push_back(std::move(children[side]));
    g.visits.emplace_back();
    // On resume the node is already there, possibly trained.
    if (static_cast<size_t>(id) == model.nodes.size()) model.nodes.push_back(child);
  }
}

/// Finishes node `n`, which is trained if it is to be split: splits it or leaves it a leaf.
void finish_node(Growth& g, size_t n, const TrainHooks& hooks, const Context& context) {
  if (g.partial.model.nodes[n].reason == NodeReason::kGrown) {
    split_node(g, n, context);
  } else {
    g.visits[n] = std::move(g.lists[n].held_out);
    g.lists[n] = {};
  }
  if (n < g.partial.finished) return;  // a resumed run knew it
  g.partial.finished = n + 1;
  if (hooks.after_node) hooks.after_node(g.partial);
  if (context.stop_requested()) {
    throw Stopped(
        "stopped after node " + std::to_string(n) + g.of_tree + "; continue with --resume",
        static_cast<ExitCode>(context.stop->load()));
  }
}

void report_node(const Growth& g, size_t n, const Context& context) {
  const double all_nodes = std::pow(2.0, g.config.tree.depth);
  const double grown = std::min(1.0, static_cast<double>(n) / (2 * all_nodes - 1));
  context.progress(g.progress_begin + g.progress_share * grown,
                   "training node " + std::to_string(n + 1) + g.of_tree + " at depth " +
                       std::to_string(g.partial.model.nodes[n].depth));
}

/// Nodes that are finished together: [first, end), of one level.
struct Batch {
  size_t end = 0;
  std::vector<NodeReason> reasons;  ///< of each of them
  std::vector<NodeTask> tasks;      ///< of those to be trained
};

/// As many of the nodes [first, end) as have at most `at_once` samples together, one in any case.
/// Nodes of a resumed run are not trained again.
Batch make_batch(const Growth& g, size_t first, size_t end, size_t at_once,
                 const Context& context) {
  const TreeConfig& config = g.config.tree;
  const size_t most_selected = static_cast<size_t>(config.selected_positives) +
                               static_cast<size_t>(config.selected_negatives);
  Batch batch;
  size_t samples = 0;
  for (batch.end = first; batch.end < end; ++batch.end) {
    const size_t n = batch.end;
    const Node& node = g.partial.model.nodes[n];
    const bool known = n < g.partial.finished;
    const NodeReason reason = known ? node.reason : stop_before(g, node, g.lists[n]);
    if (!known && reason == NodeReason::kGrown) {
      const size_t more = std::min(g.lists[n].index.size(), most_selected);
      if (!batch.tasks.empty() && samples + more > at_once) break;
      batch.tasks.push_back(make_task(g, n, context));
      samples += batch.tasks.back().selected.size();
    }
    batch.reasons.push_back(reason);
  }
  return batch;
}

/// Finishes the nodes [first, end) of one level: as many at a time as are trained together.
void finish_nodes(Growth& g, size_t first, size_t end, const TrainHooks& hooks,
                  const Context& context) {
  const size_t at_once =
      hooks.samples_at_once > 0 ? hooks.samples_at_once : learning::samples_at_once(g.pool);
  while (first < end) {
    report_node(g, first, context);
    const Batch batch = make_batch(g, first, end, at_once, context);
    std::vector<StrongClassifier> strong = train_nodes(g, batch.tasks, context);
    for (size_t n = first, k = 0; n < batch.end; ++n) {
      if (n > first) report_node(g, n, context);
      g.partial.model.nodes[n].reason = batch.reasons[n - first];
      if (k < batch.tasks.size() && batch.tasks[k].node == n) {
        put_strong(g, batch.tasks[k], std::move(strong[k]), context);
        ++k;
      }
      finish_node(g, n, hooks, context);
    }
    first = batch.end;
  }
}

/// What a level ends with: mining for the next one, and the held-out scores.
void finish_level(Growth& g, size_t first_node, const Context& context) {
  const int depth = g.partial.model.nodes[first_node].depth;
  if (g.held_out.size() > 0) {
    const HeldOutScore s = score(held_out_posteriors(g), g.held_out);
    char text[128];
    std::snprintf(text, sizeof text, "depth %d: held-out log-loss %.5f, AUC %.5f", depth,
                  s.log_loss, s.auc);
    context.info(text);
  }
  if (g.config.mining.enabled && depth > 0 && depth < g.config.tree.depth) {
    mine_negatives(g, first_node, context);
  }
}

}  // namespace

void grow(Growth& g, const TrainHooks& hooks, const Context& context) {
  const std::vector<Node>& nodes = g.partial.model.nodes;
  for (size_t first = 0; first < g.lists.size();) {
    size_t end = first;
    while (end < g.lists.size() && nodes[end].depth == nodes[first].depth) ++end;
    if (first > 0) finish_level(g, first, context);
    finish_nodes(g, first, end, hooks, context);
    first = end;
  }
}

std::vector<WeakClassifier> pool_weaks(const Model& model, const Node& node) {
  const auto first = model.weaks.begin() + node.first_weak;
  std::vector<WeakClassifier> weaks(first, first + node.n_weak);
  for (WeakClassifier& weak : weaks) weak.feature = model.features[weak.feature].pool_index;
  return weaks;
}

void route_visits(const Growth& g, const Node& node, NodeSamples& list, NodeSamples children[2],
                  const Context& context) {
  const std::vector<WeakClassifier> weaks = pool_weaks(g.partial.model, node);
  const std::vector<uint32_t> visited = visited_samples(list);
  route_held_out(
      g, list,
      learning::strong_scores(g.pool, weaks, places_of(g.images, g.held_out, visited), context),
      children);
}

learning::SamplePlaces places_of(const TrainingImages& images, const SampleSet& samples,
                                 std::span<const uint32_t> index) {
  return {images.data.data(), samples.bases.data(), samples.size(), index};
}

void throw_foreign_checkpoint() {
  throw InputError(
      "the checkpoint belongs to other training data or settings; delete it and train anew");
}

void make_root(Growth& g, const PartialModel* resume) {
  NodeSamples root;
  for (uint32_t i = 0; i < g.samples.size(); ++i) {
    const uint32_t times = g.occurrences.empty() ? 1 : g.occurrences[g.samples.volume[i]];
    if (times == 0) continue;
    root.index.push_back(i);
    root.mass.push_back(times * g.samples.mass[i]);
  }
  for (uint32_t i = 0; i < g.held_out.size(); ++i) root.held_out.push_back({i, kOneQ30, 0});
  Node node;
  sum_masses(g.samples, root, &node.mass_positive, &node.mass_negative);
  if (resume != nullptr) {
    g.partial = *resume;
    const Node& old = g.partial.model.nodes.at(0);
    const bool same =
        old.mass_positive == node.mass_positive && old.mass_negative == node.mass_negative;
    if (!same) throw_foreign_checkpoint();
  } else {
    g.partial.model.nodes.push_back(node);
  }
  g.lists.push_back(std::move(root));
  g.visits.emplace_back();
}

}  // namespace larch::pbt
