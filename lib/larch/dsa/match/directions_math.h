// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/similarity/rank_math.h"

// Search by conjugate directions (Srinivasan and Rao 1985) at whole pixels and at tenths.
namespace larch::dsa {

/// A tenth of a pixel, the step of the lattice of fractions.
constexpr int32_t kTenth = kUnit / 10;
/// Fractions are searched up to half a pixel from the best whole-pixel displacement.
constexpr int kLatticeHalf = 5;

/// A displacement that was tried: steps from the middle of the window, or tenths of a pixel from
/// the best whole-pixel displacement.
struct Candidate {
  Vec3i at{};
  Score score{};
};

/// Returns a step along an axis.
LARCH_HD Vec3i along(int axis, int32_t step) {
  return {axis == 0 ? step : 0, axis == 1 ? step : 0, axis == 2 ? step : 0};
}
LARCH_HD int32_t component(const Vec3i& v, int axis) {
  return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

/// Conjugate directions: along x, then y (then z), to the neighbour that is strictly better, and on
/// in its direction until the next is not; + where both neighbours are equally better. Components
/// of displacements are at most `range`. With one round it asks for 2 axes + the steps moved
/// displacements, less one for each axis that ends at +-range; from 0 by one round:
/// US 2008/0037845, 0117. Repeated, it stops where no axis moves any more.
///
/// `evaluate(at)`: the score of a displacement. `current`: the start and its score, and then the
/// best.
template <class Evaluate>
LARCH_HD void conjugate_directions(Candidate& current, int axes, int range, int rounds,
                                   const Ranking& ranking, const Evaluate& evaluate) {
  int settled = 0;  // axes along which the current displacement is the best
  for (int turn = 0; turn < rounds * axes && settled < axes; ++turn) {
    const int axis = turn % axes;
    int32_t goes = 0;  // 0: both neighbours are tried; or the direction of the steps
    for (bool moves = true; moves;) {
      moves = false;
      const Vec3i from = current.at;
      int32_t towards = 0;
      for (int32_t sign = 1; sign >= -1; sign -= 2) {
        if (goes == -sign || component(from, axis) * sign >= range) continue;
        const Candidate next{from + along(axis, sign), evaluate(from + along(axis, sign))};
        if (!ranking.is_better(next.score, current.score)) continue;
        current = next;
        towards = sign;
      }
      if (towards == 0) continue;
      moves = true;
      goes = towards;
      settled = 1;
    }
    if (goes == 0) ++settled;
  }
}

/// Holds what was found for a block.
struct Found {
  Vec3i vector{};  ///< Q16 pixels
  Vec3i units{};   ///< the same in units of 1/kUnit pixel: where its score is taken
  Score at_start{};
  Candidate whole{};  ///< the best whole-pixel displacement, from the middle of the window
  Bend bend{};
  bool at_edge = false;
};

/// Tells whether a whole-pixel displacement lies on the edge of the window.
LARCH_HD bool is_at_edge(const Vec3i& whole, int range) {
  for (int axis = 0; axis < 3; ++axis) {
    const int32_t v = component(whole, axis);
    if (v >= range || v <= -range) return true;
  }
  return false;
}

/// Conjugate directions at tenths of a pixel, at most half a pixel from the best whole-pixel
/// displacement, which lies `origin` units away. Returns the score that is best.
template <class Evaluate>
LARCH_HD Score search_tenths(Found& found, const Vec3i& origin, int axes, int rounds,
                             const Ranking& ranking, const Evaluate& evaluate) {
  Candidate best{{}, found.whole.score};
  conjugate_directions(best, axes, kLatticeHalf, rounds, ranking,
                       [&](const Vec3i& at) { return evaluate(origin + at * kTenth); });
  found.units = origin + best.at * kTenth;
  found.vector = q16_of(found.units);
  return best.score;
}

/// Conjugate directions at whole pixels around `centre`, and then at tenths. `evaluate(units)`: the
/// score of a displacement. `best`: that at the end.
template <class Evaluate>
LARCH_HD Found search_directions(const Vec3i& centre, int axes, int range, int rounds,
                                 const Ranking& ranking, const Evaluate& evaluate, Score& best) {
  Found found;
  found.at_start = found.whole.score = evaluate(centre * kUnit);
  conjugate_directions(found.whole, axes, range, rounds, ranking,
                       [&](const Vec3i& at) { return evaluate((centre + at) * kUnit); });
  found.at_edge = is_at_edge(found.whole.at, range);
  best = search_tenths(found, (centre + found.whole.at) * kUnit, axes, rounds, ranking, evaluate);
  return found;
}

}  // namespace larch::dsa
