// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/angiogram.h"

#include <cmath>

namespace larch {
namespace {

/// Whether the ray from a point to the right crosses the edges of a polygon an odd number of times.
bool is_inside(const std::vector<std::array<int, 2>>& polygon, double x, double y) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const double xi = polygon[i][0], yi = polygon[i][1], xj = polygon[j][0], yj = polygon[j][1];
    if ((yi > y) != (yj > y) && x < (xj - xi) * (y - yi) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

}  // namespace

bool contrast_raises(const Angiogram& about) {
  return about.intensity_sign != 0 ? about.intensity_sign < 0 : about.is_monochrome1;
}

std::optional<PixelRescaling> rescaling_of(const Angiogram& about) {
  const std::vector<float>& values = about.modality;
  if (values.size() < 2) return PixelRescaling{1, static_cast<double>(about.least_stored)};
  const double first = values.front();
  const double slope = (values.back() - first) / static_cast<double>(values.size() - 1);
  if (slope == 0) return std::nullopt;
  constexpr double kOfStep = 1e-3, kOfValue = 1e-6;  // values are of single precision
  for (size_t i = 0; i < values.size(); ++i) {
    const double straight = first + static_cast<double>(i) * slope;
    const double tolerance = kOfStep * std::abs(slope) + kOfValue * std::abs(straight);
    if (std::abs(values[i] - straight) > tolerance) return std::nullopt;
  }
  return PixelRescaling{slope, first};
}

bool Shutter::shows(int x, int y) const {
  if (has_rectangle && (x < left || x > right || y < upper || y > lower)) return false;
  if (has_circle && std::hypot(x - centre_x, y - centre_y) > radius) return false;
  return polygon.empty() || is_inside(polygon, x, y);
}

}  // namespace larch
