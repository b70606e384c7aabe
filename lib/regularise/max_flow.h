// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch::regularise {

/// A minimum cut between two terminals, on a graph whose vertices have the same number of slots for
/// neighbours. Slots 2k and 2k + 1 are opposite: if b stands in slot s of a, a stands in slot s ^ 1
/// of b. A slot without neighbour holds the vertex itself and capacity 0.
struct CutProblem {
  int slots = 0;
  std::vector<int32_t> excess;      ///< > 0: capacity from the source, < 0: to the sink
  std::vector<uint32_t> neighbour;  ///< vertices * slots
  std::vector<int32_t> capacity;    ///< vertices * slots, at most 2^29
};

/// 1 for the vertices that the source can still reach when the flow is maximal: the smallest source
/// side of a minimum cut, which is unique. Consumes the problem.
std::vector<uint8_t> source_side_of_minimum_cut(CutProblem problem);

}  // namespace larch::regularise
