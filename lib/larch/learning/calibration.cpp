// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/calibration.h"

#include <algorithm>
#include <cmath>

#include "larch/core/portable_math.h"

namespace larch::learning {
namespace {

struct Score {
  double at;  ///< score, in standard deviations from the mean
  double target;
};

double standard_logistic(double x) {
  return x >= 0 ? 1 / (1 + exp_of(-x)) : exp_of(x) / (1 + exp_of(x));
}

/// Returns the negative logarithm of the likelihood.
double loss_of(const std::vector<Score>& scores, const Logistic& f) {
  double sum = 0;
  for (const Score& s : scores) {
    const double x = f.slope * s.at + f.offset;
    sum += log_of(1 + exp_of(-std::abs(x))) + (x >= 0 ? (1 - s.target) * x : -s.target * x);
  }
  return sum;
}

/// Takes a step of Newton's method, or a part of it that makes the loss less; false: none does.
/// `slope_too`: the slope changes as well as the offset.
bool improve(const std::vector<Score>& scores, bool slope_too, double& loss, Logistic& f) {
  double h11 = 1e-9, h22 = 1e-9, h21 = 0, g1 = 0, g2 = 0;
  for (const Score& s : scores) {
    const double p = standard_logistic(f.slope * s.at + f.offset);
    const double weight = p * (1 - p), off = p - s.target, at = slope_too ? s.at : 0;
    h11 += weight * at * at;
    h22 += weight;
    h21 += weight * at;
    g1 += off * at;
    g2 += off;
  }
  const double determinant = h11 * h22 - h21 * h21;
  const Logistic step{(h22 * g1 - h21 * g2) / determinant, (h11 * g2 - h21 * g1) / determinant};
  double share = 1;
  for (int halvings = 0; halvings < 20; ++halvings, share /= 2) {
    const Logistic next{f.slope - share * step.slope, f.offset - share * step.offset};
    const double after = loss_of(scores, next);
    if (!(after < loss)) continue;
    loss = after;
    f = next;
    return true;
  }
  return false;
}

}  // namespace

double Logistic::operator()(double score) const {
  return standard_logistic(slope * score + offset);
}

Logistic fit_logistic(std::span<const double> right, std::span<const double> wrong,
                      double most_slope) {
  const auto rights = static_cast<double>(right.size()), wrongs = static_cast<double>(wrong.size());
  std::vector<Score> scores;
  for (const double s : right) scores.push_back({s, (rights + 1) / (rights + 2)});
  for (const double s : wrong) scores.push_back({s, 1 / (wrongs + 2)});
  double mean = 0, square = 0;
  for (const Score& s : scores) mean += s.at / (rights + wrongs);
  for (const Score& s : scores) square += (s.at - mean) * (s.at - mean) / (rights + wrongs);
  const double deviation = square > 0 ? std::sqrt(square) : 1;
  for (Score& s : scores) s.at = (s.at - mean) / deviation;
  Logistic f{0, log_of((rights + 1) / (wrongs + 1))};
  const auto descend = [&](bool slope_too) {
    double loss = loss_of(scores, f);
    for (int step = 0; step < 100 && improve(scores, slope_too, loss, f); ++step) {
    }
  };
  descend(true);
  const double allowed = std::clamp(f.slope, 0.0, most_slope * deviation);
  if (allowed != f.slope) {
    f.slope = allowed;
    descend(false);
  }
  return {f.slope / deviation, f.offset - f.slope * mean / deviation};
}

Calibration calibrate(std::span<const double> right, std::span<const double> wrong,
                      double most_slope) {
  if (right.empty() || wrong.empty()) return {};
  Calibration out;
  out.probability = fit_logistic(right, wrong, most_slope);
  std::vector<double> sorted;
  for (const double score : right) sorted.push_back(out.probability(score));
  std::sort(sorted.begin(), sorted.end());
  out.found = std::min(0.75, sorted[sorted.size() / 20]);
  out.least = std::min(0.25, sorted.front() / 10);
  return out;
}

bool is_valid(const Calibration& calibration) {
  const auto& [probability, found, least] = calibration;
  return std::isfinite(probability.slope) && std::isfinite(probability.offset) &&
         probability.slope >= 0 && least >= 0 && least <= found && found <= 1;
}

}  // namespace larch::learning
