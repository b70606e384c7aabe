// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "larch/dsa/sampling/interpolation_math.h"

namespace larch::dsa {
namespace {

/// Q12 weights that sum to 4096: what rounding leaves goes to the middle.
Taps rounded_taps(const ExactTaps& exact) {
  const auto q12 = [](double w) { return static_cast<int16_t>(std::floor(w * 4096 + 0.5)); };
  const int16_t a = q12(exact.w[0]), c = q12(exact.w[2]);
  return {{a, static_cast<int16_t>(4096 - a - c), c}};
}

template <class Weights>
TapTable table_of(const Weights& weights) {
  TapTable table;
  for (int i = 0; i <= kUnit; ++i) {
    const int steps = i - kUnit / 2;
    table.at[i] = rounded_taps(weights(static_cast<double>(steps) / kUnit));
  }
  return table;
}

}  // namespace

ExactTaps gain_weights(double f) {
  const double s = (2 - std::sqrt(1 - 3 * f * f)) / 3;
  return {{(s - f) / 2, 1 - s, (s + f) / 2}};
}

TapTable gain_taps() {
  return table_of(gain_weights);
}

TapTable linear_taps() {
  return table_of([](double f) {
    return ExactTaps{{f < 0 ? -f : 0, 1 - std::fabs(f), f > 0 ? f : 0}};
  });
}

TapTable taps_of(SubPixel subpixel) {
  if (subpixel == SubPixel::kLinear) return linear_taps();
  return subpixel == SubPixel::kNone ? TapTable{} : gain_taps();
}

}  // namespace larch::dsa
