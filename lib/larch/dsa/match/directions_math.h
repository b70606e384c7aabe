// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/similarity/rank_math.h"

// Search by conjugate directions (Srinivasan and Rao 1985) and what judges its result, as questions
// and answers: whoever evaluates displacements may keep what is written here in registers.
namespace larch::dsa {

/// A displacement that was tried: steps from the middle of the window, or tenths of a pixel from
/// the best whole-pixel displacement.
struct Candidate {
  Vec3i at{};
  Score score{};
};

/// A step along an axis.
LARCH_HD Vec3i along(int axis, int32_t step) {
  return {axis == 0 ? step : 0, axis == 1 ? step : 0, axis == 2 ? step : 0};
}
LARCH_HD int32_t component(const Vec3i& v, int axis) {
  return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

/// The two ways along an axis.
enum Way { kForward = 0, kBack = 1 };
LARCH_HD int32_t sign_of(Way way) {
  return way == kForward ? 1 : -1;
}

/// Conjugate directions: along x, then y (then z), to the neighbour that is strictly better, and on
/// in its direction until the next is not; + where both neighbours are equally better. Components
/// of displacements are at most `range`. With one round it asks for 1 + 2 axes + the steps moved
/// displacements, the start among them, less one for each axis that ends at +-range; from 0 by one
/// round: US 2008/0037845, 0117. Repeated, it stops where no axis moves any more.
///
///   while (directions.goes_on()) directions.take(score forward, score back, ranking)
/// where asks(way) says which of the two scores are looked at, and at(way) of which displacement.
class Directions {
 public:
  /// From a displacement and its score.
  LARCH_HD Directions(const Candidate& start, int axes, int range, int rounds)
      : current_(start), axes_(axes), range_(range), turns_left_(rounds * axes) {}

  LARCH_HD bool goes_on() const { return turns_left_ > 0 && settled_ < axes_; }
  LARCH_HD bool asks(Way way) const {
    const int32_t sign = sign_of(way);
    return (goes_ == 0 || goes_ == sign) && component(current_.at, axis_) * sign < range_;
  }
  LARCH_HD Vec3i at(Way way) const { return current_.at + along(axis_, sign_of(way)); }

  LARCH_HD void take(const Score& forward, const Score& back, const Ranking& ranking) {
    Score best = current_.score;
    int32_t towards = 0;
    if (asks(kForward)) {
      ++evaluations_;
      if (ranking.is_better(forward, best)) {
        best = forward;
        towards = 1;
      }
    }
    if (asks(kBack)) {
      ++evaluations_;
      if (ranking.is_better(back, best)) {
        best = back;
        towards = -1;
      }
    }
    if (towards == 0) {
      if (goes_ == 0) ++settled_;
      end_turn();
      return;
    }
    settled_ = 1;
    goes_ = towards;
    current_ = {current_.at + along(axis_, towards), best};
    if (component(current_.at, axis_) == towards * range_) end_turn();
  }

  /// The best displacement so far.
  LARCH_HD const Candidate& current() const { return current_; }
  /// Scores that were looked at.
  LARCH_HD uint32_t evaluations() const { return evaluations_; }

 private:
  LARCH_HD void end_turn() {
    goes_ = 0;
    --turns_left_;
    axis_ = axis_ + 1 == axes_ ? 0 : axis_ + 1;
  }

  Candidate current_;
  int axes_, range_, turns_left_;
  int axis_ = 0;
  int settled_ = 0;   // axes along which the current displacement is the best
  int32_t goes_ = 0;  // 0: both neighbours are asked for; or the direction of the steps
  uint32_t evaluations_ = 0;
};

/// Directions where `evaluate(at, count, scores)` takes displacements. Returns evaluations;
/// `current`: the start and its score, and then the best.
template <class Evaluate>
LARCH_HD uint32_t conjugate_directions(Candidate& current, int axes, int range, int rounds,
                                       const Ranking& ranking, Evaluate&& evaluate) {
  Directions directions(current, axes, range, rounds);
  while (directions.goes_on()) {
    Vec3i at[2] = {};
    Score scores[2] = {};
    int count = 0;
    const bool asks_forward = directions.asks(kForward);
    if (asks_forward) at[count++] = directions.at(kForward);
    if (directions.asks(kBack)) at[count++] = directions.at(kBack);
    evaluate(at, count, scores);
    directions.take(scores[0], scores[asks_forward ? 1 : 0], ranking);
  }
  current = directions.current();
  return directions.evaluations();
}

}  // namespace larch::dsa
