// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"

// One explicit step of
//
//     d phi / dt = -(1 - a) D |grad phi| + a kappa |grad phi| - w A . grad phi,   phi < 0 inside,
//
// of Roberts, Packer, Sousa, Mitchell, "A work-efficient GPU algorithm for level set segmentation",
// High Performance Graphics 2010, with the data speed D, the curvature kappa, and the attraction A
// of geodesic active contours (Caselles, Kimmel, Sapiro, IJCV 22, 1997). Lengths are in units of
// the smallest spacing. F is float, or several voxels at once that have the same operations; a
// comparison of F is a mask for `choose`. The order of all operations is part of the result: both
// devices and both trackers give the same bits.

namespace larch::levelset {

LARCH_HD float choose(bool mask, float yes, float no) {
  return mask ? yes : no;
}
/// Returns the bits of a number, as an integer.
LARCH_HD int32_t bits_of(float value) {
  int32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
LARCH_HD float of_bits(int32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// The square root of what is not negative. Zeros are frequent, and an exact root of zero is slow
/// in CUDA, where a warp waits for its slowest lane: it takes that of 1 instead and drops it.
LARCH_HD float root(float value) {
  const bool is_zero = value == 0;
  const float result = sqrtf(is_zero ? 1.0F : value);
  return is_zero ? 0.0F : result;
}
/// numerator / denominator, which is not 0; zeros likewise. The 1 is made of bits, since a compiler
/// would see through a choice and divide zeros after all.
LARCH_HD float quotient(float numerator, float denominator) {
  const bool is_zero = numerator == 0;
  const int32_t one = is_zero ? 0x3f800000 : 0;
  const float result = of_bits(bits_of(numerator) | one) / denominator;
  return is_zero ? numerator : result;
}

/// Returns the larger, and the smaller; b where they are equal. Not fmaxf, which treats zeros
/// differently.
template <class F>
LARCH_HD F larger(F a, F b) {
  return choose(a > b, a, b);
}
template <class F>
LARCH_HD F smaller(F a, F b) {
  return choose(a < b, a, b);
}

/// max(value, 0): as an integer, a negative number is negative.
LARCH_HD float positive_part(float value) {
  const int32_t bits = bits_of(value);
  return of_bits(bits > 0 ? bits : 0);
}

/// phi at a voxel and at those of its neighbours that share a face or an edge. Names: m is one
/// voxel down an axis, p one up; xm_ym is down along x and along y.
template <class F>
struct Stencil {
  F centre;
  F xm, xp, ym, yp, zm, zp;
  F xm_ym, xp_ym, xm_yp, xp_yp;
  F xm_zm, xp_zm, xm_zp, xp_zp;
  F ym_zm, yp_zm, ym_zp, yp_zp;
};

/// c, in voxels of the smallest spacing: phi stays in [-c, c]. A wider field makes fronts lag less
/// along thick slices alone, and has more voxels that move.
constexpr float kClamp = 3;
/// Beyond this part of c, phi becomes c or -c. Nearer to 1 slower fronts get on (slowest_front), in
/// a wider band of voxels that change.
constexpr double kSnap = 0.98;
/// tau: a smaller change is none.
constexpr double kDeadZone = 0.001;

/// The numbers of a step that are the same everywhere, made once on the host (time_step.h).
struct Step {
  float time = 0;         ///< dt
  float propagation = 0;  ///< 1 - a
  float curvature = 0;    ///< a
  float advection = 0;    ///< w
  Vec3f per_h{};          ///< 1 / h along each axis; 0 along an axis of one voxel
  Vec3f per_2h{};         ///< 1 / (2 h)
  Vec3f per_hh{};         ///< 1 / h^2
  Vec3f per_4hh{};        ///< 1 / (4 hx hy), 1 / (4 hx hz), 1 / (4 hy hz)
};

/// kappa |grad phi| with central differences; bounded by the second derivatives, so that a field
/// without gradient gives 0.
template <class F>
LARCH_HD F curvature_flow(const Stencil<F>& p, const Step& s) {
  const F two(2.0F);
  const F dx = (p.xp - p.xm) * F(s.per_2h.x);
  const F dy = (p.yp - p.ym) * F(s.per_2h.y);
  const F dz = (p.zp - p.zm) * F(s.per_2h.z);
  const F centre = two * p.centre;
  const F dxx = ((p.xp + p.xm) - centre) * F(s.per_hh.x);
  const F dyy = ((p.yp + p.ym) - centre) * F(s.per_hh.y);
  const F dzz = ((p.zp + p.zm) - centre) * F(s.per_hh.z);
  const F dxy = ((p.xp_yp + p.xm_ym) - (p.xm_yp + p.xp_ym)) * F(s.per_4hh.x);
  const F dxz = ((p.xp_zp + p.xm_zm) - (p.xm_zp + p.xp_zm)) * F(s.per_4hh.y);
  const F dyz = ((p.yp_zp + p.ym_zm) - (p.ym_zp + p.yp_zm)) * F(s.per_4hh.z);
  const F squares = ((dyy + dzz) * (dx * dx) + (dxx + dzz) * (dy * dy)) + (dxx + dyy) * (dz * dz);
  const F mixed = (dx * dy * dxy + dx * dz * dxz) + dy * dz * dyz;
  return quotient(squares - two * mixed, ((dx * dx + dy * dy) + dz * dz) + F(1e-6F));
}

/// |grad phi| for a front that moves outwards (speed > 0) or inwards: Osher, Sethian, J. Comp.
/// Phys. 79, 1988, and Godunov's choice of sides: outwards sum max(D-, 0)^2 + min(D+, 0)^2, inwards
/// sum min(D-, 0)^2 + max(D+, 0)^2. With the sign of the speed in 1 / h both are the sum of
/// max(D-, 0)^2 + max(-D+, 0)^2.
template <class F>
LARCH_HD F upwind_gradient(const Stencil<F>& p, F speed, const Step& s) {
  const auto outwards = speed > F(0.0F);
  const auto square = [&](F down, F up, float per_h) {
    const F signed_per_h = choose(outwards, F(per_h), F(-per_h));
    const F from_below = positive_part((p.centre - down) * signed_per_h);
    const F from_above = positive_part((p.centre - up) * signed_per_h);
    return from_below * from_below + from_above * from_above;
  };
  const F x = square(p.xm, p.xp, s.per_h.x);
  const F y = square(p.ym, p.yp, s.per_h.y);
  const F z = square(p.zm, p.zp, s.per_h.z);
  return root((x + y) + z);
}

/// Returns a . grad phi, each difference from the side that A comes from.
template <class F>
LARCH_HD F upwind_advection(const Stencil<F>& p, F ax, F ay, F az, const Step& s) {
  const F zero(0.0F);
  const auto along = [&](F a, F down, F up, float per_h) {
    return a * (choose(a > zero, down, up) * F(per_h));
  };
  const F x = along(ax, p.centre - p.xm, p.xp - p.centre, s.per_h.x);
  const F y = along(ay, p.centre - p.ym, p.yp - p.centre, s.per_h.y);
  const F z = along(az, p.centre - p.zm, p.zp - p.centre, s.per_h.z);
  return (x + y) + z;
}

/// A value held in [-c, c], with its tail snapped to the ends, since upwind differences would drag
/// it along behind the front.
template <class F>
LARCH_HD F held(F value) {
  constexpr auto kSnapped = static_cast<float>(kSnap * kClamp);
  value = choose(value > F(kSnapped), F(kClamp), value);
  return choose(value < F(-kSnapped), F(-kClamp), value);
}

/// `after`, unless the change is within the dead zone, which is none: so a field at rest stays so
/// to the last bit.
template <class F>
LARCH_HD F rested(F before, F after) {
  constexpr auto kMinimum = static_cast<float>(kDeadZone);
  const F change = after - before;
  const F size = larger(change, F(0.0F) - change);
  return choose(size > F(kMinimum), after, before);
}

/// Returns what becomes of a value after a step of a field that is alone. Its bits differ from
/// those before only where the values do: 0 never changes its sign.
template <class F>
LARCH_HD F settle(F before, F after) {
  return held(rested(before, after));
}

/// Tells whether two structures share a voxel, from their phi.
LARCH_HD bool overlap(float a, float b) {
  return a + b < 0;
}

/// Returns the same beside others; `least`: the smallest phi of theirs before the step. Where two
/// structures push against each other each may have half of the gap between them, so that
/// phi_1 + phi_2 >= 0 holds after every step: they never share a voxel.
template <class F>
LARCH_HD F settle_apart(F before, F after, F least) {
  const F half_gap = (before - least) * F(0.5F);
  return held(larger(rested(before, after), half_gap));
}

/// Speeds are stored as integers: 1 is 2^14.
constexpr int32_t kSpeedOne = 16384;
/// A voxel with this speed keeps its value.
constexpr int16_t kFrozen = INT16_MIN;

/// Returns a stored speed, or component of A, as a number.
LARCH_HD float speed_of(int16_t stored) {
  return static_cast<float>(stored) * (1.0F / static_cast<float>(kSpeedOne));
}

/// phi after a step with data and curvature alone. `speed`: D.
template <class F>
LARCH_HD F stepped(const Stencil<F>& p, F speed, const Step& s) {
  F rate = F(s.curvature) * curvature_flow(p, s);
  rate = rate - F(s.propagation) * (speed * upwind_gradient(p, speed, s));
  return p.centre + F(s.time) * rate;
}

/// `value` of `stepped`, moved by edges too.
template <class F>
LARCH_HD F advected(F value, const Stencil<F>& p, F ax, F ay, F az, const Step& s) {
  return value - F(s.time) * (F(s.advection) * upwind_advection(p, ax, ay, az, s));
}

// When a level set is at its end, from integers alone, so that both devices and both trackers stop
// after the same step.

/// Why fields are no longer moved.
enum class Stop : uint8_t {
  kNone,        ///< it still is
  kAtRest,      ///< no voxel changed, or none had anything to be moved by
  kLabels,      ///< no voxel changed its side for StopRules::unchanged_labels steps
  kVolume,      ///< more than StopRules::most_voxels inside
  kIterations,  ///< StopRules::max_iterations
};

/// Holds what one step did to one field.
struct StepCount {
  uint32_t active = 0;   ///< voxels, or bricks, that were computed (depends on the tracker)
  uint32_t changed = 0;  ///< voxels whose value changed
  uint32_t flipped = 0;  ///< voxels that changed their side
  int32_t grown = 0;     ///< voxels that are inside now, minus those that were
};

/// When a job stops, by what all of its fields did in a step; the limit of the volume is that of
/// each.
struct StopRules {
  int64_t max_iterations = 10000;
  int64_t unchanged_labels = 200;  ///< 0: never
  int64_t most_voxels = 0;         ///< inside; 0: no limit
};

/// How far a job is.
struct Progress {
  int64_t iterations = 0;  ///< phi[iterations % 2] is the result
  int64_t quiet = 0;       ///< steps since a voxel changed its side
  Stop stop = Stop::kNone;
};

/// Holds what a step did to all fields of a job.
struct StepSum {
  uint64_t changed = 0, flipped = 0;
  int64_t most_inside = 0;  ///< of one field

  /// `inside`: of the field, before the step and after it.
  LARCH_HD void add(const StepCount& step, int64_t& inside) {
    changed += step.changed;
    flipped += step.flipped;
    inside += step.grown;
    if (inside > most_inside) most_inside = inside;
  }
};

/// Returns the progress after a step.
LARCH_HD Progress advanced(Progress progress, const StepSum& step, const StopRules& rules) {
  ++progress.iterations;
  progress.quiet = step.flipped == 0 ? progress.quiet + 1 : 0;
  if (step.changed == 0) {
    progress.stop = Stop::kAtRest;
  } else if (rules.unchanged_labels > 0 && progress.quiet >= rules.unchanged_labels) {
    progress.stop = Stop::kLabels;
  } else if (rules.most_voxels > 0 && step.most_inside > rules.most_voxels) {
    progress.stop = Stop::kVolume;
  } else if (progress.iterations >= rules.max_iterations) {
    progress.stop = Stop::kIterations;
  }
  return progress;
}

// One voxel of a field, wherever it lies.

/// Tells whether phi is the same on the whole stencil.
LARCH_HD bool is_constant(const Stencil<float>& p) {
  const float c = p.centre;
  return p.xm == c && p.xp == c && p.ym == c && p.yp == c && p.zm == c && p.zp == c &&
         p.xm_ym == c && p.xp_ym == c && p.xm_yp == c && p.xp_yp == c && p.xm_zm == c &&
         p.xp_zm == c && p.xm_zp == c && p.xp_zp == c && p.ym_zm == c && p.yp_zm == c &&
         p.ym_zp == c && p.yp_zp == c;
}

/// Holds what moves a voxel.
struct VoxelSpeeds {
  const int16_t* speed = nullptr;
  const int16_t* advection[3] = {};  ///< null: 0 everywhere
};

/// phi of the voxel at `offset` after a step, its speed D being read. `least`: of the job's other
/// fields there, before the step; null: it is alone.
LARCH_HD float voxel_after(const Stencil<float>& p, int16_t speed, const VoxelSpeeds& speeds,
                           int64_t offset, const float* least, const Step& s) {
  if (speed == kFrozen) return p.centre;
  float after = stepped(p, speed_of(speed), s);
  if (speeds.advection[0] != nullptr) {
    after =
        advected(after, p, speed_of(speeds.advection[0][offset]),
                 speed_of(speeds.advection[1][offset]), speed_of(speeds.advection[2][offset]), s);
  }
  return least == nullptr ? settle(p.centre, after) : settle_apart(p.centre, after, *least);
}
LARCH_HD float voxel_after(const Stencil<float>& p, const VoxelSpeeds& speeds, int64_t offset,
                           const float* least, const Step& s) {
  return voxel_after(p, speeds.speed[offset], speeds, offset, least, s);
}

}  // namespace larch::levelset
