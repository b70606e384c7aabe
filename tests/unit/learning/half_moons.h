// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/random_math.h"
#include "tests/unit/learning/table_source.h"

namespace larch::fixtures {

/// Two interleaved half-moons, blurred by noise that makes them overlap, and six columns that tell
/// nothing: sample i of the table of this seed.
inline Table half_moons(size_t samples, uint64_t seed) {
  constexpr double kPi = 3.14159265358979323846, kUnit = 10000, kSpread = 0.25;
  Table table(samples, 8);
  for (uint64_t i = 0; i < samples; ++i) {
    const auto uniform = [&](uint64_t stream) { return hash_unit(seed, stream, i); };
    const auto normal = [&](uint64_t stream) {  // a sum of twelve, less its mean
      double sum = -6;
      for (uint64_t k = 0; k < 12; ++k) sum += uniform(stream + k);
      return kSpread * sum;
    };
    const bool positive = uniform(0) < 0.5;
    const double t = kPi * uniform(1);
    const double x = positive ? 1 - std::cos(t) : std::cos(t);
    const double y = positive ? 0.5 - std::sin(t) : std::sin(t);
    table.positive[i] = positive ? 1 : 0;
    table.at(i, 0) = static_cast<int32_t>(std::floor(kUnit * (x + normal(100))));
    table.at(i, 1) = static_cast<int32_t>(std::floor(kUnit * (y + normal(200))));
    for (uint32_t c = 2; c < 8; ++c) {
      table.at(i, c) = static_cast<int32_t>(std::floor(kUnit * uniform(300 + c)));
    }
  }
  return table;
}

}  // namespace larch::fixtures
