// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/plane.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"

namespace larch::phantom {
namespace {

std::vector<double> gaussian_taps(double sigma) {
  const int reach = static_cast<int>(std::ceil(4 * sigma));
  std::vector<double> taps;
  double sum = 0;
  for (int k = -reach; k <= reach; ++k) {
    taps.push_back(exp_of(-0.5 * k * k / (sigma * sigma)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

/// value_at(x, y) for every pixel.
template <class ValueAt>
Plane make_plane(int width, int height, int threads, const ValueAt& value_at) {
  Plane plane{width, height, {}};
  plane.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height));
  parallel_for(threads, height, 8, [&](int64_t begin, int64_t end) {
    double* to = plane.values.data() + begin * width;
    for (int y = static_cast<int>(begin); y < end; ++y) {
      for (int x = 0; x < width; ++x) *to++ = value_at(x, y);
    }
  });
  return plane;
}

}  // namespace

double Plane::at(int x, int y) const {
  return values[static_cast<size_t>(std::clamp(y, 0, height - 1)) * static_cast<size_t>(width) +
                static_cast<size_t>(std::clamp(x, 0, width - 1))];
}

double blur(Plane& plane, double sigma, int threads) {
  const std::vector<double> taps = gaussian_taps(sigma);
  const int reach = static_cast<int>(taps.size()) / 2;
  double squares = 0;
  for (const double tap : taps) squares += tap * tap;
  for (const bool down : {false, true}) {
    plane = make_plane(plane.width, plane.height, threads, [&](int x, int y) {
      double sum = 0;
      const double* tap = taps.data();
      for (int k = -reach; k <= reach; ++k) {
        sum += *tap++ * (down ? plane.at(x, y + k) : plane.at(x + k, y));
      }
      return sum;
    });
  }
  return squares * squares;
}

Plane median_of_nine(const Plane& plane, int threads) {
  return make_plane(plane.width, plane.height, threads, [&](int x, int y) {
    std::array<double, 9> around{};
    for (int k = 0; k < 9; ++k) {
      around[static_cast<size_t>(k)] = plane.at(x + k % 3 - 1, y + k / 3 - 1);
    }
    std::nth_element(around.begin(), around.begin() + 4, around.end());
    return around[4];
  });
}

}  // namespace larch::phantom
