// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
  double middle = 0;    ///< the median in the seed
  int64_t voxels = 0;   ///< in the seed, those that are finite
  double noise = 0;     ///< standard deviation around the seed
  double contrast = 0;  ///< at the borders that the ends come from; 0: there are none
  /// Half way between the structure and what is darker around it, and what is brighter.
  std::optional<double> lower{}, upper{};
};
/// Returns what the borders of the structure tell. The image is smoothed by a Gaussian of one voxel
/// of the smallest spacing. A voxel up to kWindowReachMm from the seed lies on a border where its
/// intensity is half way (within a fifth) between those two voxels up and two down the gradient,
/// which differ by more than the noise. It is a border of the structure if one of the two is the
/// seed's median within a quarter of their difference. Borders with less than a quarter of the
/// typical difference (half of the sum of squares lies below it) are left out, because slow changes
/// of the intensity are no borders. The end of the window is the intensity half way that three
/// fifths of them lie below (`lower`) or above (`upper`): this is a little on the side of the
/// structure, since a window that is too narrow loses less than one that leaks. A side with less
/// than a fifth of the other's squared differences has no border. Only differences of intensities
/// count: what is added to an image is added to its window. `from_seed_mm`: signed distance to the
/// seed, negative inside.
SeedIntensities seed_intensities(const Volume<float>& image, const Volume<float>& from_seed_mm,
                                 int threads);
constexpr double kWindowReachMm = 30;

/// Ends the window half way from the seed's median to that of a place which is not the structure,
/// unless it ends before. A median that differs by less than twice the noise has no effect,
/// because a window so narrow holds little of the structure.
void leave_out(SeedIntensities& seed, const Volume<float>& image,
               const std::vector<int64_t>& voxels);

/// Returns the window from `lower` to `upper`; where one is missing, as far from the median in the
/// seed as the other; three times the noise (1 without noise) where both are.
Window automatic_window(const SeedIntensities& seed);

}  // namespace larch::levelset
