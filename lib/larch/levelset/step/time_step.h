// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/levelset/levelset_config.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {

/// Bounds of what moves the surface, over the whole image.
struct SpeedBounds {
  double data = 1;       ///< of |D|
  double advection = 0;  ///< of |A_x| / h_x + |A_y| / h_y + |A_z| / h_z
};

/// Returns a number with four digits, for messages.
std::string number(double value);

/// Returns the unit of lengths inside: the smallest spacing of the axes with more than one voxel.
double smallest_spacing_mm(const Vec3d& spacing_mm, const Vec3i& size);

/// Returns the largest stable dt: 1 / ((1 - a) D sqrt(sum 1 / h^2) + a sum 2 / h^2 + w sum |A| /
/// h), and not above c / (6 ((1 - a) D + w sum |A| / h)), since a faster front outruns the clamped
/// field. `h` in units of the smallest spacing; an axis of one voxel does not count. Infinite where
/// nothing moves.
double largest_stable_step(const LevelsetConfig& config, const SpeedBounds& bounds,
                           const Vec3d& spacing_mm, const Vec3i& size);

/// Returns the numbers of a step. dt is config.time_step, or 0.9 of the largest stable one; 1 where
/// that is infinite. Throws UsageError for a dt above the largest stable one, and for one with
/// which the data speed itself would drown in the dead zone (below kDeadZone / (0.05 (1 - a)),
/// where a < 1).
Step make_step(const LevelsetConfig& config, const SpeedBounds& bounds, const Vec3d& spacing_mm,
               const Vec3i& size);

/// Returns the slowest front, in voxels of the smallest spacing per unit of time, that gets on
/// along an axis of spacing `h` in the same unit. In a step of `time` a voxel at c beside one at -c
/// falls by 2 c / h times the speed: it is set back to c unless that is more than (1 - kSnap) c,
/// and a change of a front within the dead zone is none. Fronts of a few times this speed get on
/// more slowly than they should.
double slowest_front(double time, double h);

}  // namespace larch::levelset
