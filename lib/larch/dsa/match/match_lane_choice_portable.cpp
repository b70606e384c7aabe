// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match_lanes.h"

namespace larch::dsa::cpu {

std::span<const MatchLanes> all_match_lanes() {
  return {&kPortableMatchLanes, 1};
}

const MatchLanes& match_lanes() {
  static const MatchLanes best = all_match_lanes().back();
  return best;
}

}  // namespace larch::dsa::cpu
