// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/learning/calibration.h"

using namespace larch::learning;

TEST_CASE("scores of a logistic distribution give its slope and its middle") {
  // At each score s the share of right results is 1 / (1 + exp(-(2 s - 1))).
  std::vector<double> right, wrong;
  for (int i = -20; i <= 20; ++i) {
    const double score = i / 10.0;
    const double share = Logistic{2, -1}(score);
    for (int k = 0; k < 1000; ++k) (k + 0.5 < 1000 * share ? right : wrong).push_back(score);
  }
  const Logistic found = fit_logistic(right, wrong);
  CHECK(found.slope == Approx(2).epsilon(0.01));
  CHECK(found.offset == Approx(-1).epsilon(0.01));
}

TEST_CASE("results that a threshold separates are as sure as so few can tell") {
  const std::vector<double> right{9, 10, 11, 12}, wrong{-3, -2, 0, 1};
  const Calibration c = calibrate(right, wrong);
  CHECK(is_valid(c));
  for (const double score : right) CHECK((c.probability(score) > c.least));
  CHECK(c.probability(10.5) == Approx(5.0 / 6).margin(0.03));
  CHECK(c.probability(-20) < c.least);
  CHECK(c.least == Approx(c.probability(9) / 10));
  CHECK(c.found == 0.75);
}

TEST_CASE("a slope that is bounded has the offset that fits it") {
  const std::vector<double> right{0.1, 0.2, 0.3}, wrong{-0.9, -1, -1.1};
  CHECK(fit_logistic(right, wrong).slope > 1);
  const Logistic bounded = fit_logistic(right, wrong, 1);
  CHECK(bounded.slope == Approx(1));
  CHECK(bounded(-0.4) == Approx(0.5).margin(0.01));  // the middle
}

TEST_CASE("scores that tell nothing or are missing give the same probability to all") {
  const std::vector<double> low{1, 2, 3}, high{11, 12, 13}, none;
  CHECK(fit_logistic(low, high)(0) == Approx(0.5));  // the wrong ones are higher
  CHECK(fit_logistic(low, high).slope == 0);
  const Calibration unknown = calibrate(low, none);
  CHECK(unknown.probability(1e6) == 0.5);
  CHECK(unknown.least == 0);
}
