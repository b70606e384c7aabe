// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/grow.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/pbt/votes.h"

namespace larch::pbt {
namespace {

constexpr uint64_t kFeatureStream = 0x66656174;  // "feat"

/// Section 3.5 of the specification: may this node be split at all?
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

int rounds_at(const TreeConfig& config, int depth) {
  if (config.rounds.empty()) throw UsageError("tree/rounds: needs at least one number");
  return config.rounds[std::min(static_cast<size_t>(depth), config.rounds.size() - 1)];
}

/// The feature's place in the model, added when it is used for the first time.
uint32_t model_feature(Model& model, const features::HaarFeature& feature) {
  for (size_t f = 0; f < model.features.size(); ++f) {
    if (model.features[f].pool_index == feature.pool_index) return static_cast<uint32_t>(f);
  }
  model.features.push_back(feature);
  return static_cast<uint32_t>(model.features.size() - 1);
}

/// The node's weak classifiers with pool indices, as cast_votes wants them.
std::vector<WeakClassifier> pool_weaks(const Model& model, const Node& node) {
  const auto first = model.weaks.begin() + node.first_weak;
  std::vector<WeakClassifier> weaks(first, first + node.n_weak);
  for (WeakClassifier& weak : weaks) weak.feature = model.features[weak.feature].pool_index;
  return weaks;
}

std::vector<int32_t> alphas_of(std::span<const WeakClassifier> weaks) {
  std::vector<int32_t> alphas;
  for (const WeakClassifier& weak : weaks) alphas.push_back(weak.alpha_q20);
  return alphas;
}

std::vector<uint32_t> visited_samples(const NodeSamples& list) {
  std::vector<uint32_t> index;
  for (const HeldOutVisit& visit : list.held_out) index.push_back(visit.sample);
  return index;
}

/// How many weak classifiers give the least exponential loss on the held-out samples of the node,
/// giving up after `patience` rounds without improvement.
size_t best_length(const Growth& g, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context) {
  const auto patience = static_cast<size_t>(g.config.validation.patience);
  if (patience == 0 || list.held_out.empty() || weaks.empty()) return weaks.size();
  const std::vector<uint32_t> index = visited_samples(list);
  const Votes votes = cast_votes(g.pool, weaks, places_of(g.images, g.held_out, index), context);
  double mass[2] = {0, 0};
  for (const HeldOutVisit& v : list.held_out) mass[g.held_out.positive[v.sample]] += v.weight;
  std::vector<int32_t> h(index.size(), 0);
  size_t best = 0;
  double best_loss = 1;
  for (size_t t = 0; t < weaks.size() && t - std::min(t, best) <= patience; ++t) {
    double loss = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      h[k] += votes.at(k, t) ? weaks[t].alpha_q20 : -weaks[t].alpha_q20;
      const bool positive = g.held_out.positive[index[k]] != 0;
      const double margin = (positive ? h[k] : -h[k]) * 0x1.0p-20;
      loss += 0.5 * list.held_out[k].weight / std::max(mass[positive], 1.0) * std::exp(-margin);
    }
    if (loss < best_loss) {
      best_loss = loss;
      best = t + 1;
    }
  }
  return std::max<size_t>(best, 1);
}

/// The features that a node may choose from; empty: all.
std::vector<uint32_t> node_features(const Growth& g, uint64_t heap_index) {
  const auto wanted = static_cast<size_t>(g.config.tree.node_features);
  if (wanted == 0) return g.features;
  return draw_features(g.features, g.haar.size(), wanted, g.seed ^ kFeatureStream, heap_index);
}

/// Trains the strong classifier of node `n` and appends it to the model.
void train_node(Growth& g, size_t n, const Context& context) {
  Model& model = g.partial.model;
  const TreeConfig& config = g.config.tree;
  const NodeSamples& list = g.lists[n];
  const uint64_t heap_index = model.nodes[n].heap_index;
  const std::vector<uint32_t> selected =
      select_samples(g.samples, list, config, g.seed, heap_index);
  const std::vector<double> weight = initial_weights(g.samples, selected, list, config.balance);
  std::vector<uint8_t> positive;
  positive.reserve(selected.size());
  for (const uint32_t i : selected) positive.push_back(g.samples.positive[i]);
  BoostProblem problem;
  problem.places = places_of(g.images, g.samples, selected);
  problem.positive = positive;
  problem.weight = weight;
  const std::vector<uint32_t> features = node_features(g, heap_index);
  problem.features = features;
  problem.rounds = rounds_at(config, model.nodes[n].depth);
  problem.kind = config.weak;
  StrongClassifier strong = strong_classifier(boost(g.pool, problem, context), g.pool,
                                              config.worst_error, selected.size());
  strong.weaks.resize(best_length(g, list, strong.weaks, context));
  Node& node = model.nodes[n];
  node.first_weak = static_cast<uint32_t>(model.weaks.size());
  node.n_weak = static_cast<uint32_t>(strong.weaks.size());
  for (WeakClassifier weak : strong.weaks) {
    weak.feature = model_feature(model, g.haar[weak.feature]);
    model.weaks.push_back(weak);
  }
  const auto positives =
      static_cast<uint32_t>(std::accumulate(positive.begin(), positive.end(), 0));
  model.history.push_back({static_cast<int32_t>(n), static_cast<uint32_t>(list.index.size()),
                           positives, static_cast<uint32_t>(selected.size()) - positives,
                           strong.errors});
  if (node.n_weak == 0) node.reason = NodeReason::kNoWeakClassifier;
}

/// Gives node `n` its two children.
void split_node(Growth& g, size_t n, const Context& context) {
  Model& model = g.partial.model;
  NodeSamples list = std::move(g.lists[n]);
  const std::vector<WeakClassifier> weaks = pool_weaks(model, model.nodes[n]);
  const std::vector<int32_t> alphas = alphas_of(weaks);
  NodeSamples children[2];
  route_training(g, list,
                 cast_votes(g.pool, weaks, places_of(g.images, g.samples, list.index), context),
                 alphas, children);
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

/// Finishes node `n`: decides, trains, splits. Nodes of a resumed run only split.
void finish_node(Growth& g, size_t n, const TrainHooks& hooks, const Context& context) {
  Model& model = g.partial.model;
  const bool known = n < g.partial.finished;
  if (!known) {
    model.nodes[n].reason = stop_before(g, model.nodes[n], g.lists[n]);
    if (model.nodes[n].reason == NodeReason::kGrown) train_node(g, n, context);
  }
  if (model.nodes[n].reason == NodeReason::kGrown) {
    split_node(g, n, context);
  } else {
    g.visits[n] = std::move(g.lists[n].held_out);
    g.lists[n] = {};
  }
  if (known) return;
  g.partial.finished = n + 1;
  if (hooks.after_node) hooks.after_node(g.partial);
  if (context.stop_requested()) {
    throw Stopped(
        "stopped after node " + std::to_string(n) + g.of_tree + "; continue with --resume",
        static_cast<ExitCode>(context.stop->load()));
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
  Model& model = g.partial.model;
  const double all_nodes = std::pow(2.0, g.config.tree.depth);
  int depth = 0;
  for (size_t n = 0; n < model.nodes.size() && n < g.lists.size(); ++n) {
    const Node& node = model.nodes[n];
    if (node.depth != depth) {
      depth = node.depth;
      finish_level(g, n, context);
    }
    const double grown = std::min(1.0, static_cast<double>(n) / (2 * all_nodes - 1));
    context.progress(g.progress_begin + g.progress_share * grown,
                     "training node " + std::to_string(n + 1) + g.of_tree + " at depth " +
                         std::to_string(depth));
    finish_node(g, n, hooks, context);
  }
}

void route_visits(const Growth& g, const Node& node, NodeSamples& list, NodeSamples children[2],
                  const Context& context) {
  const std::vector<WeakClassifier> weaks = pool_weaks(g.partial.model, node);
  const std::vector<uint32_t> visited = visited_samples(list);
  route_held_out(g, list,
                 cast_votes(g.pool, weaks, places_of(g.images, g.held_out, visited), context),
                 alphas_of(weaks), children);
}

StrongClassifier strong_classifier(std::span<const BoostRound> rounds, const FeaturePool& pool,
                                   double worst_error, size_t selected) {
  StrongClassifier strong;
  const double smallest = 1.0 / (2.0 * static_cast<double>(selected));
  for (const BoostRound& round : rounds) {
    if (!round.found) break;
    const double error = round.error();
    if (error >= worst_error) break;
    const double clamped = std::max(error, smallest);
    const double alpha = 0.5 * std::log((1 - clamped) / clamped);
    WeakClassifier weak;
    weak.feature = round.feature;
    weak.codes = pool.host[round.feature].codes;
    weak.bins = round.bins;
    weak.mask = round.mask;
    weak.alpha_q20 = static_cast<int32_t>(std::llround(alpha * (1 << kAlphaBits)));
    strong.weaks.push_back(weak);
    strong.errors.push_back(error);
    if (error < smallest) break;
  }
  return strong;
}

std::vector<uint32_t> draw_features(const std::vector<uint32_t>& from, size_t pool, size_t wanted,
                                    uint64_t seed, uint64_t id) {
  const size_t count = from.empty() ? pool : from.size();
  if (wanted >= count) return from;
  std::vector<std::pair<uint64_t, uint32_t>> keyed;
  for (size_t k = 0; k < count; ++k) {
    const uint32_t f = from.empty() ? static_cast<uint32_t>(k) : from[k];
    keyed.emplace_back(hash64(seed, id, f), f);
  }
  std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(wanted), keyed.end());
  std::vector<uint32_t> chosen;
  for (size_t k = 0; k < wanted; ++k) chosen.push_back(keyed[k].second);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

SamplePlaces places_of(const TrainingImages& images, const SampleSet& samples,
                       std::span<const uint32_t> index) {
  return {images.data.data(), samples.bases.data(), samples.size(), index};
}

void throw_foreign_checkpoint() {
  throw InputError(
      "the checkpoint belongs to other training data or settings; delete it and train anew");
}

void plant(Growth& g, const PartialModel* resume) {
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
