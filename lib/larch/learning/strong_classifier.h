// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/learning/boost.h"

namespace larch::learning {

/// AdaBoost's rounds turned into weak classifiers with weights. Of a sample, H is the sum of their
/// alphas with the signs of their votes, and 1 / (1 + exp(-2 H)) its posterior (Friedman, Hastie,
/// Tibshirani 2000).
struct StrongClassifier {
  std::vector<WeakClassifier> weaks;  ///< `feature` is the column of the source
  std::vector<double> errors;         ///< weighted error of each round
};

/// The weight of a weak classifier with this error, alpha = ln((1 - error) / error) / 2, Q20, at
/// most kMaximumAlphaQ20, which models may hold.
int32_t alpha_q20(double error);

/// Truncates the rounds where one is no better than `worst_error`, or after a perfect one.
/// `selected`: samples that they were trained on; no error counts as less than half of one.
StrongClassifier strong_classifier(std::span<const BoostRound> rounds, double worst_error,
                                   size_t selected);

}  // namespace larch::learning
