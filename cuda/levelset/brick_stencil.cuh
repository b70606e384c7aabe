// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/brick_entry.cuh"

namespace larch::levelset::cuda {

/// How far it is from a voxel to those beside it, in its brick or the next: down and up each axis.
template <class Offset>
struct StepsBeside {
  int32_t xm, xp;
  Offset ym, yp, zm, zp;
};
/// phi around a voxel.
template <class Offset>
__device__ Stencil<float> stencil_beside(const float* p, const StepsBeside<Offset>& to) {
  const Offset xm = to.xm, xp = to.xp;
  return {p[0],
          p[xm],
          p[xp],
          p[to.ym],
          p[to.yp],
          p[to.zm],
          p[to.zp],
          p[xm + to.ym],
          p[xp + to.ym],
          p[xm + to.yp],
          p[xp + to.yp],
          p[xm + to.zm],
          p[xp + to.zm],
          p[xm + to.zp],
          p[xp + to.zp],
          p[to.ym + to.zm],
          p[to.yp + to.zm],
          p[to.ym + to.zp],
          p[to.yp + to.zp]};
}
/// In the middle of the image. `at`: the place in the brick.
template <class Offset>
__device__ StepsBeside<Offset> steps_beside(const BrickLayout& layout, const Vec3i& at) {
  constexpr int32_t kLast = kBrick - 1, kPlane = kBrick * kBrick;
  constexpr int32_t kAcross = kBrickVoxels - kLast;
  const Offset row = layout.count.x * kBrickVoxels;
  const Offset across_y = row - kLast * kBrick, across_z = row * layout.count.y - kLast * kPlane;
  return {at.x == 0 ? -kAcross : -1,       at.x == kLast ? kAcross : 1,
          at.y == 0 ? -across_y : -kBrick, at.y == kLast ? across_y : kBrick,
          at.z == 0 ? -across_z : -kPlane, at.z == kLast ? across_z : kPlane};
}
/// Returns the same of any brick; 0 where the voxel lies at the border of the image.
__device__ inline StepsBeside<int64_t> steps_in_image(const BrickLayout& layout,
                                                      const BrickEntry& e, const Vec3i& at) {
  StepsBeside<int64_t> to = steps_beside<int64_t>(layout, at);
  const Vec3i all = Vec3i{e.x(), e.y(), e.z()} * kBrick + at, &size = layout.size;
  if (all.x == 0) to.xm = 0;
  if (all.y == 0) to.ym = 0;
  if (all.z == 0) to.zm = 0;
  if (all.x + 1 == size.x) to.xp = 0;
  if (all.y + 1 == size.y) to.yp = 0;
  if (all.z + 1 == size.z) to.zp = 0;
  return to;
}
/// phi around a voxel of a brick; beyond the image is its border again.
__device__ inline Stencil<float> stencil_of(const BrickLayout& layout, const float* phi,
                                            const BrickEntry& e, uint32_t voxel) {
  const Vec3i at = place_in_brick(voxel);
  const float* p = phi + (e.first_voxel() + voxel);
  if (e.is_inner()) return stencil_beside(p, steps_beside<int32_t>(layout, at));
  return stencil_beside(p, steps_in_image(layout, e, at));
}

}  // namespace larch::levelset::cuda
