// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"

// Sampling between pixels by three taps per axis around the nearest pixel.
namespace larch::dsa {

/// a / b rounded down, b above 0.
template <class T>
LARCH_HD T floor_quotient(T a, T b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// Weights of the pixels at -1, 0 and 1, in Q12, whose sum is 4096, and the half that rounds.
struct Taps {
  int16_t w[4] = {0, 4096, 0, 2048};
};
/// By fraction, from -kUnit/2 to kUnit/2.
struct TapTable {
  Taps at[kUnit + 1];
};

/// A displacement as its nearest pixel and the fraction that is left, -kUnit/2 <= fraction <
/// kUnit/2.
struct Step {
  int32_t pixel = 0, fraction = 0;
};
LARCH_HD Step split_step(int32_t units) {
  const int32_t pixel = floor_quotient(units + kUnit / 2, kUnit);
  return {pixel, units - pixel * kUnit};
}

/// Returns a vector component (Q16) in units of 1/kUnit pixel, rounded, halves up.
LARCH_HD int32_t units_of(int32_t q16) {
  return static_cast<int32_t>((static_cast<int64_t>(q16) * kUnit + (1 << (kVectorBits - 1))) >>
                              kVectorBits);
}
LARCH_HD Vec3i units_of(const Vec3i& q16) {
  return {units_of(q16.x), units_of(q16.y), units_of(q16.z)};
}

/// Q16 pixels of a displacement in units of 1/kUnit pixel, rounded.
LARCH_HD int32_t q16_of(int32_t units) {
  return static_cast<int32_t>(
      floor_quotient<int64_t>((int64_t{units} << kVectorBits) + kUnit / 2, kUnit));
}
LARCH_HD Vec3i q16_of(const Vec3i& units) {
  return {q16_of(units.x), q16_of(units.y), q16_of(units.z)};
}

/// Returns one filter pass: three samples by three weights, rounded to a sample.
LARCH_HD uint16_t tap_sum(const Taps& taps, uint32_t before, uint32_t here, uint32_t after) {
  const uint32_t sum = static_cast<uint32_t>(taps.w[0]) * before +
                       static_cast<uint32_t>(taps.w[1]) * here +
                       static_cast<uint32_t>(taps.w[2]) * after;
  return static_cast<uint16_t>((sum + 2048) >> 12);
}

/// Weights whose squares sum to 1/2 at every fraction f of [-1/2, 1/2]: white noise keeps its
/// strength whatever the displacement, so that it attracts the search to none.
/// s = (2 - sqrt(1 - 3 f^2)) / 3, weights (s - f) / 2, 1 - s, (s + f) / 2; the mean of the taps'
/// places is f.
TapTable gain_taps();

}  // namespace larch::dsa
