// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "larch/dsa/sampling/interpolation_math.h"

namespace larch::dsa {

TapTable gain_taps() {
  const auto q12 = [](double w) { return static_cast<int16_t>(std::floor(w * 4096 + 0.5)); };
  TapTable table;
  for (int i = 0; i <= kUnit; ++i) {
    const double f = (i - kUnit * 0.5) / kUnit;
    const double s = (2 - std::sqrt(1 - 3 * f * f)) / 3;
    const int16_t before = q12((s - f) / 2), after = q12((s + f) / 2);
    // What rounding leaves goes to the middle.
    table.at[i] = {{before, static_cast<int16_t>(4096 - before - after), after, 2048}};
  }
  return table;
}

}  // namespace larch::dsa
