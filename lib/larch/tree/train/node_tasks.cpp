// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/node_tasks.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/learning/votes.h"
#include "larch/tree/train/select.h"

namespace larch::tree {
namespace {

constexpr uint64_t kFeatureStream = 0x66656174;  // "feat"

int rounds_at(const TreeConfig& config, int depth) {
  if (config.rounds.empty()) throw UsageError("tree/rounds: needs at least one number");
  return config.rounds[std::min(static_cast<size_t>(depth), config.rounds.size() - 1)];
}

/// The columns that a node may choose from.
std::shared_ptr<const learning::PreparedColumns> node_columns(const Growth& g, uint64_t heap_index,
                                                              const Context& context) {
  const GrowTask& task = g.task;
  const auto wanted = static_cast<size_t>(task.config.node_features);
  const size_t all = task.columns.empty() ? task.training.source.columns() : task.columns.size();
  if (wanted == 0 || wanted >= all) return g.prepared;
  return prepare_columns(task,
                         draw_columns(task.columns, task.training.source.columns(), wanted,
                                      task.seed ^ kFeatureStream, heap_index),
                         context);
}

}  // namespace

std::shared_ptr<const learning::PreparedColumns> prepare_columns(
    const GrowTask& task, const std::vector<uint32_t>& columns, const Context& context) {
  const learning::FeatureSource& source = task.training.source;
  if (columns.empty()) return learning::prepare_all(source, task.maps, context);
  std::vector<learning::CodeMap> maps;
  maps.reserve(columns.size());
  for (const uint32_t column : columns) maps.push_back(task.maps[column]);
  return source.prepare({columns, maps}, context);
}

NodeTask make_task(const Growth& g, size_t n, const Context& context) {
  const Node& node = g.partial.tree.nodes[n];
  const TreeConfig& config = g.task.config;
  const Samples& samples = g.task.training.samples;
  NodeTask task;
  task.node = n;
  task.selected =
      select_samples(samples, g.lists[n], config, g.task.seed, node.heap_index, context.threads);
  task.weight = initial_weights(samples, task.selected, g.lists[n], config.balance);
  task.positive.reserve(task.selected.size());
  for (const uint32_t i : task.selected) task.positive.push_back(samples.positive[i]);
  task.columns = node_columns(g, node.heap_index, context);
  task.rounds = rounds_at(config, node.depth);
  return task;
}

std::vector<learning::StrongClassifier> train_nodes(const Growth& g,
                                                    std::span<const NodeTask> tasks,
                                                    const Context& context) {
  std::vector<learning::BoostProblem> problems;
  for (const NodeTask& task : tasks) {
    learning::BoostProblem& problem = problems.emplace_back();
    problem.columns = task.columns.get();
    problem.samples = task.selected;
    problem.positive = task.positive;
    problem.weight = task.weight;
    problem.rounds = task.rounds;
    problem.kind = g.task.config.weak;
    problem.bins = g.task.bins;
  }
  const auto rounds = learning::boost(g.task.training.source, problems, context);
  std::vector<learning::StrongClassifier> strong;
  for (size_t k = 0; k < tasks.size(); ++k) {
    strong.push_back(learning::strong_classifier(rounds[k], g.task.config.worst_error,
                                                 tasks[k].selected.size()));
  }
  return strong;
}

size_t best_length(const GrowTask& task, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context) {
  const auto patience = static_cast<size_t>(task.validation.patience);
  if (patience == 0 || list.held_out.empty() || weaks.empty()) return weaks.size();
  const std::vector<uint32_t> index = visited_samples(list);
  const learning::Votes votes = learning::cast_votes(task.held_out.source, weaks, index, context);
  const Samples& samples = task.held_out.samples;
  double mass[2] = {0, 0};
  for (const HeldOutVisit& v : list.held_out) mass[samples.positive[v.sample]] += v.weight;
  std::vector<int32_t> h(index.size(), 0);
  size_t best = 0;
  double best_loss = 1;
  for (size_t t = 0; t < weaks.size() && t - std::min(t, best) <= patience; ++t) {
    double loss = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      h[k] += votes.at(k, t) ? weaks[t].alpha_q20 : -weaks[t].alpha_q20;
      const bool positive = samples.positive[index[k]] != 0;
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

}  // namespace larch::tree
