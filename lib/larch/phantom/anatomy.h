// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/phantom/plane.h"

namespace larch::phantom {

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

/// The body of an X-ray picture in nepers, without most of its noise (the median of 3 x 3, then a
/// Gaussian of 1.5 pixels): noise that moved with the body would be found like a part of it.
SplineImage body_of_picture(const Plane& nepers, int margin, int threads);

}  // namespace larch::phantom
