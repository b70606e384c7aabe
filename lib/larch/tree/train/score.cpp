// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "larch/learning/votes.h"
#include "larch/tree/train/route.h"

namespace larch::tree {

double log_loss_of(double p, bool positive) {
  const double likelihood = positive ? p : 1 - p;
  return -std::log(std::max(likelihood, 1e-12));
}

HeldOutScore score(const std::vector<double>& posterior, const Samples& samples) {
  HeldOutScore s;
  double total = 0;
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto mass = static_cast<double>(samples.mass[i]);
    s.log_loss += mass * log_loss_of(posterior[i], samples.positive[i] != 0);
    total += mass;
  }
  if (total > 0) s.log_loss /= total;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return posterior[a] < posterior[b]; });
  // Mann-Whitney: positives above negatives, ties one half.
  double below = 0, wins = 0, mass_positive = 0;
  for (size_t k = 0; k < order.size();) {
    double tied[2] = {0, 0};
    const double value = posterior[order[k]];
    for (; k < order.size() && posterior[order[k]] == value; ++k) {
      tied[samples.positive[order[k]]] += static_cast<double>(samples.mass[order[k]]);
    }
    wins += tied[1] * (below + tied[0] / 2);
    below += tied[0];
    mass_positive += tied[1];
  }
  s.auc = mass_positive > 0 && below > 0 ? wins / (mass_positive * below) : 0.5;
  return s;
}

std::vector<double> frontier_posteriors(const Ensemble& tree, const std::vector<NodeSamples>& lists,
                                        const std::vector<std::vector<HeldOutVisit>>& visits,
                                        size_t count) {
  const std::vector<uint32_t> q = node_probabilities(tree);
  const Thresholds thresholds = make_thresholds(tree.e1, tree.e2, false);
  std::vector<uint64_t> q60(count, 0);
  for (size_t n = 0; n < lists.size(); ++n) {
    const Node& node = tree.nodes[n];
    for (const HeldOutVisit& v : lists[n].held_out) {  // waiting at the frontier
      q60[v.sample] += uint64_t{v.weight} * q[n];
    }
    for (const HeldOutVisit& v : visits[n]) {
      if (node.is_leaf()) {
        q60[v.sample] += uint64_t{v.weight} * q[n];
        continue;
      }
      const Split s = split_weight(v.weight, v.h, thresholds, tree.logistic.data());
      q60[v.sample] += uint64_t{s.stop_left} * q[static_cast<size_t>(node.left)] +
                       uint64_t{s.stop_right} * q[static_cast<size_t>(node.right)];
    }
  }
  std::vector<double> posterior;
  posterior.reserve(q60.size());
  for (const uint64_t value : q60) posterior.push_back(static_cast<double>(value) * 0x1.0p-60);
  return posterior;
}

namespace {

/// Tree number `which`, with the node numbers of the ensemble.
std::vector<double> tree_posteriors(const Ensemble& trees, size_t which,
                                    const learning::FeatureSource& source, size_t count,
                                    const Context& context) {
  std::vector<NodeSamples> lists(trees.nodes.size());
  std::vector<std::vector<HeldOutVisit>> visits(trees.nodes.size());
  for (uint32_t i = 0; i < count; ++i)
    lists[trees.roots[which]].held_out.push_back({i, kOneQ30, 0});
  for (size_t n = trees.roots[which]; n < trees.end_of_tree(which); ++n) {
    const Node& node = trees.nodes[n];
    NodeSamples list = std::move(lists[n]);
    lists[n] = {};
    if (!node.is_leaf()) {
      const auto h =
          learning::strong_scores(source, weaks_of(trees, node), visited_samples(list), context);
      std::array<NodeSamples, 2> children;
      route_held_out(trees, list, h, children);
      lists[static_cast<size_t>(node.left)] = std::move(children[0]);
      lists[static_cast<size_t>(node.right)] = std::move(children[1]);
    }
    visits[n] = std::move(list.held_out);
  }
  return frontier_posteriors(trees, lists, visits, count);
}

}  // namespace

Ensemble cut_at(const Ensemble& trees, int depth) {
  Ensemble cut = trees;
  for (Node& node : cut.nodes) {
    if (node.depth >= depth) node.left = node.right = -1;
  }
  return cut;
}

std::vector<double> posteriors(const Ensemble& trees, const learning::FeatureSource& source,
                               size_t count, const Context& context) {
  std::vector<double> mean(count, 0);
  for (size_t t = 0; t < trees.trees(); ++t) {
    const std::vector<double> posterior = tree_posteriors(trees, t, source, count, context);
    for (size_t i = 0; i < count; ++i) mean[i] += posterior[i];
  }
  for (double& p : mean) p /= static_cast<double>(trees.trees());
  return mean;
}

}  // namespace larch::tree
