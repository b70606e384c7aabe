// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/step/time_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "larch/core/error.h"
#include "larch/core/text.h"

namespace larch::levelset {
namespace {

/// 1 / h along each axis in units of the smallest spacing; 0 along an axis of one voxel.
Vec3d inverse_spacing(const Vec3d& spacing_mm, const Vec3i& size) {
  const double unit_mm = smallest_spacing_mm(spacing_mm, size);
  Vec3d per_h{};
  for (int axis = 0; axis < 3; ++axis) {
    per_h[axis] = size[axis] > 1 ? unit_mm / spacing_mm[axis] : 0;
  }
  return per_h;
}

}  // namespace

std::string number(double value) {
  return formatted("%.4g", value);
}

double smallest_spacing_mm(const Vec3d& spacing_mm, const Vec3i& size) {
  double smallest = std::numeric_limits<double>::infinity();
  for (int axis = 0; axis < 3; ++axis) {
    if (size[axis] > 1) smallest = std::min(smallest, spacing_mm[axis]);
  }
  return std::isfinite(smallest) ? smallest : std::min({spacing_mm.x, spacing_mm.y, spacing_mm.z});
}

double largest_stable_step(const LevelsetConfig& config, const SpeedBounds& bounds,
                           const Vec3d& spacing_mm, const Vec3i& size) {
  const Vec3d per_h = inverse_spacing(spacing_mm, size);
  const double per_hh = dot(per_h, per_h), a = config.curvature_weight;
  const double data = (1 - a) * bounds.data, drift = config.advection_weight * bounds.advection;
  const double fastest =
      std::max(data * std::sqrt(per_hh) + 2 * a * per_hh + drift, 6 * (data + drift) / kClamp);
  return fastest > 0 ? 1 / fastest : std::numeric_limits<double>::infinity();
}

Step make_step(const LevelsetConfig& config, const SpeedBounds& bounds, const Vec3d& spacing_mm,
               const Vec3i& size) {
  const double largest = largest_stable_step(config, bounds, spacing_mm, size);
  const double a = config.curvature_weight;
  double time = config.time_step;
  if (time <= 0) time = std::isfinite(largest) ? 0.9 * largest : 1;
  if (time > largest) {
    throw UsageError("time_step " + number(time) + ": the largest stable one is " +
                     number(largest) + "; take a smaller one, or 0 for the program's");
  }
  if (a < 1 && kDeadZone > 0.05 * time * (1 - a)) {
    throw UsageError("time_step " + number(time) + " with curvature_weight " + number(a) +
                     ": fronts slower than " + number(100 * kDeadZone / (time * (1 - a))) +
                     " % of the data's speed would stand still; take a time_step of at least " +
                     number(kDeadZone / (0.05 * (1 - a))) + ", or a smaller curvature_weight");
  }
  const Vec3d per_h = inverse_spacing(spacing_mm, size);
  Step step;
  step.time = static_cast<float>(time);
  step.propagation = static_cast<float>(1 - a);
  step.curvature = static_cast<float>(a);
  step.advection = static_cast<float>(config.advection_weight);
  step.per_h = per_h.cast<float>();
  step.per_2h = (per_h * 0.5).cast<float>();
  step.per_hh = Vec3d{per_h.x * per_h.x, per_h.y * per_h.y, per_h.z * per_h.z}.cast<float>();
  step.per_4hh =
      Vec3d{per_h.x * per_h.y / 4, per_h.x * per_h.z / 4, per_h.y * per_h.z / 4}.cast<float>();
  return step;
}

double slowest_front(double time, double h) {
  return std::max(kDeadZone, (1 - kSnap) * h / 2) / time;
}

}  // namespace larch::levelset
