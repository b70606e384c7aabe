// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "larch/pbt/grow.h"
#include "larch/pbt/votes.h"

namespace larch::pbt {

void route_training(const Growth& g, const NodeSamples& list, const Votes& votes,
                    std::span<const int32_t> alphas, NodeSamples children[2]) {
  const TreeConfig& config = g.config.tree;
  const auto band = static_cast<int64_t>(std::llround(config.routing_band * kOneQ30));
  const uint32_t* logistic = g.partial.model.logistic.data();
  const auto give = [](NodeSamples& child, uint32_t index, uint64_t mass) {
    child.index.push_back(index);
    child.mass.push_back(mass);
  };
  for (size_t k = 0; k < list.index.size(); ++k) {
    const uint32_t p = logistic_q30(logistic, votes.strong(k, alphas));
    const int64_t above_half = static_cast<int64_t>(p) - kOneQ30 / 2;
    const uint64_t mass = list.mass[k];
    if (above_half > band) {
      give(children[1], list.index[k], mass);
    } else if (-above_half > band) {
      give(children[0], list.index[k], mass);
    } else if (config.routing == Routing::kCopy) {
      give(children[0], list.index[k], mass);
      give(children[1], list.index[k], mass);
    } else {
      const uint64_t right = mass_times_q30(mass, p);
      give(children[1], list.index[k], right);
      give(children[0], list.index[k], mass - right);
    }
  }
}

void route_held_out(const Growth& g, NodeSamples& list, const Votes& votes,
                    std::span<const int32_t> alphas, NodeSamples children[2]) {
  const Model& model = g.partial.model;
  const Thresholds thresholds = make_thresholds(model.e1, model.e2, false);
  for (size_t k = 0; k < list.held_out.size(); ++k) {
    HeldOutVisit& visit = list.held_out[k];
    visit.h = votes.strong(k, alphas);
    const Split s = split_weight(visit.weight, visit.h, thresholds, model.logistic.data());
    if (s.descend_left > 0) children[0].held_out.push_back({visit.sample, s.descend_left, 0});
    if (s.descend_right > 0) children[1].held_out.push_back({visit.sample, s.descend_right, 0});
  }
}

}  // namespace larch::pbt
