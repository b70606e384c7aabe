// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch::phantom {

/// A picture of real numbers, columns first. Invariant kept by its makers: values.size() ==
/// width * height. Beyond its edges it goes on as at the edges.
struct Plane {
  int width = 0, height = 0;
  std::vector<double> values{};

  double at(int x, int y) const;
};

/// Returns a Gaussian of `sigma` pixels along both axes. Returns the sum of its squared weights:
/// the variance that it leaves of white noise.
double blur(Plane& plane, double sigma, int threads);

/// A smooth function of the plane: a cubic B-spline with a coefficient per pixel, which is known
/// exactly at every place. Pixel centres have whole coordinates.
struct SplineImage {
  int width = 0, height = 0;  ///< pixels
  int margin = 0;             ///< coefficients beyond each edge; further out that of the edge
  std::vector<double> coefficients{};

  double at(double x, double y) const;
};

/// Attenuation along the rays of an X-ray picture without contrast agent, in nepers: soft tissue
/// with texture from 6 to 100 pixels, a spine, ribs, trabeculae in them, the edge of a dome.
/// `contrast`: factor of all structure; 0: the same attenuation everywhere. Each `number` of a seed
/// is another patient; only (seed, number, place) count.
SplineImage make_anatomy(int width, int height, int margin, double contrast, uint64_t seed,
                         int number, int threads);

/// Returns the body of an X-ray picture in nepers, without most of its noise (the median of 3 x 3,
/// then a Gaussian of 1.5 pixels): noise that moved with the body would be found like a part of it.
SplineImage body_of_picture(const Plane& nepers, int margin, int threads);

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

/// Holds what a ray meets of the vessels: the longest chord of any piece, which is taken for all,
/// so that the joints of pieces do not count twice.
struct VesselHit {
  double chord = 0;  ///< pixels
  double along = 0;  ///< path from the root, pixels
};

/// Trees that enter at the edges of the picture and branch in two; a branch has 0.78 of the radius
/// of its stem (Murray: 2 x 0.78^3 = 0.95). `radius`: of the roots, in pixels.
VesselTree grow_vessels(int width, int height, int trees, double radius, uint64_t seed, int number);

VesselHit meet_vessels(const VesselTree& tree, double x, double y);

}  // namespace larch::phantom
