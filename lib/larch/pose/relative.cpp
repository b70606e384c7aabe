// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/relative.h"

#include <algorithm>
#include <cmath>

namespace larch::pose {

RelativeGaussian fit_gaussian(std::span<const RelativePose> poses, const RelativeFloor& floor) {
  RelativeGaussian g;
  g.count = static_cast<int>(poses.size());
  if (poses.empty()) return g;
  const auto n = static_cast<double>(poses.size());
  for (const RelativePose& p : poses)
    for (size_t i = 0; i < 9; ++i) g.mean[i] += p[i] / n;
  const double shrink = n > 1 ? std::min(1.0, 9 / (n - 1)) : 1;
  for (size_t i = 0; i < 9; ++i) {
    for (size_t j = 0; j < 9; ++j) {
      double sum = 0;
      for (const RelativePose& p : poses) sum += (p[i] - g.mean[i]) * (p[j] - g.mean[j]);
      const double sample = n > 1 ? sum / (n - 1) : 0;
      g.covariance[9 * i + j] = i == j ? sample : (1 - shrink) * sample;
    }
    const double least = i < 3 ? floor.centre_mm : i < 6 ? floor.rotation : floor.log_scale;
    g.covariance[10 * i] += least * least;
  }
  return g;
}

CentreGaussian centre_gaussian(const RelativeGaussian& gaussian, double limit) {
  Mat3 covariance;
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) covariance.m[i][j] = gaussian.covariance[9 * i + j];
  CentreGaussian g;
  g.precision = inverse(covariance);
  constexpr double kLogOfTwoPi = 1.8378770664093453;
  g.log_density = -0.5 * (3 * kLogOfTwoPi + log_of(determinant(covariance)));
  // No eigenvalue is larger than the largest sum of absolute values of a row.
  double largest = 0;
  for (const auto& row : covariance.m) {
    largest = std::max(largest, std::abs(row[0]) + std::abs(row[1]) + std::abs(row[2]));
  }
  g.reach_mm = std::sqrt(limit * largest);
  return g;
}

}  // namespace larch::pose
