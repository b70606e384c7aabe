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

/// The dense field along the rows of an image on the CPU: field_units of every pixel, where what
/// the pixels of a row share is computed once.
class FieldRow {
 public:
  /// `columns`: axis_weights of every pixel along x.
  FieldRow(const FieldView& view, const std::vector<AxisWeights>& columns)
      : view_(view), columns_(columns), sums_(static_cast<size_t>(view.axes[0].count)) {}

  void move_to(int32_t y, int32_t z) {
    if (view_.vectors == nullptr) return;
    const AxisWeights wy = axis_weights(view_.axes[1], view_.border, y);
    const AxisWeights wz = axis_weights(view_.axes[2], view_.border, z);
    whole_ = static_cast<int64_t>(wy.whole) * wz.whole;
    has_z_ = false;
    for (int32_t i = 0; i < view_.axes[0].count; ++i) {
      const FieldSum sum = field_sum(view_, {i, i, 1, 0, 1}, wy, wz);
      sums_[static_cast<size_t>(i)] = {sum.of[0], sum.of[1], sum.of[2]};
      has_z_ = has_z_ || sum.of[2] != 0;
    }
  }

  Vec3i units_at(int32_t x) const {
    if (view_.vectors == nullptr) return {};
    const AxisWeights& w = columns_[static_cast<size_t>(x)];
    const int64_t whole = whole_ * w.whole;
    const double inverse = 1.0 / static_cast<double>(whole << kVectorBits);
    Vec3l sum{};
    if (w.first >= 0) sum += sums_[static_cast<size_t>(w.first)] * int64_t{w.of_first};
    if (w.second >= 0) sum += sums_[static_cast<size_t>(w.second)] * int64_t{w.of_second};
    return {units_of_sum(sum.x, whole, inverse), units_of_sum(sum.y, whole, inverse),
            has_z_ ? units_of_sum(sum.z, whole, inverse) : 0};
  }

 private:
  FieldView view_;
  const std::vector<AxisWeights>& columns_;
  std::vector<Vec3l> sums_;  // along x, Q16 pixels times whole_
  int64_t whole_ = 1;
  bool has_z_ = false;
};

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
/// P = B that is the partition of US 2008/0037845. Throws UsageError for sizes below 1.
BlockGrid make_block_grid(const Vec3i& image, const Vec3i& block, const Vec3i& step);

/// Where the blocks of a grid lie, on a device.
struct FieldGrid {
  Buffer<int32_t> starts{};  ///< along x, then y, then z
  FieldAxis axes[3]{};       ///< into `starts`

  /// Returns the field between vectors by block, on the same device. One frame.
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
