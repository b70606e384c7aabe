// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/levelset/step/step_math.h"

// One voxel of a field, wherever it lies.
namespace larch::levelset {

/// Whether phi is the same on the whole stencil.
LARCH_HD bool is_constant(const Stencil<float>& p) {
  const float c = p.centre;
  return p.xm == c && p.xp == c && p.ym == c && p.yp == c && p.zm == c && p.zp == c &&
         p.xm_ym == c && p.xp_ym == c && p.xm_yp == c && p.xp_yp == c && p.xm_zm == c &&
         p.xp_zm == c && p.xm_zp == c && p.xp_zp == c && p.ym_zm == c && p.yp_zm == c &&
         p.ym_zp == c && p.yp_zp == c;
}

/// What moves a voxel.
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
