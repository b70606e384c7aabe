// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/sampling_math.h"

// The pixels that follow a node of the field while all other nodes stay, and the search of its
// vector: US 2008/0037845, 0104 to 0106. Fields are those of pictures between nodes that reach from
// edge to edge, so that no pixel lies beyond them.
namespace larch::dsa {

/// Pixels first to last along an axis.
struct Followers {
  int32_t first = 0, last = 0;
  LARCH_HD int32_t count() const { return last - first + 1; }
};
/// Those that follow node i: up to the nodes before and after it.
LARCH_HD Followers followers_of(const FieldAxis& axis, int32_t i) {
  return {i == 0 ? axis.starts[0] : axis.starts[i - 1] + 1,
          i + 1 == axis.count ? axis.starts[i] : axis.starts[i + 1] - 1};
}

/// Weight of node i of an axis.
LARCH_HD int32_t weight_of(const AxisWeights& weights, int32_t i) {
  return (weights.first == i ? weights.of_first : 0) +
         (weights.second == i ? weights.of_second : 0);
}

/// The field along a row of pixels without the node's own part: of the columns of nodes before, at
/// and after the node, Q16 pixels times `whole`.
struct NodeRow {
  int64_t x[3] = {}, y[3] = {};
  double inverse = 1;  ///< 1 / whole
  int32_t weight = 0;  ///< of the node
  int32_t whole = 1;
};
LARCH_HD NodeRow node_row(const FieldView& field, const Vec3i& node, int32_t y) {
  const AxisWeights weights = axis_weights(field.axes[1], field.border, y);
  const int32_t nodes[2] = {weights.first, weights.second};
  const int32_t of[2] = {weights.of_first, weights.of_second};
  NodeRow row;
  row.weight = weight_of(weights, node.y);
  row.whole = weights.whole;
  row.inverse = 1.0 / weights.whole;
  for (int column = 0; column < 3; ++column) {
    const int32_t i = node.x + column - 1;
    if (i < 0 || i >= field.axes[0].count) continue;
    for (int k = 0; k < 2; ++k) {
      if (of[k] == 0 || (i == node.x && nodes[k] == node.y)) continue;
      const Vec3i& v = field.vectors[static_cast<int64_t>(nodes[k]) * field.axes[0].count + i];
      row.x[column] += static_cast<int64_t>(of[k]) * v.x;
      row.y[column] += static_cast<int64_t>(of[k]) * v.y;
    }
  }
  return row;
}

/// Which of a NodeRow's columns a column of pixels lies between, and their weights.
struct NodeColumn {
  double inverse = 1;  ///< 1 / whole
  int32_t first = 1, second = 1;
  int32_t of_first = 1, of_second = 0;
  int32_t weight = 0;  ///< of the node
  int32_t whole = 1;
};
LARCH_HD NodeColumn node_column(const FieldView& field, const Vec3i& node, int32_t x) {
  const AxisWeights w = axis_weights(field.axes[0], field.border, x);
  return {1.0 / w.whole, w.first - node.x + 1, w.second - node.x + 1,
          w.of_first,    w.of_second,          weight_of(w, node.x),
          w.whole};
}

/// A pixel around a node: the field there but for the node's own part, times `whole`.
struct FollowingPixel {
  int64_t rest_x = 0, rest_y = 0;  ///< Q16 pixels times `whole`
  double inverse = 1;              ///< 1 / (whole 2^16)
  int32_t weight = 0, whole = 1;   ///< of the node
};
LARCH_HD FollowingPixel following_pixel(const NodeRow& row, const NodeColumn& column) {
  FollowingPixel pixel;
  pixel.rest_x = column.of_first * row.x[column.first] + column.of_second * row.x[column.second];
  pixel.rest_y = column.of_first * row.y[column.first] + column.of_second * row.y[column.second];
  pixel.inverse = column.inverse * row.inverse / (1 << kVectorBits);
  pixel.weight = column.weight * row.weight;
  pixel.whole = column.whole * row.whole;
  return pixel;
}

/// The mask below pixel (x, y) where the node's vector is `vector`, Q16.
LARCH_HD uint16_t mask_below(const MaskView& mask, const FollowingPixel& pixel, int32_t x,
                             int32_t y, const Vec3i& vector) {
  const int64_t dx = pixel.rest_x + static_cast<int64_t>(pixel.weight) * vector.x;
  const int64_t dy = pixel.rest_y + static_cast<int64_t>(pixel.weight) * vector.y;
  return mask_sample(mask, x * kUnit + units_of_sum(dx, pixel.whole, pixel.inverse),
                     y * kUnit + units_of_sum(dy, pixel.whole, pixel.inverse));
}

/// The plan of every node's search. All pixels are sampled anew for each vector, so that a whole
/// lattice of fractions would take too long.
inline SearchPlan plan_of_nodes(const DsaConfig& config, int range) {
  SearchPlan plan = plan_of(config, range);
  plan.search = Search::kCds;
  if (plan.subsearch != SubSearch::kCds) plan.subsearch = SubSearch::kFast;
  return plan;
}

/// The search of a node's vector; displacements add to that it starts with. `node` is a Block of
/// search_math.h without a window.
template <class Node>
LARCH_HD Found search_node(Node& node, const SearchPlan& plan, const Ranking& ranking) {
  Found found;
  const Vec3i start{};
  node.evaluate(&start, 1, &found.whole.score);
  found.at_start = found.whole.score;
  found.evaluations = 1 + conjugate_directions(found.whole, plan.axes, plan.range, plan.rounds,
                                               ranking, EvaluateSteps<Node>{node, {}, kUnit});
  found.at_edge = is_at_edge(plan, found.whole.at);
  search_fraction(node, plan, ranking, found);
  return found;
}

/// Notes what was found for a node that started with `start`; its best score and overflow are the
/// caller's to add.
LARCH_HD void note_found(const Found& found, const Vec3i& start, BlockMatch& match) {
  match.vector = match.found = start + found.vector;
  if (match.before.count == 0) match.before = found.at_start;
  match.evaluations += found.evaluations;
  if (found.at_edge) match.flags |= kBlockAtEdge | kBlockUnreliable;
}

}  // namespace larch::dsa
