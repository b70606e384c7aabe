// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/data/grid.h"

#include <algorithm>
#include <cstdio>

#include "larch/core/error.h"

namespace larch {
namespace {

std::string format(const char* pattern, double a, double b, double c) {
  char text[128];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

std::string size_text(const Vec3i& s) {
  return format("%gx%gx%g", s.x, s.y, s.z);
}

}  // namespace

std::string describe(const Grid& grid) {
  return size_text(grid.size) + " voxels of " +
         format("%gx%gx%g mm", grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z);
}

std::string describe_difference(const Grid& a, const Grid& b, double tolerance_mm) {
  if (a.size != b.size) return "size " + size_text(a.size) + " against " + size_text(b.size);
  const Vec3d shift = a.origin_mm - b.origin_mm;
  if (norm(shift) > tolerance_mm) {
    return "origin differs by " + format("(%g, %g, %g) mm", shift.x, shift.y, shift.z);
  }
  double worst_mm = 0;
  for (int corner = 1; corner < 8; ++corner) {
    const Vec3d at{corner & 1 ? a.size.x - 1.0 : 0, corner & 2 ? a.size.y - 1.0 : 0,
                   corner & 4 ? a.size.z - 1.0 : 0};
    worst_mm = std::max(worst_mm, norm(world_from_index(a, at) - world_from_index(b, at)));
  }
  if (worst_mm <= tolerance_mm) return {};
  const Vec3d ds = a.spacing_mm - b.spacing_mm;
  if (norm(ds) > 1e-6) {
    return format("spacing differs by (%g, %g, %g) mm", ds.x, ds.y, ds.z) +
           format(", the far corner by %g mm", worst_mm, 0, 0);
  }
  return "direction differs, the far corner by " + format("%g mm", worst_mm, 0, 0);
}

void require_on_grid(const std::string& a, const Grid& grid_of_a, const std::string& b,
                     const Grid& grid_of_b, double tolerance_mm) {
  const std::string difference = describe_difference(grid_of_a, grid_of_b, tolerance_mm);
  if (difference.empty()) return;
  throw InputError(a + " is not on the grid of " + b + ": " + difference + "; resample it");
}

}  // namespace larch
