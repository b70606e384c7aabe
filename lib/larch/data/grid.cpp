// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/data/grid.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/core/text.h"

namespace larch {
namespace {

std::string size_text(const Vec3i& s) {
  return formatted("%gx%gx%g", 1.0 * s.x, 1.0 * s.y, 1.0 * s.z);
}

}  // namespace

std::string describe(const Grid& grid) {
  return size_text(grid.size) + " voxels of " +
         formatted("%gx%gx%g mm", grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z);
}

std::string describe_difference(const Grid& a, const Grid& b, double tolerance) {
  if (a.size != b.size) return "size " + size_text(a.size) + " against " + size_text(b.size);
  double first = 0, worst = 0, worst_mm = 0;  // of a voxel: at the first corner, and at any
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3d at{corner & 1 ? a.size.x - 1.0 : 0, corner & 2 ? a.size.y - 1.0 : 0,
                   corner & 4 ? a.size.z - 1.0 : 0};
    const Vec3d world_mm = world_from_index(a, at), off = index_from_world(b, world_mm) - at;
    worst = std::max({worst, std::abs(off.x), std::abs(off.y), std::abs(off.z)});
    worst_mm = std::max(worst_mm, norm(world_mm - world_from_index(b, at)));
    if (corner == 0) first = worst;
  }
  if (worst <= tolerance) return {};
  const Vec3d shift = a.origin_mm - b.origin_mm, ds = a.spacing_mm - b.spacing_mm;
  if (first > tolerance) {
    return "origin differs by " + formatted("(%g, %g, %g) mm", shift.x, shift.y, shift.z) +
           formatted(", %.2g voxels", first);
  }
  const std::string far = formatted("the far corner by %g mm, %.2g voxels", worst_mm, worst);
  for (int axis = 0; axis < 3; ++axis) {
    if (std::abs(ds[axis]) <= 1e-6 * b.spacing_mm[axis]) continue;
    return "spacing differs by " + formatted("(%g, %g, %g) mm, ", ds.x, ds.y, ds.z) + far;
  }
  return "direction differs, " + far;
}

void require_on_grid(const std::string& a, const Grid& grid_of_a, const std::string& b,
                     const Grid& grid_of_b) {
  const std::string difference = describe_difference(grid_of_a, grid_of_b);
  if (difference.empty()) return;
  throw InputError(a + " is not on the grid of " + b + ": " + difference + "; resample it");
}

}  // namespace larch
