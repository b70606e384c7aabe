// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace larch::phantom {

/// Goes from `before` to `inside` over about a voxel across the surface (partial volume).
inline double blend(double before, double inside, double distance_mm, double edge_mm) {
  const double share = std::clamp(0.5 - distance_mm / edge_mm, 0.0, 1.0);
  return before + share * (inside - before);
}

}  // namespace larch::phantom
