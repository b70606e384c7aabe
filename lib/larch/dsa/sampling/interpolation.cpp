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

}  // namespace

ExactTaps gain_weights(double f) {
  const double s = (2 - std::sqrt(1 - 3 * f * f)) / 3;
  return {{(s - f) / 2, 1 - s, (s + f) / 2}};
}

TapTable gain_taps() {
  TapTable table;
  for (int i = 0; i <= kUnit; ++i) {
    const int steps = i - kUnit / 2;
    table.at[i] = rounded_taps(gain_weights(static_cast<double>(steps) / kUnit));
  }
  return table;
}

}  // namespace larch::dsa
