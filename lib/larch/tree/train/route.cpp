// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/route.h"

#include <algorithm>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/learning/feature_source.h"

namespace larch::tree {
namespace {

/// Samples that one task routes.
constexpr size_t kChunk = size_t{1} << 15;

void append(NodeSamples& to, const NodeSamples& from) {
  to.index.insert(to.index.end(), from.index.begin(), from.index.end());
  to.mass.insert(to.mass.end(), from.mass.begin(), from.mass.end());
}

void give(NodeSamples& child, uint32_t index, uint64_t mass) {
  child.index.push_back(index);
  child.mass.push_back(mass);
}

}  // namespace

std::span<const WeakClassifier> weaks_of(const Ensemble& tree, const Node& node) {
  return std::span(tree.weaks).subspan(node.first_weak, node.n_weak);
}

void route_training(const Ensemble& tree, const TreeConfig& config, const NodeSamples& list,
                    std::span<const int32_t> scores, std::array<NodeSamples, 2>& children,
                    int threads) {
  const auto band = static_cast<int64_t>(std::llround(config.routing_band * kOneQ30));
  const uint32_t* logistic = tree.logistic.data();
  const auto route = [&](size_t k, NodeSamples& left, NodeSamples& right) {
    const uint32_t p = logistic_q30(logistic, scores[k]);
    const int64_t above_half = static_cast<int64_t>(p) - kOneQ30 / 2;
    const uint64_t mass = list.mass[k];
    if (above_half > band) {
      give(right, list.index[k], mass);
    } else if (-above_half > band) {
      give(left, list.index[k], mass);
    } else if (config.routing == Routing::kCopy) {
      give(left, list.index[k], mass);
      give(right, list.index[k], mass);
    } else {
      const uint64_t to_right = mass_times_q30(mass, p);
      give(right, list.index[k], to_right);
      give(left, list.index[k], mass - to_right);
    }
  };
  const size_t n = list.index.size();
  std::vector<std::array<NodeSamples, 2>> parts((n + kChunk - 1) / kChunk);
  const auto route_part = [&](size_t part) {
    for (size_t k = part * kChunk; k < std::min(n, (part + 1) * kChunk); ++k) {
      route(k, parts[part][0], parts[part][1]);
    }
  };
  parallel_for_each(threads, static_cast<int64_t>(parts.size()), 1,
                    [&](int64_t part) { route_part(static_cast<size_t>(part)); });
  for (const auto& part : parts) {
    for (size_t side = 0; side < 2; ++side) append(children[side], part[side]);
  }
}

void route_held_out(const Ensemble& tree, NodeSamples& list, std::span<const int32_t> scores,
                    std::array<NodeSamples, 2>& children) {
  const Thresholds thresholds = make_thresholds(tree.e1, tree.e2, false);
  for (size_t k = 0; k < list.held_out.size(); ++k) {
    HeldOutVisit& visit = list.held_out[k];
    visit.h = scores[k];
    const Split s = split_weight(visit.weight, visit.h, thresholds, tree.logistic.data());
    if (s.descend_left > 0) children[0].held_out.push_back({visit.sample, s.descend_left, 0});
    if (s.descend_right > 0) children[1].held_out.push_back({visit.sample, s.descend_right, 0});
  }
}

std::vector<std::vector<uint32_t>> arrivals(const Ensemble& tree,
                                            const learning::FeatureSource& source, size_t count,
                                            size_t first_node, const Context& context) {
  const Thresholds thresholds = make_thresholds(tree.e1, tree.e2, false);
  std::vector<std::vector<uint32_t>> at(tree.nodes.size());
  for (uint32_t i = 0; i < count; ++i) at[0].push_back(i);
  for (size_t n = 0; n < first_node; ++n) {
    const Node& node = tree.nodes[n];
    if (node.is_leaf() || at[n].empty()) continue;
    const std::vector<int32_t> h =
        learning::strong_scores(source, {{weaks_of(tree, node), at[n]}}, context)[0];
    for (size_t k = 0; k < at[n].size(); ++k) {
      const Split s = split_weight(kOneQ30, h[k], thresholds, tree.logistic.data());
      if (s.descend_left > 0) at[static_cast<size_t>(node.left)].push_back(at[n][k]);
      if (s.descend_right > 0) at[static_cast<size_t>(node.right)].push_back(at[n][k]);
    }
    at[n].clear();
  }
  return at;
}

}  // namespace larch::tree
