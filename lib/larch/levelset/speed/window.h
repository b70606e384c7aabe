// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "larch/data/volume.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {

/// Intensities of a structure: D = 1 - |I - middle| / half the width, at least -1.
struct Window {
  double lower = 0, upper = 0;
  bool is_automatic = false;  ///< at least one end is from the seeds

  double middle() const { return (lower + upper) / 2; }
  double half_width() const { return (upper - lower) / 2; }
};

/// The window of one label.
struct LabelWindow {
  int32_t label = 1;
  double lower = 0, upper = 0;
};

/// D of an intensity; -1 where it is not a finite number.
inline double window_speed(const Window& window, float intensity) {
  if (!std::isfinite(intensity)) return -1;
  return std::max(
      1 - std::abs(static_cast<double>(intensity) - window.middle()) / window.half_width(), -1.0);
}

/// A speed as it is stored: 1 is 2^14, rounded half away from zero, never kFrozen. -1 for what is
/// not a number.
inline int16_t stored_speed(double speed) {
  if (std::isnan(speed)) return -kSpeedOne;
  const double scaled = std::clamp(speed * kSpeedOne, -32767.0, 32767.0);
  // As std::lround does, without its call for each voxel.
  const auto towards_zero = static_cast<int32_t>(scaled);
  const double rest = scaled - towards_zero;
  return static_cast<int16_t>(towards_zero + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0));
}

/// Intensities in a seed and around it.
struct SeedIntensities {
  double mean = 0;            ///< in the seed
  int64_t voxels = 0;         ///< in the seed, those that are finite
  double threshold = 0;       ///< between it and what is around
  bool has_contrast = false;  ///< false: all voxels around have one intensity
};
/// `from_seed_mm`: signed distance to the seed, negative inside; voxels up to kWindowReachMm from
/// it are around it. The threshold is that of two_class_bin, N. Otsu's in noise, of the voxels
/// around that are above half the mean; or half the mean itself where the threshold lies within one
/// standard deviation of the mean, because it divides a single class then. Where the mean is not
/// above 0 (CT), half way between the smallest intensity around and the mean counts in place of
/// half the mean.
SeedIntensities seed_intensities(const Volume<float>& image, const Volume<float>& from_seed_mm);
constexpr double kWindowReachMm = 30;

/// The window around the mean whose one end is the threshold: lower = threshold, upper = 2 mean -
/// lower, or the other way round for a seed darker than the threshold. A window of mean +- k
/// standard deviations of the seed would be far too narrow.
Window automatic_window(const SeedIntensities& seed);

}  // namespace larch::levelset
