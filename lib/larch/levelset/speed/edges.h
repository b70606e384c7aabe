// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "larch/data/volume.h"

namespace larch::levelset {

/// Returns a Gaussian of standard deviation `sigma_mm` along each axis, cut off after three, in
/// doubles. The voxel at the border counts for those beyond; an axis of one voxel is left alone.
/// Voxels that are not finite are passed over, the weights of the others then sum to 1; where there
/// is no other the result is not finite.
Volume<float> smoothed(const Volume<float>& image, double sigma_mm, int threads);

/// Where an image has edges, as LevelsetField stores it.
struct Edges {
  double contrast = 0;  ///< k, per mm
  /// A = -grad g in units of 1 / unit_mm: from both sides it points to the edge. g = 1 / (1 +
  /// (|grad I| / k)^2) with central differences of the smoothed image: Caselles, Kimmel, Sapiro,
  /// IJCV 22, 1997; Perona, Malik, IEEE Trans. PAMI 12, 1990.
  std::array<Volume<int16_t>, 3> advection{};
  double largest_advection = 0;  ///< of |A_x| / h_x + ..., spacings in units of unit_mm
};

/// Returns a voxel that is not finite has no edge (A = 0) and makes none beside it: in differences
/// the voxel itself stands for such a neighbour, as it does for one beyond the border.
///
/// `contrast` per mm; 0: the median of |grad I| where that is above a hundredth of its largest
/// value. Throws InputError where that is asked of an image without gradient.
Edges find_edges(const Volume<float>& image, double sigma_mm, double contrast, double unit_mm,
                 int threads);

}  // namespace larch::levelset
