// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/block_samples.h"

#include <algorithm>

#include "larch/dsa/match/sampling_math.h"
#include "larch/dsa/match/search_math.h"

namespace larch::dsa::cpu {
namespace {

int64_t whole_lanes(int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

FieldView view_of(const MatchJob& job, int64_t frame) {
  const BlockGrid& grid = *job.base.grid;
  FieldView view;
  for (int axis = 0; axis < 3; ++axis) {
    view.axes[axis] = {grid.starts[static_cast<size_t>(axis)].data(), grid.count[axis],
                       grid.block[axis]};
  }
  view.vectors = job.base.vectors + frame * grid.blocks();
  view.border = job.config->border_field;
  return view;
}

}  // namespace

BlockSamples::BlockSamples(const MatchJob& job)
    : job_(job),
      taps_(taps_of(job.config->subpixel)),
      skips_weightless_(skips_weightless(job.config->subpixel)),
      block_(job.grid->block),
      padded_(whole_lanes(job.grid->block.x)),
      reach_(job.range + 3),
      contrast_(static_cast<size_t>(padded_ * block_.y), kNoSample),
      sampled_(static_cast<size_t>(padded_ * block_.y), kNoSample) {
  const size_t rows = static_cast<size_t>(block_.y) + 2 * static_cast<size_t>(reach_);
  filtered_.resize(rows * static_cast<size_t>(padded_));
  is_filtered_.resize(rows);
}

void BlockSamples::move_to(int64_t frame, int32_t block) {
  start_ = job_.grid->start(block);
  centre_ = job_.centre == nullptr ? Vec3i{} : job_.centre[frame];
  at_zero_.is_made = unfiltered_.is_made = false;
  std::fill(is_filtered_.begin(), is_filtered_.end(), false);
  copy_contrast(frame);
  if (job_.base.vectors != nullptr) find_base(frame, block);
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

const BlockSamples::Part& BlockSamples::part_of(const uint16_t* image, Part& part) {
  if (part.is_made) return part;
  part.is_made = true;
  const Vec3i& size = job_.grid->image;
  const int32_t x0 = start_.x + centre_.x - reach_, y0 = start_.y + centre_.y - reach_;
  const int64_t columns = padded_ + 2 * reach_, rows = block_.y + 2 * reach_;
  if (x0 >= 0 && y0 >= 0 && x0 + columns <= size.x && y0 + rows <= size.y) {
    part.stride = size.x;
    part.origin = image + (start_.y + centre_.y) * part.stride + start_.x + centre_.x;
    return part;
  }
  part.copy.assign(static_cast<size_t>(columns * rows), kNoSample);
  part.stride = columns;
  part.origin = part.copy.data() + reach_ * part.stride + reach_;
  const bool clamps = job_.config->border == Border::kClamp;
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t y = clamps ? std::clamp<int64_t>(y0 + j, 0, size.y - 1) : y0 + j;
    if (y < 0 || y >= size.y) continue;
    const uint16_t* row = image + y * size.x;
    uint16_t* out = part.copy.data() + j * columns;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t x = x0 + i;
      if (x >= 0 && x < size.x)
        out[i] = row[x];
      else if (clamps)
        out[i] = row[x < 0 ? 0 : size.x - 1];
    }
  }
  return part;
}

MaskRows BlockSamples::mask_at(const Vec3i& units) {
  if (job_.base.vectors != nullptr) return over_base(units);
  const Vec3i from_centre = units - centre_ * kUnit;
  if (from_centre.x % kUnit != 0 || from_centre.y % kUnit != 0) return between_pixels(from_centre);
  const Part& part = part_of(job_.mask_at_zero, at_zero_);
  return {part.at(from_centre.x / kUnit, from_centre.y / kUnit), part.stride};
}

/// The row of the mask at block row y, filtered along x.
const uint16_t* BlockSamples::filtered_row(int32_t x_units, int32_t y) {
  if (x_units != filtered_units_) {
    filtered_units_ = x_units;
    std::fill(is_filtered_.begin(), is_filtered_.end(), false);
  }
  const auto place = static_cast<size_t>(y + reach_);
  uint16_t* out = filtered_.data() + place * static_cast<size_t>(padded_);
  if (is_filtered_[place]) return out;
  is_filtered_[place] = true;
  const Part& part = part_of(job_.mask, unfiltered_);
  const Step step = split_step(x_units);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  const uint16_t* here = part.at(step.pixel, y);
  const uint16_t* before = skips_weightless_ && taps.w[0] == 0 ? here : here - 1;
  const uint16_t* after = skips_weightless_ && taps.w[2] == 0 ? here : here + 1;
  match_lanes().tap_row(taps, before, here, after, padded_, out);
  return out;
}

MaskRows BlockSamples::between_pixels(const Vec3i& units) {
  const Step step = split_step(units.y);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  const bool reads_before = !skips_weightless_ || taps.w[0] != 0;
  const bool reads_after = !skips_weightless_ || taps.w[2] != 0;
  for (int32_t y = 0; y < block_.y; ++y) {
    const uint16_t* here = filtered_row(units.x, y + step.pixel);
    const uint16_t* before = reads_before ? filtered_row(units.x, y + step.pixel - 1) : here;
    const uint16_t* after = reads_after ? filtered_row(units.x, y + step.pixel + 1) : here;
    match_lanes().tap_row(taps, before, here, after, padded_, sampled_.data() + y * padded_);
  }
  return {sampled_.data(), padded_};
}

void BlockSamples::find_base(int64_t frame, int32_t block) {
  const FieldView view = view_of(job_, frame);
  const Vec3i centre = job_.grid->twice_centre(block);
  AxisWeights at[3];
  for (int axis = 0; axis < 3; ++axis) {
    at[axis] = axis_weights_at_half(view.axes[axis], view.border, centre[axis]);
  }
  base_at_centre_ = field_q16(field_sum(view, at[0], at[1], at[2]));
  std::vector<AxisWeights> columns;
  for (int32_t x = 0; x < block_.x; ++x) {
    columns.push_back(axis_weights(view.axes[0], view.border, start_.x + x));
  }
  base_.clear();
  for (int32_t y = 0; y < block_.y; ++y) {
    const AxisWeights row = axis_weights(view.axes[1], view.border, start_.y + y);
    for (const AxisWeights& column : columns) {
      base_.push_back(field_units(field_sum(view, column, row, at[2])));
    }
  }
}

MaskRows BlockSamples::over_base(const Vec3i& units) {
  const MaskView mask{job_.mask, job_.grid->image, &taps_, job_.config->border == Border::kClamp,
                      skips_weightless_};
  for (int32_t y = 0; y < block_.y; ++y) {
    for (int32_t x = 0; x < block_.x; ++x) {
      const Vec3i d = base_[static_cast<size_t>(y * block_.x + x)] + units;
      sampled_[static_cast<size_t>(y * padded_ + x)] =
          mask_sample(mask, (start_.x + x) * kUnit + d.x, (start_.y + y) * kUnit + d.y);
    }
  }
  return {sampled_.data(), padded_};
}

}  // namespace larch::dsa::cpu
