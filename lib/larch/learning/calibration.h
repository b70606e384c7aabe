// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace larch::learning {

/// The probability 1 / (1 + exp(-(slope x + offset))) that a score x is of a right result.
struct Logistic {
  double slope = 0, offset = 0;
  double operator()(double score) const;
};

/// Fits the probability to scores of right and of wrong results, of which neither may be empty, as
/// Platt 1999 does (the Newton steps are those of Lin, Lin and Weng, Machine Learning 68, 2007):
/// targets stay away from 0 and 1 by what so few scores can tell, so that the slope is finite where
/// a threshold separates them. The slope is 0 to `most_slope`: log odds do not become surer than
/// they are by a slope of at most 1. The same on every machine.
Logistic fit_logistic(std::span<const double> right, std::span<const double> wrong,
                      double most_slope = 1e300);

/// The probability of a result by its score, and what the result is called.
struct Calibration {
  Logistic probability;
  double found = 0;  ///< it is uncertain where it is less probable
  double least = 0;  ///< it is not found where it is less probable
};
/// Fits the probability to held-out results of a training. Uncertain is what is less probable than
/// three in four, or than nineteen of twenty right results if these have less. Not found is what is
/// less probable than one in four and than a tenth of any right result. Without right or wrong
/// results nothing is known: all is found, with probability one half.
Calibration calibrate(std::span<const double> right, std::span<const double> wrong,
                      double most_slope = 1e300);

/// Tells whether a calibration is one that `calibrate` can give.
bool is_valid(const Calibration& calibration);

}  // namespace larch::learning
