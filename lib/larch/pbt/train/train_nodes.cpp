// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/learning/votes.h"
#include "larch/pbt/train/grow.h"
#include "larch/pbt/train/lowest_hash.h"

namespace larch::pbt {
namespace {

constexpr uint64_t kFeatureStream = 0x66656174;  // "feat"

int rounds_at(const TreeConfig& config, int depth) {
  if (config.rounds.empty()) throw UsageError("tree/rounds: needs at least one number");
  return config.rounds[std::min(static_cast<size_t>(depth), config.rounds.size() - 1)];
}

/// The features that a node may choose from; empty: all.
std::vector<uint32_t> node_features(const Growth& g, uint64_t heap_index) {
  const auto wanted = static_cast<size_t>(g.config.tree.node_features);
  if (wanted == 0) return g.features;
  return draw_features(g.features, g.haar.size(), wanted, g.seed ^ kFeatureStream, heap_index);
}

}  // namespace

std::vector<uint32_t> visited_samples(const NodeSamples& list) {
  std::vector<uint32_t> index;
  index.reserve(list.held_out.size());
  for (const HeldOutVisit& visit : list.held_out) index.push_back(visit.sample);
  return index;
}

NodeTask make_task(const Growth& g, size_t n, const Context& context) {
  const Node& node = g.partial.model.nodes[n];
  const TreeConfig& config = g.config.tree;
  NodeTask task;
  task.node = n;
  task.selected =
      select_samples(g.samples, g.lists[n], config, g.seed, node.heap_index, context.threads);
  task.weight = initial_weights(g.samples, task.selected, g.lists[n], config.balance);
  task.positive.reserve(task.selected.size());
  for (const uint32_t i : task.selected) task.positive.push_back(g.samples.positive[i]);
  task.features = node_features(g, node.heap_index);
  task.rounds = rounds_at(config, node.depth);
  return task;
}

std::vector<StrongClassifier> train_nodes(const Growth& g, std::span<const NodeTask> tasks,
                                          const Context& context) {
  std::vector<learning::BoostProblem> problems;
  for (const NodeTask& task : tasks) {
    learning::BoostProblem& problem = problems.emplace_back();
    problem.places = places_of(g.images, g.samples, task.selected);
    problem.features = task.features;
    problem.positive = task.positive;
    problem.weight = task.weight;
    problem.rounds = task.rounds;
    problem.kind = g.config.tree.weak;
  }
  const auto rounds = learning::boost(g.pool, problems, context);
  std::vector<StrongClassifier> strong;
  for (size_t k = 0; k < tasks.size(); ++k) {
    strong.push_back(
        strong_classifier(rounds[k], g.pool, g.config.tree.worst_error, tasks[k].selected.size()));
  }
  return strong;
}

size_t best_length(const Growth& g, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context) {
  const auto patience = static_cast<size_t>(g.config.validation.patience);
  if (patience == 0 || list.held_out.empty() || weaks.empty()) return weaks.size();
  const std::vector<uint32_t> index = visited_samples(list);
  const learning::Votes votes =
      learning::cast_votes(g.pool, weaks, places_of(g.images, g.held_out, index), context);
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

int32_t alpha_q20(double error) {
  const double alpha = 0.5 * std::log((1 - error) / error) * (1 << kAlphaBits);
  return static_cast<int32_t>(std::llround(std::min<double>(alpha, kMaxAlphaQ20)));
}

StrongClassifier strong_classifier(std::span<const learning::BoostRound> rounds,
                                   const learning::FeaturePool& pool, double worst_error,
                                   size_t selected) {
  StrongClassifier strong;
  const double smallest = 1.0 / (2.0 * static_cast<double>(selected));
  for (const learning::BoostRound& round : rounds) {
    if (!round.found) break;
    const double error = round.error();
    if (error >= worst_error) break;
    WeakClassifier weak;
    weak.feature = round.feature;
    weak.codes = pool.host[round.feature].codes;
    weak.bins = round.bins;
    weak.mask = round.mask;
    weak.alpha_q20 = alpha_q20(std::max(error, smallest));
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
  std::vector<uint32_t> features = from;
  if (from.empty()) {
    features.resize(pool);
    std::iota(features.begin(), features.end(), 0u);
  }
  return lowest_hashes(features, wanted, 1, [&](uint32_t f) { return hash64(seed, id, f); });
}

}  // namespace larch::pbt
