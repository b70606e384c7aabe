// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/volume.h"
#include "larch/levelset/speed/speed_math.h"

namespace larch::levelset {

/// The window of one label.
struct LabelWindow {
  int32_t label = 1;
  double lower = 0, upper = 0;
};

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
