// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/row_changes.h"

namespace larch::levelset::cpu {
namespace {

/// Rows of a brick at y = 0, and at z = 0.
constexpr RowMask kFirstY = 0x0101010101010101, kFirstZ = 0xff;
constexpr RowMask kLastY = kFirstY << 7, kLastZ = kFirstZ << 56;

/// The rows y - 1 and y + 1 of rows of a brick and of the ones before and after it along y.
RowMask beside_y(RowMask brick, RowMask before, RowMask after) {
  return (brick << 1 & ~kFirstY) | (before >> 7 & kFirstY) | (brick >> 1 & ~kLastY) |
         (after << 7 & kLastY);
}
RowMask beside_z(RowMask brick, RowMask before, RowMask after) {
  return brick << 8 | before >> 56 | brick >> 8 | after << 56;
}

/// A mask of the bricks around one, as far as they lie in the image.
struct Neighbours {
  const BrickLayout& layout;
  const std::vector<RowChanges>& changes;
  int64_t step, brick;
  Vec3i at;

  RowMask get(RowMask RowChanges::*mask, int32_t dx, int32_t dy, int32_t dz) const {
    const Vec3i there = at + Vec3i{dx, dy, dz}, count = layout.count;
    if (there.x < 0 || there.y < 0 || there.z < 0 || there.x >= count.x || there.y >= count.y ||
        there.z >= count.z) {
      return 0;
    }
    const RowChanges& c = changes[static_cast<size_t>(layout.brick_of(there))];
    return c.step == step ? c.*mask : 0;
  }
};

}  // namespace

RowMask rows_to_compute(const BrickLayout& layout, const std::vector<RowChanges>& changes,
                        int64_t step, int64_t brick) {
  const Neighbours n{layout, changes, step, brick, layout.brick_at(brick)};
  // Along x the brick itself: neighbours across faces and edges are all those beside the row.
  const auto row = [&](int32_t dz) {
    const RowMask here = n.get(&RowChanges::rows, 0, 0, dz);
    return here |
           beside_y(here, n.get(&RowChanges::rows, 0, -1, dz), n.get(&RowChanges::rows, 0, 1, dz));
  };
  const RowMask along_y = row(0);
  RowMask wanted = along_y | beside_z(along_y, row(-1), row(1));
  // The brick before along x, by its last voxels: no neighbours across corners.
  const auto side = [&](RowMask RowChanges::*mask, int32_t dx) {
    const RowMask here = n.get(mask, dx, 0, 0);
    return here | beside_y(here, n.get(mask, dx, -1, 0), n.get(mask, dx, 1, 0)) |
           beside_z(here, n.get(mask, dx, 0, -1), n.get(mask, dx, 0, 1));
  };
  return wanted | side(&RowChanges::last, -1) | side(&RowChanges::first, 1);
}

uint32_t bricks_to_wake(const RowChanges& changes) {
  if (changes.rows == 0) return 0;
  const bool x[3] = {changes.first != 0, true, changes.last != 0};
  const bool y[3] = {(changes.rows & kFirstY) != 0, true, (changes.rows & kLastY) != 0};
  const bool z[3] = {(changes.rows & kFirstZ) != 0, true, (changes.rows & kLastZ) != 0};
  uint32_t bits = 0;
  for (int32_t i = 0; i < 27; ++i) {
    const int32_t dx = i % 3, dy = i / 3 % 3, dz = i / 9;
    const bool is_corner = dx != 1 && dy != 1 && dz != 1;
    if (!is_corner && x[dx] && y[dy] && z[dz]) bits |= 1U << i;
  }
  return bits;
}

}  // namespace larch::levelset::cpu
