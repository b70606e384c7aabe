// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/distance_map.h"

#include <algorithm>

#include "larch/filters/distance.h"

namespace larch::pose {

DistanceSample sample_distance(const Volume<float>& distance_mm, const Vec3d& at_mm) {
  const Grid& grid = distance_mm.grid();
  const Vec3d wanted = index_from_world(grid, at_mm);
  Vec3d up, down, beyond_mm;
  Vec3i low;
  for (int axis = 0; axis < 3; ++axis) {
    const double index = std::clamp(wanted[axis], 0.0, grid.size[axis] - 1.0);
    low[axis] = index > 0 ? std::min(static_cast<int32_t>(index), grid.size[axis] - 2) : 0;
    up[axis] = index - low[axis];
    down[axis] = 1 - up[axis];
    beyond_mm[axis] = (wanted[axis] - index) * grid.spacing_mm[axis];
  }
  DistanceSample out{};
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3i bit{corner & 1, corner >> 1 & 1, corner >> 2};
    const double value = distance_mm(low + bit);
    const Vec3d weight{bit.x ? up.x : down.x, bit.y ? up.y : down.y, bit.z ? up.z : down.z};
    out.mm += weight.x * weight.y * weight.z * value;
    out.gradient.x += weight.y * weight.z * (bit.x ? value : -value);
    out.gradient.y += weight.x * weight.z * (bit.y ? value : -value);
    out.gradient.z += weight.x * weight.y * (bit.z ? value : -value);
  }
  const double far_mm = norm(beyond_mm);
  for (int axis = 0; axis < 3; ++axis) {
    if (beyond_mm[axis] == 0) out.gradient[axis] /= grid.spacing_mm[axis];
    if (beyond_mm[axis] != 0) out.gradient[axis] = beyond_mm[axis] / far_mm;
  }
  return {out.mm + far_mm, out.gradient};
}

Volume<float> distance_map(const Volume<uint8_t>& mask, int32_t longest) {
  Vec3i low = mask.size(), high{-1, -1, -1};
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] != 0) widen(low, high, mask.grid().voxel(i));
  }
  const Vec3i extent = high - low + Vec3i{1, 1, 1};
  const int32_t margin = 3 + std::min(std::max({extent.x, extent.y, extent.z}), longest) / 6;
  Grid grid = mask.grid();
  Vec3i stride, first;
  for (int axis = 0; axis < 3; ++axis) {
    stride[axis] = (extent[axis] + longest - 1) / longest;
    first[axis] = low[axis] - margin * stride[axis];
    grid.size[axis] = (extent[axis] - 1) / stride[axis] + 1 + 2 * margin;
    grid.spacing_mm[axis] *= stride[axis];
  }
  grid.origin_mm = world_from_index(mask.grid(), first.cast<double>());
  Volume<uint8_t> inside(grid);
  for (int64_t i = 0; i < inside.voxels(); ++i) {
    Vec3i at = grid.voxel(i);
    for (int axis = 0; axis < 3; ++axis) at[axis] = first[axis] + at[axis] * stride[axis];
    inside[i] = mask.grid().contains(at) && mask(at) != 0;
  }
  // The distance of a mask is 0 in the centres of voxels half a voxel inside of the surface, and
  // that of its complement half a voxel outside: half their difference is 0 at the surface.
  Volume<float> distance = filters::signed_distance_mm(inside);
  const Volume<float> complement = filters::signed_distance_mm(
      mapped<uint8_t>(inside, [](uint8_t is_inside) { return is_inside == 0; }));
  for (int64_t i = 0; i < distance.voxels(); ++i) distance[i] = (distance[i] - complement[i]) / 2;
  return distance;
}

}  // namespace larch::pose
