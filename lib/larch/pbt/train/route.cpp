// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/pbt/train/grow.h"

namespace larch::pbt {
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

void route_training(const Growth& g, const NodeSamples& list, std::span<const int32_t> scores,
                    NodeSamples children[2], int threads) {
  const TreeConfig& config = g.config.tree;
  const auto band = static_cast<int64_t>(std::llround(config.routing_band * kOneQ30));
  const uint32_t* logistic = g.partial.model.logistic.data();
  const auto route = [&](size_t k, NodeSamples& left, NodeSamples& right) {
    const uint32_t p = tree::logistic_q30(logistic, scores[k]);
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
      const uint64_t to_right = tree::mass_times_q30(mass, p);
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
  parallel_for(threads, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) route_part(static_cast<size_t>(part));
  });
  for (const auto& part : parts) {
    for (size_t side = 0; side < 2; ++side) append(children[side], part[side]);
  }
}

void route_held_out(const Growth& g, NodeSamples& list, std::span<const int32_t> scores,
                    NodeSamples children[2]) {
  const Model& model = g.partial.model;
  const Thresholds thresholds = tree::make_thresholds(model.e1, model.e2, false);
  for (size_t k = 0; k < list.held_out.size(); ++k) {
    HeldOutVisit& visit = list.held_out[k];
    visit.h = scores[k];
    const Split s = split_weight(visit.weight, visit.h, thresholds, model.logistic.data());
    if (s.descend_left > 0) children[0].held_out.push_back({visit.sample, s.descend_left, 0});
    if (s.descend_right > 0) children[1].held_out.push_back({visit.sample, s.descend_right, 0});
  }
}

}  // namespace larch::pbt
