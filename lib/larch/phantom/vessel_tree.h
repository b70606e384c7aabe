// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch::phantom {

/// A straight piece of a vessel in the picture, in pixels.
struct VesselPiece {
  double x = 0, y = 0, to_x = 0, to_y = 0;
  double radius = 0, to_radius = 0;
  double along = 0;  ///< path from the root to (x, y)
};

/// Vessels, with the pieces near each cell of the picture.
struct VesselTree {
  std::vector<VesselPiece> pieces{};
  int columns = 0, rows = 0;                  ///< of cells
  std::vector<std::vector<int32_t>> cells{};  ///< pieces that reach into a cell
};

/// What a ray meets of the vessels: the longest chord of any piece, which is taken for all, so that
/// the joints of pieces do not count twice.
struct VesselHit {
  double chord = 0;  ///< pixels
  double along = 0;  ///< path from the root, pixels
};

/// Trees that enter at the edges of the picture and branch in two; a branch has 0.78 of the radius
/// of its stem (Murray: 2 x 0.78^3 = 0.95). `radius`: of the roots, in pixels.
VesselTree grow_vessels(int width, int height, int trees, double radius, uint64_t seed, int number);

VesselHit meet_vessels(const VesselTree& tree, double x, double y);

}  // namespace larch::phantom
