// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/strong_classifier.h"

#include <algorithm>
#include <cmath>

namespace larch::learning {

int32_t alpha_q20(double error) {
  const double alpha = 0.5 * std::log((1 - error) / error) * (1 << kAlphaBits);
  return static_cast<int32_t>(std::llround(std::min<double>(alpha, kMaximumAlphaQ20)));
}

StrongClassifier strong_classifier(std::span<const BoostRound> rounds, double worst_error,
                                   size_t selected) {
  StrongClassifier strong;
  const double smallest = 1.0 / (2.0 * static_cast<double>(selected));
  for (const BoostRound& round : rounds) {
    if (!round.found) break;
    const double error = round.error();
    if (error >= worst_error) break;
    strong.weaks.push_back(
        {round.feature, round.codes, round.bins, round.mask, alpha_q20(std::max(error, smallest))});
    strong.errors.push_back(error);
    if (error < smallest) break;
  }
  return strong;
}

}  // namespace larch::learning
