// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "larch/dsa/match/search_math.h"

namespace larch::dsa::cpu {

/// The scores of fractions of a pixel that a search has asked for, each evaluated once: what
/// search_math.h wants of a Block beside its evaluation.
class ScoreLattice {
 public:
  void clear() {
    filled_ = 0;
    std::fill(std::begin(known_), std::end(known_), false);
  }
  /// Makes the points x0..x1, y0..y1 known. `score_at(units)`: the score of a displacement. Columns
  /// come one after the other, since they may share what is filtered along x.
  template <class ScoreAt>
  void fill(const Vec3i& origin, int x0, int y0, int x1, int y1, const ScoreAt& score_at) {
    for (int x = x0; x <= x1; ++x) {
      for (int y = y0; y <= y1; ++y) {
        const size_t place = place_of(x, y);
        if (known_[place]) continue;
        known_[place] = true;
        ++filled_;
        scores_[place] = score_at(origin + Vec3i{x, y, 0} * kTenth);
      }
    }
  }
  /// Of a point that is known.
  const Score& score(int x, int y) const { return scores_[place_of(x, y)]; }
  uint32_t filled() const { return filled_; }

 private:
  static size_t place_of(int x, int y) {
    const int place = (y + kLatticeReach) * kLatticeSide + x + kLatticeReach;
    return static_cast<size_t>(place);
  }

  Score scores_[kLatticeSide * kLatticeSide] = {};
  bool known_[kLatticeSide * kLatticeSide] = {};
  uint32_t filled_ = 0;
};

}  // namespace larch::dsa::cpu
