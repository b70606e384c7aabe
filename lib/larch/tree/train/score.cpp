// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "larch/learning/feature_source.h"
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
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return posterior[a] < posterior[b]; });
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

/// Returns who visits the nodes of tree number `which`, with the node numbers of the ensemble. The
/// nodes of a level are asked together.
std::vector<std::vector<HeldOutVisit>> visits_of_tree(const Ensemble& trees, size_t which,
                                                      const learning::FeatureSource& source,
                                                      size_t count, const Context& context) {
  std::vector<NodeSamples> lists(trees.nodes.size());
  std::vector<std::vector<HeldOutVisit>> visits(trees.nodes.size());
  for (uint32_t i = 0; i < count; ++i)
    lists[trees.roots[which]].held_out.push_back({i, kOneQ30, 0});
  const size_t last = trees.end_of_tree(which);
  for (size_t first = trees.roots[which], end = first; first < last; first = end) {
    std::vector<learning::ScoreRequest> requests;
    for (; end < last && trees.nodes[end].depth == trees.nodes[first].depth; ++end) {
      requests.push_back({weaks_of(trees, trees.nodes[end]), visited_samples(lists[end])});
    }
    const auto h = learning::strong_scores(source, requests, context);
    for (size_t n = first; n < end; ++n) {
      const Node& node = trees.nodes[n];
      NodeSamples list = std::move(lists[n]);
      if (!node.is_leaf()) {
        std::array<NodeSamples, 2> children;
        route_held_out(trees, list, h[n - first], children);
        lists[static_cast<size_t>(node.left)] = std::move(children[0]);
        lists[static_cast<size_t>(node.right)] = std::move(children[1]);
      }
      visits[n] = std::move(list.held_out);
    }
  }
  return visits;
}

}  // namespace

std::vector<std::vector<double>> posteriors_by_depth(const Ensemble& trees,
                                                     const learning::FeatureSource& source,
                                                     size_t count, const Context& context) {
  std::vector<std::vector<double>> mean(static_cast<size_t>(trees.depth()) + 1,
                                        std::vector<double>(count, 0));
  for (size_t t = 0; t < trees.trees(); ++t) {
    auto visits = visits_of_tree(trees, t, source, count, context);
    Ensemble cut = trees;  // with the nodes of a depth as leaves
    for (size_t d = mean.size(); d-- > 0;) {
      for (size_t n = 0; n < visits.size(); ++n) {
        Node& node = cut.nodes[n];
        if (static_cast<size_t>(node.depth) > d) visits[n].clear();
        if (static_cast<size_t>(node.depth) >= d) node.left = node.right = -1;
      }
      const std::vector<double> posterior =
          frontier_posteriors(cut, std::vector<NodeSamples>(visits.size()), visits, count);
      for (size_t i = 0; i < count; ++i) mean[d][i] += posterior[i];
    }
  }
  for (auto& of_depth : mean) {
    for (double& p : of_depth) p /= static_cast<double>(trees.trees());
  }
  return mean;
}

namespace {

/// A node is turned into a leaf when the held-out log-loss rises by no more than this.
constexpr double kTolerance = 1e-6;
constexpr double kUnit = 0x1.0p-30;

/// The tree below `n` as one number per visiting sample: the posterior of the subtree.
class Pruner {
 public:
  Pruner(Ensemble& tree, const std::vector<std::vector<HeldOutVisit>>& visits,
         const Samples& held_out)
      : tree_(tree),
        visits_(visits),
        samples_(held_out),
        q_(node_probabilities(tree)),
        thresholds_(make_thresholds(tree.e1, tree.e2, false)) {
    total_mass_ = std::accumulate(held_out.mass.begin(), held_out.mass.end(), 0.0);
  }

  /// Returns how many nodes were turned into leaves.
  size_t run() {
    posterior_ = subtree(0, false);  // first the whole tree as it is
    subtree(0, true);
    return pruned_;
  }

 private:
  double q(int32_t node) const { return q_[static_cast<size_t>(node)] * kUnit; }

