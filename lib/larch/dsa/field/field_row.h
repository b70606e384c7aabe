// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace larch::dsa
