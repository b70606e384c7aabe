// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/levelset/step/step_math.h"

// The data speed D of a voxel, from its intensity or a given speed. It is made in doubles and
// rounded once, in one order of operations, so that both devices store the same.
namespace larch::levelset {

/// Neither NaN nor infinite.
LARCH_HD bool is_finite(float value) {
  constexpr float kLargest = 3.40282347e+38F;
  return fabsf(value) <= kLargest;
}

/// Intensities of a structure: D = 1 - |I - middle| / half the width, at least -1.
struct Window {
  double lower = 0, upper = 0;
  bool is_automatic = false;  ///< at least one end is from the seeds

  LARCH_HD double middle() const { return (lower + upper) / 2; }
  LARCH_HD double half_width() const { return (upper - lower) / 2; }
};

/// D of a finite intensity.
LARCH_HD double window_speed(const Window& window, float intensity) {
  const double speed =
      1 - fabs(static_cast<double>(intensity) - window.middle()) / window.half_width();
  return speed < -1 ? -1.0 : speed;
}

/// The integer nearest to a number below 2^31, half away from zero as lround has it, without a call
/// or a branch. The number before 0.5 is added: 0.5 itself would carry the number before 0.5 on to
/// 1, and halves get to the next integer with either.
LARCH_HD int32_t nearest_integer(double value) {
  constexpr double kBeforeHalf = 0.49999999999999994;
  return static_cast<int32_t>(value + copysign(kBeforeHalf, value));
}

/// A speed as it is stored: 1 is 2^14, rounded half away from zero, never kFrozen. -1 for what is
/// not a number.
LARCH_HD int16_t stored_speed(double speed) {
  const double scaled = (speed == speed ? speed : -1.0) * kSpeedOne;
  const double within = scaled < -32767.0 ? -32767.0 : 32767.0 < scaled ? 32767.0 : scaled;
  return static_cast<int16_t>(nearest_integer(within));
}

/// Holds what D of one label is made of, but for the numbers of a voxel.
struct SpeedRule {
  Window window{};         ///< or
  bool is_given = false;   ///< a speed image, divided by given_scale
  double given_scale = 1;  ///< not 0
};

/// D of a voxel as it is stored; -1 where `value` is not finite. `value`: the given speed where
/// kGiven, which is rule.is_given, otherwise the intensity.
template <bool kGiven>
LARCH_HD int16_t stored_data_speed(const SpeedRule& rule, float value) {
  const double speed =
      kGiven ? static_cast<double>(value) / rule.given_scale : window_speed(rule.window, value);
  return stored_speed(is_finite(value) ? speed : -1.0);
}

}  // namespace larch::levelset