  /// Posterior of the subtree of `n` for each of its visits. With `prune`, its nodes are first
  /// tried as leaves, children before parents.
  std::vector<double> subtree(int32_t n, bool prune) {
    const auto& visits = visits_[static_cast<size_t>(n)];
    Node& node = tree_.nodes[static_cast<size_t>(n)];
    std::vector<double> result(visits.size(), q(n));
    if (node.is_leaf()) return result;
    const std::vector<double> left = subtree(node.left, prune), right = subtree(node.right, prune);
    size_t at_left = 0, at_right = 0;
    for (size_t k = 0; k < visits.size(); ++k) {
      const uint32_t weight = visits[k].weight;
      const Split s = split_weight(weight, visits[k].h, thresholds_, tree_.logistic.data());
      double sum = s.stop_left * q(node.left) + s.stop_right * q(node.right);
      if (s.descend_left > 0) sum += s.descend_left * left[at_left++];
      if (s.descend_right > 0) sum += s.descend_right * right[at_right++];
      result[k] = sum / weight;
    }
    if (prune && try_leaf(n, result)) std::fill(result.begin(), result.end(), q(n));
    return result;
  }

  /// Turns node `n` into a leaf if the loss allows it, and updates the posteriors.
  bool try_leaf(int32_t n, const std::vector<double>& subtree_posterior) {
    const auto& visits = visits_[static_cast<size_t>(n)];
    double change = 0;
    std::vector<double> updated(visits.size());
    for (size_t k = 0; k < visits.size(); ++k) {
      const uint32_t i = visits[k].sample;
      const bool positive = samples_.positive[i] != 0;
      updated[k] = posterior_[i] + visits[k].weight * kUnit * (q(n) - subtree_posterior[k]);
      change += static_cast<double>(samples_.mass[i]) *
                (log_loss_of(updated[k], positive) - log_loss_of(posterior_[i], positive));
    }
    if (change / total_mass_ > kTolerance) return false;
    for (size_t k = 0; k < visits.size(); ++k) posterior_[visits[k].sample] = updated[k];
    Node& node = tree_.nodes[static_cast<size_t>(n)];
    node.left = node.right = -1;
    node.n_weak = 0;
    node.reason = NodeReason::kPruned;
    ++pruned_;
    return true;
  }

  Ensemble& tree_;
  const std::vector<std::vector<HeldOutVisit>>& visits_;
  const Samples& samples_;
  const std::vector<uint32_t> q_;
  const Thresholds thresholds_;
  std::vector<double> posterior_;
  double total_mass_ = 0;
  size_t pruned_ = 0;
};

/// Drops nodes and weak classifiers that nothing refers to any more.
void compact(Ensemble& tree) {
  Ensemble out = tree;
  out.nodes.clear();
  out.weaks.clear();
  out.history.clear();
  std::vector<int32_t> order{0};
  for (size_t k = 0; k < order.size(); ++k) {
    Node node = tree.nodes[static_cast<size_t>(order[k])];
    const std::span<const WeakClassifier> weaks = weaks_of(tree, node);
    node.first_weak = static_cast<uint32_t>(out.weaks.size());
    out.weaks.insert(out.weaks.end(), weaks.begin(), weaks.end());
    for (NodeHistory entry : tree.history) {
      if (entry.node != order[k]) continue;
      entry.node = static_cast<int32_t>(k);
      out.history.push_back(entry);
    }
    for (int32_t* child : {&node.left, &node.right}) {
      if (*child < 0) continue;
      order.push_back(*child);
      *child = static_cast<int32_t>(order.size() - 1);
    }
    out.nodes.push_back(node);
  }
  tree = std::move(out);
}

}  // namespace

void prune(Ensemble& tree, const std::vector<std::vector<HeldOutVisit>>& visits,
           const Samples& held_out) {
  if (Pruner(tree, visits, held_out).run() > 0) compact(tree);
}

}  // namespace larch::tree
