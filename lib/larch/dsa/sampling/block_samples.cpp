// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/block_samples.h"

#include <algorithm>

#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/samples.h"

namespace larch::dsa::cpu {

void ImagePart::take(const uint16_t* image, const Vec3i& size, int32_t x0, int32_t y0,
                     int32_t columns, int32_t rows) {
  if (x0 >= 0 && y0 >= 0 && int64_t{x0} + columns <= size.x && int64_t{y0} + rows <= size.y) {
    stride_ = size.x;
    origin_ = image + y0 * stride_ + x0;
    return;
  }
  stride_ = columns;
  copy_.assign(static_cast<size_t>(stride_ * rows), kNoSample);
  origin_ = copy_.data();
  for (int32_t j = 0; j < rows; ++j) {
    const int32_t y = y0 + j;
    if (y < 0 || y >= size.y) continue;
    const uint16_t* row = image + static_cast<int64_t>(y) * size.x;
    uint16_t* out = copy_.data() + j * stride_;
    const int32_t first = std::clamp(-x0, 0, columns);  // columns in the image
    const int32_t end = std::clamp(size.x - x0, first, columns);
    if (first < end) std::copy(row + (x0 + first), row + (x0 + end), out + first);
  }
}

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

BlockSamples::BlockSamples(const MatchJob& job)
    : job_(job),
      taps_(gain_taps()),
      block_(job.grid->block),
      padded_(whole_lanes(job.grid->block.x)),
      reach_(job.range + 3),
      contrast_(static_cast<size_t>(padded_ * block_.y), kNoSample),
      sampled_(static_cast<size_t>(padded_ * block_.y), kNoSample) {
  const size_t rows = static_cast<size_t>(block_.y) + 2 * static_cast<size_t>(reach_);
  filtered_.resize(rows * static_cast<size_t>(padded_));
  is_filtered_.resize(rows);
  if (job.base.vectors != nullptr) base_.emplace(job);
}

void BlockSamples::move_to(int64_t frame, int32_t block) {
  start_ = job_.grid->start(block);
  centre_ = job_.centre == nullptr ? Vec3i{} : job_.centre[frame];
  has_at_zero_ = has_unfiltered_ = false;
  std::fill(is_filtered_.begin(), is_filtered_.end(), false);
  copy_contrast(frame);
  if (base_) base_->move_to(frame, block, reach_);
}

void BlockSamples::copy_contrast(int64_t frame) {
  const Vec3i& image = job_.grid->image;
  const uint16_t* origin =
      job_.contrast + (frame * image.y + start_.y) * static_cast<int64_t>(image.x) + start_.x;
  counted_ = 0;
  for (int32_t y = 0; y < block_.y; ++y) {
    const uint16_t* row = origin + static_cast<int64_t>(y) * image.x;
    std::copy_n(row, block_.x, contrast_.data() + y * padded_);
    const auto missing = std::count(row, row + block_.x, kNoSample);
    counted_ += static_cast<uint32_t>(block_.x - missing);
  }
}

const ImagePart& BlockSamples::part_of(const uint16_t* image, ImagePart& part, bool& is_taken) {
  if (is_taken) return part;
  is_taken = true;
  part.take(image, job_.grid->image, start_.x + centre_.x - reach_, start_.y + centre_.y - reach_,
            static_cast<int32_t>(padded_) + 2 * reach_, block_.y + 2 * reach_);
  return part;
}

MaskRows BlockSamples::mask_at(const Vec3i& units) {
  if (base_) {
    base_->sample(units, padded_, sampled_.data());
    return {sampled_.data(), padded_};
  }
  const Vec3i from_centre = units - centre_ * kUnit;
  if (from_centre.x % kUnit != 0 || from_centre.y % kUnit != 0) return between_pixels(from_centre);
  const ImagePart& part = part_of(job_.mask_at_zero, at_zero_, has_at_zero_);
  return {part.at(reach_ + from_centre.x / kUnit, reach_ + from_centre.y / kUnit), part.stride()};
}

/// The row of the mask at block row y, filtered along x.
const uint16_t* BlockSamples::filtered_row(int32_t x_units, int32_t y) {
  if (x_units != filtered_units_) {
    filtered_units_ = x_units;
    std::fill(is_filtered_.begin(), is_filtered_.end(), false);
  }
  const int32_t from_first = y + reach_;
  const auto place = static_cast<size_t>(from_first);
  uint16_t* out = filtered_.data() + place * static_cast<size_t>(padded_);
  if (is_filtered_[place]) return out;
  is_filtered_[place] = true;
  const ImagePart& part = part_of(job_.mask, unfiltered_, has_unfiltered_);
  const Step step = split_step(x_units);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  const uint16_t* here = part.at(reach_ + step.pixel, reach_ + y);
  match_lanes().tap_row(taps, here - 1, here, here + 1, padded_, out);
  return out;
}

MaskRows BlockSamples::between_pixels(const Vec3i& units) {
  const Step step = split_step(units.y);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  for (int32_t y = 0; y < block_.y; ++y) {
    const uint16_t* here = filtered_row(units.x, y + step.pixel);
    const uint16_t* before = filtered_row(units.x, y + step.pixel - 1);
    const uint16_t* after = filtered_row(units.x, y + step.pixel + 1);
    match_lanes().tap_row(taps, before, here, after, padded_, sampled_.data() + y * padded_);
  }
  return {sampled_.data(), padded_};
}

}  // namespace larch::dsa::cpu
