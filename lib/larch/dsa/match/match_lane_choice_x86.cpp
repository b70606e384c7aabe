// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match_lanes.h"

namespace larch::dsa::cpu {

std::span<const MatchLanes> all_match_lanes() {
  static const MatchLanes sets[] = {kPortableMatchLanes, kAvx2MatchLanes};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
}

const MatchLanes& match_lanes() {
  static const MatchLanes best = all_match_lanes().back();
  return best;
}

}  // namespace larch::dsa::cpu
