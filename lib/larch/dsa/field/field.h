// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/block_grid.h"

namespace larch::dsa {

/// Where the blocks of a grid lie, on a device.
struct FieldGrid {
  Buffer<int32_t> starts{};  ///< along x, then y, then z
  FieldAxis axes[3]{};       ///< into `starts`

  /// The field between vectors by block, on the same device. One frame.
  FieldView view(const Vec3i* vectors, BorderField border) const;
};
FieldGrid make_field_grid(const BlockGrid& grid, const Device& device);

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
