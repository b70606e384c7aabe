// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/vec.h"
#include "larch/dsa/field/field_math.h"

namespace larch::dsa {

/// Where the blocks of an image lie: whole blocks, evenly spread, that cover it. A picture has one
/// block along z, of one pixel.
struct BlockGrid {
  Vec3i image{}, block{}, count{};
  std::array<std::vector<int32_t>, 3> starts{};  ///< first pixel of the blocks along each axis

  int32_t blocks() const { return count.x * count.y * count.z; }
  /// Block i, counted along x first, along each axis.
  Vec3i at(int32_t i) const { return {i % count.x, i / count.x % count.y, i / count.x / count.y}; }
  /// Returns its first pixel.
  Vec3i start(int32_t i) const {
    const Vec3i a = at(i);
    return {starts[0][static_cast<size_t>(a.x)], starts[1][static_cast<size_t>(a.y)],
            starts[2][static_cast<size_t>(a.z)]};
  }
  /// Twice the position of its centre, a whole number: 63 for the first block of 64 pixels.
  Vec3i twice_centre(int32_t i) const {
    const Vec3i s = start(i);
    return {2 * s.x + block.x - 1, 2 * s.y + block.y - 1, 2 * s.z + block.z - 1};
  }
};

/// Along an axis of W pixels with blocks of B and a step P: 1 + ceil((W - B) / P) blocks that begin
/// at floor(i (W - B) / (n - 1) + 1/2), or one of all W pixels if W <= B. For W a multiple of B and
/// P = B that is the partition of US 2008/0037845.
BlockGrid make_block_grid(const Vec3i& image, const Vec3i& block, const Vec3i& step);

/// Where the blocks of a grid lie, on a device.
struct FieldGrid {
  Buffer<int32_t> starts{};  ///< along x, then y, then z
  FieldAxis axes[3]{};       ///< into `starts`

  /// Returns the field between vectors by block, on the same device. One frame.
  FieldView view(const Vec3i* vectors, BorderField border) const;
};
FieldGrid make_field_grid(const BlockGrid& grid, const Device& device);

/// Finds the field in units at all pixels of a box, x fastest; 0 without vectors. On the host.
/// `out` may have any size before.
void find_field_in_box(const FieldView& view, const Vec3i& first, const Vec3i& size,
                       std::vector<Vec3i>& out);

/// Vectors (Q16) of one grid from those of another of the same image: the dense field of `from` at
/// the centres of `to`. On the host.
std::vector<Vec3i> vectors_at(const BlockGrid& to, const BlockGrid& from,
                              std::span<const Vec3i> vectors, BorderField border);

/// How the field of a frame moves pixels.
struct FieldShape {
  double least_jacobian = 1;  ///< of x + d(x); not above 0: the field folds
  double mean_px = 0;         ///< length of the vectors at the centres
  double longest_px = 0;
};
/// `vectors`: of one frame, Q16, on the host. Between centres of a picture the Jacobian is
/// bilinear, so that its least value lies at a corner of a cell, where it is taken; in volumes
/// corners are what is looked at. The cells beyond the outermost centres count as `border` fills
/// them.
FieldShape shape_of_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                          BorderField border);

}  // namespace larch::dsa
