// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace larch::phantom {

/// A picture of real numbers, columns first. Invariant kept by its makers: values.size() ==
/// width * height. Beyond its edges it goes on as at the edges.
struct Plane {
  int width = 0, height = 0;
  std::vector<double> values{};

  double at(int x, int y) const;
};

/// A Gaussian of `sigma` pixels along both axes. Returns the sum of its squared weights: the
/// variance that it leaves of white noise.
double blur(Plane& plane, double sigma, int threads);

/// The median of 3 x 3 pixels around each.
Plane median_of_nine(const Plane& plane, int threads);

}  // namespace larch::phantom
