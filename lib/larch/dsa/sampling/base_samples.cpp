// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/base_samples.h"

#include <algorithm>

#include "larch/dsa/field/field_math.h"

namespace larch::dsa::cpu {
BaseSamples::BaseSamples(const MatchJob& job)
    : job_(job), taps_(lane_taps()), places_(make_field_grid(*job.base.grid, Device::cpu())) {}

void BaseSamples::move_to(int64_t frame, int32_t block, int32_t reach) {
  start_ = job_.grid->start(block);
  find_vectors(frame, block, whole_lanes(job_.grid->block.x));
  take_part(job_.centre == nullptr ? Vec3i{} : job_.centre[frame], reach);
}

/// Positions in the image that the block's pixels are pulled from.
void BaseSamples::find_vectors(int64_t frame, int32_t block, int64_t padded) {
  const FieldView view = places_.view(job_.base.vectors + frame * job_.base.grid->blocks(),
                                      border_field_of(*job_.config, /*is_volume=*/false));
  const Vec3i centre = job_.grid->twice_centre(block), size = job_.grid->block;
  AxisWeights at[3];
  for (int axis = 0; axis < 3; ++axis) {
    at[axis] = axis_weights_at_half(view.axes[axis], view.border, centre[axis]);
  }
  at_centre_ = field_q16(field_sum(view, at[0], at[1], at[2]));
  std::vector<AxisWeights> columns;
  columns.reserve(static_cast<size_t>(size.x));
  for (int32_t x = 0; x < size.x; ++x) {
    columns.push_back(axis_weights(view.axes[0], view.border, start_.x + x));
  }
  x_units_.clear();
  y_units_.clear();
  for (int32_t y = 0; y < size.y; ++y) {
    const AxisWeights row = axis_weights(view.axes[1], view.border, start_.y + y);
    for (int32_t x = 0; x < size.x; ++x) {
      const AxisWeights& column = columns[static_cast<size_t>(x)];
      const Vec3i base = field_units(field_sum(view, column, row, at[2]));
      x_units_.push_back((start_.x + x) * kUnit + base.x);
      y_units_.push_back((start_.y + y) * kUnit + base.y);
    }
    const auto row_end = static_cast<size_t>((y + 1) * padded);
    x_units_.resize(row_end, x_units_.back());
    y_units_.resize(row_end, y_units_.back());
  }
}

/// Takes the part of the mask that displacements reach, and counts positions from its corner.
void BaseSamples::take_part(const Vec3i& centre, int32_t reach) {
  const auto [least_x, most_x] = std::minmax_element(x_units_.begin(), x_units_.end());
  const auto [least_y, most_y] = std::minmax_element(y_units_.begin(), y_units_.end());
  // Taps before and after, and one sample more behind, which loads of pairs touch.
  const int32_t x0 = split_step(*least_x).pixel + centre.x - reach - 1;
  const int32_t y0 = split_step(*least_y).pixel + centre.y - reach - 1;
  const int32_t x1 = split_step(*most_x).pixel + centre.x + reach + 2;
  const int32_t y1 = split_step(*most_y).pixel + centre.y + reach + 2;
  part_.take(job_.mask, job_.grid->image, x0, y0, x1 - x0 + 1, y1 - y0 + 1);
  for (int32_t& x : x_units_) x -= x0 * kUnit;
  for (int32_t& y : y_units_) y -= y0 * kUnit;
}

void BaseSamples::sample(const Vec3i& units, int64_t padded, uint16_t* out) const {
  const WarpPart part{part_.at(0, 0), part_.stride(), taps_.data()};
  match_lanes().warp_row(part, units, x_units_.data(), y_units_.data(), padded * job_.grid->block.y,
                         out);
}

}  // namespace larch::dsa::cpu
