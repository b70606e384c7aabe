// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "larch/data/volume.h"

namespace larch::levelset {

/// Mean intensities on the two sides of a surface.
struct RegionMeans {
  double inside = 0, outside = 0;
};

/// Means inside and outside of phi < 0. Outside, only voxels count that lie in a box of +-
/// `band_mm` around a voxel inside: further away an image holds much that tells nothing of the
/// structure. 0: all of them. Sums are of integers, so that they do not depend on the number of
/// threads. Voxels that are not a finite number and those with `is_pinned` (may be empty) do not
/// count. Where one side has no voxel, both means are the same.
RegionMeans region_means(const Volume<float>& image, const Volume<float>& phi, double band_mm,
                         const Volume<uint8_t>& is_pinned, int threads);

/// The region speed of Chan, Vese, IEEE Trans. Image Processing 10, 2001, in units of the squared
/// difference of the means, held in [-1, 1]: ((I - outside)^2 - (I - inside)^2) / (inside -
/// outside)^2, which is 1 at the mean inside and -1 at the mean outside; 0 where the means are the
/// same.
inline double region_speed(const RegionMeans& means, float intensity) {
  if (!std::isfinite(intensity)) return -1;
  const double apart = means.inside - means.outside;
  if (apart == 0) return 0;
  const double value = 2 * static_cast<double>(intensity) - means.inside - means.outside;
  return std::clamp(value / apart, -1.0, 1.0);
}

}  // namespace larch::levelset
