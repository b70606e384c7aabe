// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "larch/core/random_math.h"

// Functions whose last digit differs between mathematical libraries, made of operations that IEEE
// 754 rounds in one way only, so that what is drawn with them is the same on every machine.
namespace larch::phantom {

namespace detail {
/// Factors of the series below; a product takes less time than a quotient.
template <size_t count, class FactorOf>
constexpr std::array<double, count> series_factors(FactorOf factor_of) {
  std::array<double, count> factors{};
  for (size_t n = 0; n < count; ++n) factors[n] = factor_of(static_cast<double>(n));
  return factors;
}
constexpr auto kExponential = series_factors<15>([](double n) { return n > 0 ? 1 / n : 0; });
constexpr auto kLogarithm = series_factors<13>([](double n) { return 1 / (2 * n + 1); });
constexpr auto kSine =
    series_factors<12>([](double n) { return n > 0 ? 1 / (2 * n * (2 * n + 1)) : 0; });
}  // namespace detail

/// e^x to a relative 1e-15; 0 below -700, e^700 above 700.
inline double exp_of(double x) {
  if (x < -700) return 0;
  if (x > 700) x = 700;
  // ln 2 in two parts, the first with zeros at its end, so that k times it is exact.
  const double k = std::nearbyint(x * 1.4426950408889634);
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  double sum = 1;
  for (size_t n = 14; n > 0; --n) sum = 1 + r * sum * detail::kExponential[n];
  return std::ldexp(sum, static_cast<int>(k));
}

/// ln x to 1e-15 of its value or of 1, whichever is larger; x is above 0 and finite.
inline double log_of(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (size_t n = 13; n-- > 0;) sum = sum * square + detail::kLogarithm[n];
  return 2 * t * sum + exponent * 0.69314718055994531;
}

/// sin(2 pi turns) to 1e-15.
inline double sine_of_turns(double turns) {
  double t = turns - std::floor(turns + 0.5);
  if (t > 0.25) t = 0.5 - t;
  if (t < -0.25) t = -0.5 - t;
  const double x = 6.283185307179586 * t, square = x * x;
  double sum = 1;
  for (size_t n = 11; n > 0; --n) sum = 1 - square * sum * detail::kSine[n];
  return x * sum;
}
inline double cosine_of_turns(double turns) {
  return sine_of_turns(turns + 0.25);
}

/// Normal with mean 0 and standard deviation 1 (Box and Muller 1958).
inline double draw_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double u = 1 - hash_unit(seed, stream, 2 * index);  // above 0
  return std::sqrt(-2 * log_of(u)) * sine_of_turns(hash_unit(seed, stream, 2 * index + 1));
}

/// Poisson with this mean: by inversion below 30; above, by the expansion of Cornish and Fisher,
/// which keeps mean and variance within 0.1 % of the mean and the skewness.
inline double draw_poisson(double mean, uint64_t seed, uint64_t stream, uint64_t index) {
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
  const double z = draw_normal(seed, stream, index), root = std::sqrt(mean);
  return std::nearbyint(mean + root * z + (z * z - 1) / 6 + z * (1 - z * z) / (72 * root));
}

}  // namespace larch::phantom
