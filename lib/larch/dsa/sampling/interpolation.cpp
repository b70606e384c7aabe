// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "larch/dsa/sampling/interpolation_math.h"

namespace larch::dsa {
namespace {

/// Q12 weights that sum to 4096: what rounding leaves goes to the middle.
Taps rounded_taps(double before, double after) {
  const auto q12 = [](double w) { return static_cast<int16_t>(std::floor(w * 4096 + 0.5)); };
  const int16_t a = q12(before), c = q12(after);
  return {{a, static_cast<int16_t>(4096 - a - c), c}};
}

template <class Weights>
TapTable table_of(const Weights& weights) {
  TapTable table;
  for (int i = 0; i <= kUnit; ++i) {
    const int steps = i - kUnit / 2;
    table.at[i] = weights(static_cast<double>(steps) / kUnit);
  }
  return table;
}

}  // namespace

TapTable gain_taps() {
  return table_of([](double f) {
    const double s = (2 - std::sqrt(1 - 3 * f * f)) / 3;
    return rounded_taps((s - f) / 2, (s + f) / 2);
  });
}

TapTable linear_taps() {
  return table_of([](double f) { return rounded_taps(f < 0 ? -f : 0, f > 0 ? f : 0); });
}

TapTable taps_of(SubPixel subpixel) {
  if (subpixel == SubPixel::kLinear) return linear_taps();
  return subpixel == SubPixel::kNone ? TapTable{} : gain_taps();
}

}  // namespace larch::dsa
