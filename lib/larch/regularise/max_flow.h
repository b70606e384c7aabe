// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/regularise/band.h"

namespace larch::regularise {

/// A graph whose vertices are voxels of a grid, each with edges to some of its neighbours and to
/// one of two terminals. A slot is a direction to a neighbour; slots 2k and 2k + 1 are opposite and
/// belong to direction k. An edge is kept once, at the vertex that it leaves along an even slot,
/// and neighbours are found by their voxels, so an edge takes 4 bytes.
struct CutGraph {
  VoxelSet set;                   ///< the vertices, numbered in the order of memory
  std::vector<int64_t> voxels;    ///< of each vertex
  std::vector<int64_t> steps;     ///< [slot] to the neighbour's voxel; at most 26
  std::vector<int32_t> costs;     ///< [direction] capacity both ways, unless `capacity` is given
  std::vector<int32_t> capacity;  ///< [vertex][direction], or empty; at most 2^29
  std::vector<uint32_t> present;  ///< [vertex] bit s: there is an edge in slot s
  std::vector<int32_t> excess;    ///< [vertex] > 0: capacity from the source, < 0: to the sink

  size_t directions() const { return costs.size(); }
  uint32_t vertices() const { return static_cast<uint32_t>(voxels.size()); }
  /// Returns the capacity each way of the edge between v and its neighbour w in slot `slot`.
  int32_t edge_capacity(uint32_t v, int slot, uint32_t w) const {
    const auto direction = static_cast<size_t>(slot) / 2;
    if (capacity.empty()) return costs[direction];
    return capacity[(slot % 2 == 0 ? v : w) * directions() + direction];
  }
  /// Returns the vertex in slot `slot` of v, which must be present.
  uint32_t neighbour(uint32_t v, int slot) const { return set.index(voxels[v] + steps[slot]); }
};

/// Minimum cuts of the connected components of a graph, by the algorithm of Boykov and Kolmogorov
/// (PAMI 26(9), 2004): two search trees grow from the terminals until they meet, and what an
/// augmentation cuts off is adopted again where it can be.
class MaxFlow {
 public:
  /// `graph` must outlive the object; its excess is used up.
  explicit MaxFlow(CutGraph& graph);

  /// Finds the maximum flow of one component (all vertices that are connected to each other). Not
  /// for several threads on one component; different components do not meet. Returns early, without
  /// a result, once `stop` (may be null) is not 0.
  void solve(std::span<const uint32_t> component, const std::atomic<int>* stop);

  /// Tells whether the source still reaches a vertex of a component that was solved: the smallest
  /// source side of a minimum cut, which is unique.
  bool on_source_side(uint32_t v) const;

  /// Returns bytes of the graph and the search for each vertex, at most.
  static int64_t bytes_per_vertex(int slots, bool own_capacities);

 private:
  template <bool kOwnCapacities>
  class Search;

  CutGraph& graph_;
  std::vector<int32_t> flow_;  ///< [vertex][direction] along the even slot
  std::vector<uint8_t> state_;
  std::vector<uint32_t> distance_, time_, next_active_;
};

}  // namespace larch::regularise
