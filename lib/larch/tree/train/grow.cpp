// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/grow.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/learning/boost.h"
#include "larch/learning/feature_matrix.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/train/route.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/train/score.h"

namespace larch::tree {
namespace {

/// Everything that growing a tree works on.
struct Growth {
  const GrowTask& task;
  PartialTree partial{};
  std::vector<NodeSamples> lists{};                             ///< of the nodes not yet finished
  std::vector<std::vector<HeldOutVisit>> visits{};              ///< of every finished node
  std::shared_ptr<const learning::PreparedColumns> prepared{};  ///< those that the tree may use
};

/// Holds what a node is trained on.
struct NodeTask {
  size_t node = 0;
  std::shared_ptr<const learning::PreparedColumns> columns;
  std::vector<uint32_t> selected;  ///< of the samples
  std::vector<uint8_t> positive;
  std::vector<double> weight;
  int rounds = 0;
};

constexpr uint64_t kFeatureStream = 0x66656174;  // "feat"

int rounds_at(const TreeConfig& config, int depth) {
  if (config.rounds.empty()) throw UsageError("tree/rounds: needs at least one number");
  return config.rounds[std::min(static_cast<size_t>(depth), config.rounds.size() - 1)];
}

/// Returns those of `columns` (empty: all of the task's source), prepared.
std::shared_ptr<const learning::PreparedColumns> prepare_columns(
    const GrowTask& task, const std::vector<uint32_t>& columns, const Context& context) {
  const learning::FeatureSource& source = task.training.source;
  if (columns.empty()) return learning::prepare_all(source, task.maps, context);
  std::vector<learning::CodeMap> maps;
  maps.reserve(columns.size());
  for (const uint32_t column : columns) maps.push_back(task.maps[column]);
  return source.prepare({columns, maps}, context);
}

/// Returns the columns that a node may choose from.
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

/// Trains the strong classifiers of nodes of one level, which do not depend on each other.
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

/// How many of the weak classifiers give the least exponential loss on the held-out samples of a
/// node, giving up after validation.patience rounds without improvement.
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

/// Why the node may not be split, by its depth and samples; kGrown if it may.
NodeReason stop_before(const Growth& g, const Node& node, const NodeSamples& list) {
  const TreeConfig& config = g.task.config;
  if (node.reason != NodeReason::kGrown) return node.reason;
  if (node.depth >= config.depth) return NodeReason::kMaximumDepth;
  if (node.mass_positive == 0 || node.mass_negative == 0) return NodeReason::kPure;
  const auto total =
      static_cast<double>(node.mass_positive) + static_cast<double>(node.mass_negative);
  const auto larger = static_cast<double>(std::max(node.mass_positive, node.mass_negative));
  if (larger / total >= config.purity) return NodeReason::kPure;
  if (list.index.size() < static_cast<size_t>(config.min_samples)) return NodeReason::kFewSamples;
  size_t positive = 0;
  for (const uint32_t i : list.index) positive += g.task.training.samples.positive[i];
  if (std::min(positive, list.index.size() - positive) <
      static_cast<size_t>(config.min_class_samples)) {
    return NodeReason::kFewOfOneClass;
  }
  return NodeReason::kGrown;
}

/// Appends the strong classifier of a node to the model.
void put_strong(Growth& g, const NodeTask& task, learning::StrongClassifier strong) {
  Ensemble& tree = g.partial.tree;
  const NodeSamples& list = g.lists[task.node];
  Node& node = tree.nodes[task.node];
  node.first_weak = static_cast<uint32_t>(tree.weaks.size());
  node.n_weak = static_cast<uint32_t>(strong.weaks.size());
  tree.weaks.insert(tree.weaks.end(), strong.weaks.begin(), strong.weaks.end());
  const auto positives =
      static_cast<uint32_t>(std::accumulate(task.positive.begin(), task.positive.end(), 0));
  tree.history.push_back({static_cast<int32_t>(task.node), static_cast<uint32_t>(list.index.size()),
                          positives, static_cast<uint32_t>(task.selected.size()) - positives,
                          strong.errors});
  if (node.n_weak == 0) node.reason = NodeReason::kNoWeakClassifier;
}

/// H of the nodes of a batch at their training and held-out samples.
struct BatchScores {
  std::vector<std::vector<int32_t>> training, held_out;
};

/// Gives node `n`, which is number `k` of the scores, its two children.
void split_node(Growth& g, size_t n, const BatchScores& scores, size_t k, int threads) {
  Ensemble& tree = g.partial.tree;
  NodeSamples list = std::move(g.lists[n]);
  std::array<NodeSamples, 2> children;
  route_training(tree, g.task.config, list, scores.training[k], children, threads);
  route_held_out(tree, list, scores.held_out[k], children);
  g.visits[n] = std::move(list.held_out);
  const bool separated = !children[0].index.empty() && !children[1].index.empty();
  for (size_t side = 0; side < 2; ++side) {
    Node child;
    child.depth = tree.nodes[n].depth + 1;
    child.heap_index = 2 * tree.nodes[n].heap_index + side;
    sum_masses(g.task.training.samples, children[side], &child.mass_positive, &child.mass_negative);
    if (children[side].index.empty()) {
      child.reason = NodeReason::kEmpty;
    } else if (!separated) {
      child.reason = NodeReason::kNothingSeparated;
    }
    const auto id = static_cast<int32_t>(g.lists.size());
    (side == 0 ? tree.nodes[n].left : tree.nodes[n].right) = id;
    g.lists.push_back(std::move(children[side]));
    g.visits.emplace_back();
    // On resume the node is already there, possibly trained.
    if (static_cast<size_t>(id) == tree.nodes.size()) tree.nodes.push_back(child);
  }
}

/// Finishes node `n`, which is trained if it is to be split: splits it or leaves it a leaf.
void finish_node(Growth& g, size_t n, const BatchScores& scores, size_t k, const Context& context) {
  if (g.partial.tree.nodes[n].reason == NodeReason::kGrown) {
    split_node(g, n, scores, k, context.threads);
  } else {
    g.visits[n] = std::move(g.lists[n].held_out);
    g.lists[n] = {};
  }
  if (n < g.partial.finished) return;  // a resumed run knew it
  g.partial.finished = n + 1;
  if (g.task.after_node) g.task.after_node(g.partial);
  context.throw_if_stopped("stopped after node " + std::to_string(n) + g.task.name +
                           "; continue with --resume");
}

void report_node(const Growth& g, size_t n, const Context& context) {
  const double all_nodes = std::pow(2.0, g.task.config.depth);
  const double grown = std::min(1.0, static_cast<double>(n) / (2 * all_nodes - 1));
  context.progress(g.task.progress_begin + g.task.progress_share * grown,
                   "training node " + std::to_string(n + 1) + g.task.name + " at depth " +
                       std::to_string(g.partial.tree.nodes[n].depth));
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
  const TreeConfig& config = g.task.config;
  const size_t most_selected = static_cast<size_t>(config.selected_positives) +
                               static_cast<size_t>(config.selected_negatives);
  Batch batch;
  size_t samples = 0;
  for (batch.end = first; batch.end < end; ++batch.end) {
    const size_t n = batch.end;
    const Node& node = g.partial.tree.nodes[n];
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

/// Asks for the scores of all nodes from `first` on that are split, those of tasks by their strong
/// classifiers, at once: images that come in portions are loaded once.
BatchScores score_nodes(const Growth& g, size_t first, const Batch& batch,
                        std::span<const learning::StrongClassifier> strong,
                        const Context& context) {
  std::vector<learning::ScoreRequest> training, held_out;
  for (size_t n = first, k = 0; n < batch.end; ++n) {
    const bool is_task = k < batch.tasks.size() && batch.tasks[k].node == n;
    const std::span<const WeakClassifier> weaks =
        is_task ? std::span(strong[k++].weaks) : weaks_of(g.partial.tree, g.partial.tree.nodes[n]);
    training.push_back({weaks, g.lists[n].index});
    held_out.push_back({weaks, visited_samples(g.lists[n])});
  }
  return {learning::strong_scores(g.task.training.source, training, context),
          learning::strong_scores(g.task.held_out.source, held_out, context)};
}

/// Finishes the nodes [first, end) of one level: as many at a time as are trained together.
void finish_nodes(Growth& g, size_t first, size_t end, const Context& context) {
  const size_t at_once =
      g.task.samples_at_once > 0 ? g.task.samples_at_once : learning::samples_at_once(*g.prepared);
  while (first < end) {
    report_node(g, first, context);
    const Batch batch = make_batch(g, first, end, at_once, context);
    std::vector<learning::StrongClassifier> strong = train_nodes(g, batch.tasks, context);
    for (size_t k = 0; k < strong.size(); ++k) {
      const NodeSamples& list = g.lists[batch.tasks[k].node];
      strong[k].weaks.resize(best_length(g.task, list, strong[k].weaks, context));
    }
    const BatchScores scores = score_nodes(g, first, batch, strong, context);
    for (size_t n = first, k = 0; n < batch.end; ++n) {
      if (n > first) report_node(g, n, context);
      g.partial.tree.nodes[n].reason = batch.reasons[n - first];
      if (k < batch.tasks.size() && batch.tasks[k].node == n) {
        put_strong(g, batch.tasks[k], std::move(strong[k]));
        ++k;
      }
      finish_node(g, n, scores, n - first, context);
    }
    first = batch.end;
  }
}

/// Exchanges the negatives of a node for the mined ones, which share their mass exactly, so that
/// the frequencies at the nodes remain those of the samples.
void replace_negatives(NodeSamples& list, const Samples& samples, const MinedSamples& mined) {
  NodeSamples kept;
  kept.held_out = std::move(list.held_out);
  uint64_t mass = 0;
  for (size_t k = 0; k < list.index.size(); ++k) {
    if (samples.positive[list.index[k]]) {
      kept.index.push_back(list.index[k]);
      kept.mass.push_back(list.mass[k]);
    } else {
      mass += list.mass[k];
    }
  }
  for (uint32_t k = 0; k < mined.count; ++k) {
    const uint64_t share = mass / (mined.count - k);
    kept.index.push_back(mined.first + k);
    kept.mass.push_back(share);
    mass -= share;
  }
  list = std::move(kept);
}

/// Replaces the negatives of the nodes of the level that begins at `first_node`.
void mine_negatives(Growth& g, size_t first_node) {
  Frontier frontier{g.partial.tree, first_node, {}};
  for (size_t n = first_node; n < g.lists.size(); ++n) {
    frontier.open.push_back(g.lists[n].index.empty() ? 0 : 1);
  }
  const std::vector<MinedSamples> mined = g.task.mine(frontier);
  for (size_t k = 0; k < mined.size(); ++k) {
    if (mined[k].count == 0) continue;
    replace_negatives(g.lists[first_node + k], g.task.training.samples, mined[k]);
  }
}

/// What a level ends with: mining for the next one, and the held-out scores.
void finish_level(Growth& g, size_t first_node, const Context& context) {
  const int depth = g.partial.tree.nodes[first_node].depth;
  const Samples& held_out = g.task.held_out.samples;
  if (held_out.size() > 0) {
    const HeldOutScore s =
        score(frontier_posteriors(g.partial.tree, g.lists, g.visits, held_out.size()), held_out);
    context.info(formatted("depth %d: held-out log-loss %.5f, AUC %.5f", depth, s.log_loss, s.auc));
  }
  if (g.task.mine && depth > 0 && depth < g.task.config.depth) mine_negatives(g, first_node);
}

/// The root with all samples that count.
void make_root(Growth& g) {
  const Samples& samples = g.task.training.samples;
  NodeSamples root;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    const uint32_t times = g.task.times.empty() ? 1 : g.task.times[i];
    if (times == 0) continue;
    root.index.push_back(i);
    root.mass.push_back(times * samples.mass[i]);
  }
  for (uint32_t i = 0; i < g.task.held_out.samples.size(); ++i) {
    root.held_out.push_back({i, kOneQ30, 0});
  }
  Node node;
  sum_masses(samples, root, &node.mass_positive, &node.mass_negative);
  if (g.task.resume != nullptr) {
    g.partial = *g.task.resume;
    const Node& old = g.partial.tree.nodes.at(0);
    const bool same =
        old.mass_positive == node.mass_positive && old.mass_negative == node.mass_negative;
    if (!same) throw_foreign_checkpoint();
  } else {
    g.partial.tree.nodes.push_back(node);
  }
  g.lists.push_back(std::move(root));
  g.visits.emplace_back();
}

}  // namespace

Ensemble start_tree(const TreeConfig& config, const Samples& samples) {
  if (samples.size() == 0) throw UsageError("a tree is grown from at least one sample");
  Ensemble start;
  start.e1 = config.e1;
  start.e2 = config.e2;
  start.prior = config.prior;
  start.prior_value = config.prior_value;
  start.smoothing = config.smoothing;
  start.logistic = make_logistic_table();
  start.mean_mass =
      std::accumulate(samples.mass.begin(), samples.mass.end(), uint64_t{0}) / samples.size();
  return start;
}

GrownTree grow(const Ensemble& start, const GrowTask& task, const Context& context) {
  Growth g{task};
  g.partial.tree = start;
  g.prepared = prepare_columns(task, task.columns, context);
  make_root(g);
  const std::vector<Node>& nodes = g.partial.tree.nodes;
  for (size_t first = 0; first < g.lists.size();) {
    size_t end = first;
    while (end < g.lists.size() && nodes[end].depth == nodes[first].depth) ++end;
    if (first > 0) finish_level(g, first, context);
    finish_nodes(g, first, end, context);
    first = end;
  }
  return {std::move(g.partial.tree), std::move(g.visits)};
}

void throw_foreign_checkpoint() {
  throw InputError(
      "the checkpoint belongs to other training data or settings; delete it and train anew");
}

}  // namespace larch::tree
