// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/initial/spheres.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/text.h"
#include "larch/levelset/step/time_step.h"

namespace larch::levelset {

Ball ball_of(const Sphere& sphere, const Grid& grid, const std::string& name) {
  if (!(sphere.radius > 0) || !std::isfinite(sphere.radius)) {
    throw UsageError(name + ": its radius must be above 0");
  }
  const Vec3d index = sphere.is_index ? sphere.centre : index_from_world(grid, sphere.centre);
  if (!grid.holds(index)) {
    const Vec3d& at = sphere.centre;
    const bool is_ras =
        !sphere.is_index && grid.holds(index_from_world(grid, {-at.x, -at.y, at.z}));
    throw UsageError(name + ": its centre lies at index " +
                     formatted("%.4g, %.4g, %.4g", index.x, index.y, index.z) +
                     ", outside of the image of " + describe(grid) +
                     (is_ras ? "; with the other signs of x and y it lies inside: is it RAS? "
                               "Positions are LPS mm"
                             : "; give positions in LPS mm, or as an index that starts at 0"));
  }
  const double unit_mm = sphere.is_index ? smallest_spacing_mm(grid.spacing_mm, grid.size) : 1;
  const Ball ball{index, sphere.radius * unit_mm};
  Vec3d off_mm{};  // its nearest voxel is inside, or none is
  for (int axis = 0; axis < 3; ++axis) {
    off_mm[axis] = (index[axis] - std::round(index[axis])) * grid.spacing_mm[axis];
  }
  if (static_cast<float>(norm(off_mm) - ball.radius_mm) < 0) return ball;
  throw UsageError(name + ": it is so small that no voxel's centre lies in it; take a radius of " +
                   "at least two voxels");
}

Volume<float> distance_to_balls(std::span<const Ball> balls, const Grid& grid, double most_mm,
                                int threads) {
  Volume<float> distance_mm = Volume<float>::unfilled(grid);
  const Vec3i size = grid.size;
  const Vec3d h = grid.spacing_mm;
  parallel_for_each(threads, int64_t{size.y} * size.z, 64, [&](int64_t row) {
    const int64_t slice = row / size.y;
    const auto y = static_cast<double>(row % size.y), z = static_cast<double>(slice);
    float* out = distance_mm.data() + row * size.x;
    std::fill_n(out, size.x, static_cast<float>(most_mm));
    for (const Ball& ball : balls) {
      const double dy = (y - ball.index.y) * h.y, dz = (z - ball.index.z) * h.z;
      const double beside = dy * dy + dz * dz;
      if (std::sqrt(beside) - ball.radius_mm >= most_mm) continue;
      for (int32_t x = 0; x < size.x; ++x) {
        const double dx = (x - ball.index.x) * h.x;
        const double mm = std::sqrt(beside + dx * dx) - ball.radius_mm;
        out[x] = std::min(out[x], static_cast<float>(std::max(mm, -most_mm)));
      }
    }
  });
  return distance_mm;
}

}  // namespace larch::levelset
