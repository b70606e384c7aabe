// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "larch/core/random_math.h"

// Functions whose last digit differs between mathematical libraries, made of operations that IEEE
// 754 rounds in one way only, so that a result is the same on every machine and device.
namespace larch {

namespace detail {
/// Factors of the series below; a product takes less time than a quotient.
template <size_t count>
struct SeriesFactors {
  double of[count];
};
template <size_t count, class FactorOf>
constexpr SeriesFactors<count> series_factors(FactorOf factor_of) {
  SeriesFactors<count> factors{};
  for (size_t n = 0; n < count; ++n) factors.of[n] = factor_of(static_cast<double>(n));
  return factors;
}
}  // namespace detail

/// Rounds |x| < 2^51 to the nearest whole number, halves to even, without a call.
LARCH_HD double nearest_whole(double x) {
  return x + 0x1.8p52 - 0x1.8p52;
}

/// Returns an integer that is ordered as the float, and back.
LARCH_HD uint32_t ordered_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
LARCH_HD float from_ordered_bits(uint32_t ordered) {
  return std::bit_cast<float>((ordered & 0x80000000U) != 0 ? ordered ^ 0x80000000U : ~ordered);
}

/// e^x to a relative 1e-15; 0 below -700, e^700 above 700.
LARCH_HD double exp_of(double x) {
  constexpr auto kFactors = detail::series_factors<15>([](double n) { return n > 0 ? 1 / n : 0; });
  if (x < -700) return 0;
  if (x > 700) x = 700;
  // ln 2 in two parts, the first with zeros at its end, so that k times it is exact.
  const double k = nearbyint(x * 1.4426950408889634);
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  double sum = 1;
  for (size_t n = 14; n > 0; --n) sum = 1 + r * sum * kFactors.of[n];
  return ldexp(sum, static_cast<int>(k));
}

/// ln x to 1e-15 of its value or of 1, whichever is larger; x is above 0 and finite.
LARCH_HD double log_of(double x) {
  constexpr auto kFactors = detail::series_factors<13>([](double n) { return 1 / (2 * n + 1); });
  int exponent = 0;
  double m = frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (size_t n = 13; n-- > 0;) sum = sum * square + kFactors.of[n];
  return 2 * t * sum + exponent * 0.69314718055994531;
}

/// sin(2 pi turns) to 1e-15.
LARCH_HD double sine_of_turns(double turns) {
  constexpr auto kFactors =
      detail::series_factors<12>([](double n) { return n > 0 ? 1 / (2 * n * (2 * n + 1)) : 0; });
  double t = turns - floor(turns + 0.5);
  if (t > 0.25) t = 0.5 - t;
  if (t < -0.25) t = -0.5 - t;
  const double x = 6.283185307179586 * t, square = x * x;
  double sum = 1;
  for (size_t n = 11; n > 0; --n) sum = 1 - square * sum * kFactors.of[n];
  return x * sum;
}
LARCH_HD double cosine_of_turns(double turns) {
  return sine_of_turns(turns + 0.25);
}

/// Returns the angle of the point (x, y), from -pi to pi, to 1e-15; 0 for the origin.
LARCH_HD double atan2_of(double y, double x) {
  constexpr auto kFactors = detail::series_factors<14>([](double n) { return 1 / (2 * n + 1); });
  const double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
  if (ax == 0 && ay == 0) return 0;
  // The angle is halved twice, after which the tangent is at most tan(pi / 16).
  double t = ay < ax ? ay / ax : ax / ay;
  t = t / (1 + sqrt(1 + t * t));
  t = t / (1 + sqrt(1 + t * t));
  const double square = -t * t;
  double sum = 0;
  for (size_t n = 14; n-- > 0;) sum = sum * square + kFactors.of[n];
  double angle = 4 * t * sum;
  if (ay >= ax) angle = 1.5707963267948966 - angle;
  if (x < 0) angle = 3.141592653589793 - angle;
  return y < 0 ? -angle : angle;
}

/// Returns the angle from 0 to pi with this cosine, which is clamped to [-1, 1].
LARCH_HD double acos_of(double cosine) {
  const double c = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
  return atan2_of(sqrt((1 - c) * (1 + c)), c);
}

/// Normal with mean 0 and standard deviation 1 (Box and Muller 1958).
LARCH_HD double draw_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double u = 1 - hash_unit(seed, stream, 2 * index);  // above 0
  return sqrt(-2 * log_of(u)) * sine_of_turns(hash_unit(seed, stream, 2 * index + 1));
}

/// Poisson with this mean: by inversion below 30; above, by the expansion of Cornish and Fisher,
/// which keeps mean and variance within 0.1 % of the mean and the skewness.
LARCH_HD double draw_poisson(double mean, uint64_t seed, uint64_t stream, uint64_t index) {
  if (mean <= 0) return 0;
  if (mean < 30) {
    const double u = hash_unit(seed, stream, 2 * index);
    double share = exp_of(-mean), sum = share;
    int count = 0;
    while (u >= sum && count < 200) {
      share *= mean / ++count;
      sum += share;
    }
    return count;
  }
  const double z = draw_normal(seed, stream, index), root = sqrt(mean);
  return nearbyint(mean + root * z + (z * z - 1) / 6 + z * (1 - z * z) / (72 * root));
}

}  // namespace larch
