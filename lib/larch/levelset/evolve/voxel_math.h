// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/levelset/brick_layout.h"
#include "larch/levelset/step/step_math.h"

// One voxel of a field, wherever it lies.
namespace larch::levelset {

/// Voxels of the stencil beside its centre.
constexpr int32_t kNeighbours = 18;

/// Offset of neighbour `i`: the six across faces come first.
LARCH_HD Vec3i neighbour(int32_t i) {
  constexpr int8_t kAt[kNeighbours][3] = {
      {-1, 0, 0},  {1, 0, 0},  {0, -1, 0},  {0, 1, 0},  {0, 0, -1},  {0, 0, 1},
      {-1, -1, 0}, {1, -1, 0}, {-1, 1, 0},  {1, 1, 0},  {-1, 0, -1}, {1, 0, -1},
      {-1, 0, 1},  {1, 0, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1},  {0, 1, 1}};
  return {kAt[i][0], kAt[i][1], kAt[i][2]};
}

LARCH_HD bool contains(const BrickLayout& layout, const Vec3i& at) {
  return at.x >= 0 && at.y >= 0 && at.z >= 0 && at.x < layout.size.x && at.y < layout.size.y &&
         at.z < layout.size.z;
}

/// The voxel at an offset of the layout.
LARCH_HD Vec3i voxel_at(const BrickLayout& layout, int64_t offset) {
  const Vec3i brick = layout.brick_at(offset / kBrickVoxels);
  const auto i = static_cast<int32_t>(offset % kBrickVoxels);
  return {brick.x * kBrick + i % kBrick, brick.y * kBrick + i / kBrick % kBrick,
          brick.z * kBrick + i / (kBrick * kBrick)};
}

/// phi around a voxel; beyond the image that at its border.
LARCH_HD Stencil<float> read_stencil(const BrickLayout& layout, const float* phi, const Vec3i& at) {
  // The offset of a voxel is a sum over the axes.
  const int64_t per_y = static_cast<int64_t>(layout.count.x) * kBrickVoxels;
  const int64_t per_z = per_y * layout.count.y;
  const auto along = [](int32_t at, int32_t size, int64_t per_brick, int32_t per_voxel) {
    const int32_t inside = at < 0 ? 0 : at >= size ? size - 1 : at;
    return inside / kBrick * per_brick + inside % kBrick * per_voxel;
  };
  int64_t x[3], y[3], z[3];
  for (int32_t i = 0; i < 3; ++i) {
    x[i] = along(at.x + i - 1, layout.size.x, kBrickVoxels, 1);
    y[i] = along(at.y + i - 1, layout.size.y, per_y, kBrick);
    z[i] = along(at.z + i - 1, layout.size.z, per_z, kBrick * kBrick);
  }
  const auto read = [&](int32_t dx, int32_t dy, int32_t dz) {
    return phi[x[dx + 1] + y[dy + 1] + z[dz + 1]];
  };
  return {read(0, 0, 0),   read(-1, 0, 0),  read(1, 0, 0),   read(0, -1, 0), read(0, 1, 0),
          read(0, 0, -1),  read(0, 0, 1),   read(-1, -1, 0), read(1, -1, 0), read(-1, 1, 0),
          read(1, 1, 0),   read(-1, 0, -1), read(1, 0, -1),  read(-1, 0, 1), read(1, 0, 1),
          read(0, -1, -1), read(0, 1, -1),  read(0, -1, 1),  read(0, 1, 1)};
}

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
  const int16_t* edge_stop = nullptr;  ///< null: 1 everywhere
  const int16_t* advection[3] = {};    ///< null: 0 everywhere
};

/// phi of the voxel at `offset` after a step, its speed D being read. `least`: of the group's other
/// fields there, before the step; null: it is alone.
LARCH_HD float voxel_after(const Stencil<float>& p, int16_t speed, const VoxelSpeeds& speeds,
                           int64_t offset, const float* least, const Step& s) {
  if (speed == kFrozen) return p.centre;
  const float stop = speeds.edge_stop != nullptr ? speed_of(speeds.edge_stop[offset]) : 1.0F;
  float after = stepped(p, speed_of(speed), stop, s);
  if (speeds.advection[0] != nullptr) {
    after =
        advected(after, p, speed_of(speeds.advection[0][offset]),
                 speed_of(speeds.advection[1][offset]), speed_of(speeds.advection[2][offset]), s);
  }
  return least == nullptr ? settle(p.centre, after, s) : settle_apart(p.centre, after, *least, s);
}
LARCH_HD float voxel_after(const Stencil<float>& p, const VoxelSpeeds& speeds, int64_t offset,
                           const float* least, const Step& s) {
  return voxel_after(p, speeds.speed[offset], speeds, offset, least, s);
}

}  // namespace larch::levelset
