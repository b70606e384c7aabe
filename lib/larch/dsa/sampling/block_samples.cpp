// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/block_samples.h"

#include <algorithm>

#include "larch/dsa/match/search_math.h"

namespace larch::dsa::cpu {
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
