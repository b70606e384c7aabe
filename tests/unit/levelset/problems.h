// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/speed/window.h"
#include "larch/levelset/step/time_step.h"

// Problems with known answers, and a plain solver to compare with.
namespace larch::test {

/// A grid of spacing 1 mm unless it says something else.
inline Grid levelset_grid(const Vec3i& size, const Vec3d& spacing_mm = {1, 1, 1}) {
  Grid grid;
  grid.size = size;
  grid.spacing_mm = spacing_mm;
  return grid;
}

/// A volume of a function of the position in mm from the first voxel's centre.
template <class T, class Function>
Volume<T> volume_of(const Grid& grid, const Function& function) {
  Volume<T> volume(grid);
  for (int64_t i = 0; i < volume.voxels(); ++i) {
    const Vec3d at = grid.voxel(i).template cast<double>();
    volume[i] = static_cast<T>(function(
        Vec3d{at.x * grid.spacing_mm.x, at.y * grid.spacing_mm.y, at.z * grid.spacing_mm.z}));
  }
  return volume;
}

/// D, held in [-1, 1], as it is stored.
template <class Function>
Volume<int16_t> speed_of(const Grid& grid, const Function& function) {
  return volume_of<int16_t>(grid, [&](const Vec3d& at) {
    return levelset::stored_speed(std::clamp<double>(function(at), -1, 1));
  });
}

/// Signed distance to a sphere (mm; spacings of 1 mm are voxels).
inline Volume<float> sphere(const Grid& grid, const Vec3d& centre_mm, double radius_mm) {
  return volume_of<float>(grid, [&](const Vec3d& at) { return norm(at - centre_mm) - radius_mm; });
}

inline Vec3d middle_mm(const Grid& grid) {
  return {(grid.size.x - 1) * grid.spacing_mm.x / 2, (grid.size.y - 1) * grid.spacing_mm.y / 2,
          (grid.size.z - 1) * grid.spacing_mm.z / 2};
}

/// Volume inside in voxels, with a part of the voxels at the surface.
inline double partial_volume(const Volume<float>& phi) {
  double sum = 0;
  for (const float value : phi) sum += std::clamp(0.5 - static_cast<double>(value), 0.0, 1.0);
  return sum;
}
inline int64_t voxels_inside(const Volume<float>& phi) {
  return std::count_if(phi.begin(), phi.end(), [](float value) { return value < 0; });
}
/// The radius of the ball with the volume inside of an isotropic field, in voxels.
inline double ball_radius(const Volume<float>& phi) {
  return std::cbrt(partial_volume(phi) * 3 / (4 * M_PI));
}

/// Where phi changes its sign between `from` and the end of the image along an axis, in mm from
/// `from`; negative: nowhere.
inline double crossing_mm(const Volume<float>& phi, Vec3i from, int axis) {
  const int32_t first = from[axis];
  for (; from[axis] + 1 < phi.size()[axis]; ++from[axis]) {
    Vec3i next = from;
    ++next[axis];
    const double a = phi(from), b = phi(next);
    if ((a < 0) != (b < 0)) {
      return (from[axis] - first + a / (a - b)) * phi.grid().spacing_mm[axis];
    }
  }
  return -1;
}

/// A job, with what came out of it.
struct Run {
  levelset::LevelsetConfig config{};
  levelset::EvolveJob job{};
  Grid grid{};
  Context context{};

  /// Adds a field; all have one grid.
  void add(const Volume<float>& phi, const Volume<int16_t>& speed) {
    grid = phi.grid();
    levelset::LevelsetField field;
    field.layout = levelset::make_brick_layout(grid.size);
    field.step = levelset::make_step(config, {}, grid.spacing_mm, grid.size);
    levelset::set_phi(field, phi, context);
    field.speed = levelset::by_brick(speed, context);
    job.fields.push_back(std::move(field));
  }
  void evolve(int64_t steps) {
    job.tracker = config.tracker;
    levelset::evolve(job, steps, context);
  }
  int64_t iterations() const { return job.progress.iterations; }
  levelset::Stop stop() const { return job.progress.stop; }
  Volume<float> phi(size_t f = 0) const {
    return levelset::phi_volume(job.fields[f], iterations(), grid, context);
  }
  /// The buffer that is not the result.
  Volume<float> other_buffer(size_t f = 0) const {
    return levelset::phi_volume(job.fields[f], iterations() + 1, grid, context);
  }
};

/// The trackers by number.
constexpr int kWays = 2;
inline void set_tracker(Run& run, int way) {
  run.config.tracker = way == 0 ? levelset::Tracker::kBuffers : levelset::Tracker::kBrick;
}

inline bool same_bits(const Volume<float>& a, const Volume<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y && std::signbit(x) == std::signbit(y); });
}

}  // namespace larch::test
