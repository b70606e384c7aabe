// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/block_samples.h"

#include <algorithm>

#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/samples.h"

namespace larch::dsa::cpu {

void copy_row(const uint16_t* image, const Vec3i& size, const Vec3i& from, int32_t count,
              uint16_t* out) {
  const bool is_inside = from.y >= 0 && from.y < size.y && from.z >= 0 && from.z < size.z;
  const int32_t first = is_inside ? std::clamp(-from.x, 0, count) : count;  // in the image
  const int32_t end = is_inside ? std::clamp(size.x - from.x, first, count) : count;
  std::fill(out, out + first, kNoSample);
  if (first < end) {
    const int64_t row = (static_cast<int64_t>(from.z) * size.y + from.y) * size.x + from.x;
    std::copy(image + (row + first), image + (row + end), out + first);
  }
  std::fill(out + end, out + count, kNoSample);
}

DisplacedRows::DisplacedRows(const Vec3i& size)
    : size_(size),
      padded_(whole_lanes(size.x)),
      copy_(static_cast<size_t>(padded_ + 2 * kLanes), kNoSample),
      out_(static_cast<size_t>(padded_)) {
  for (auto& row : filtered_) row.resize(static_cast<size_t>(padded_));
}

const uint16_t* DisplacedRows::copied(const uint16_t* image, int32_t x, int32_t y) {
  uint16_t* out = copy_.data() + kLanes;
  copy_row(image, size_, {x - 1, y, 0}, size_.x + 2, out - 1);
  return out;
}

const uint16_t* DisplacedRows::filtered(const uint16_t* image, int32_t x, int32_t y,
                                        const Taps& along_x, const Taps& along_y) {
  for (int j = 0; j < 3; ++j) {
    const uint16_t* here = copied(image, x, y + j - 1);
    match_lanes().tap_row(along_x, here - 1, here, here + 1, padded_, filtered_[j].data());
  }
  match_lanes().tap_row(along_y, filtered_[0].data(), filtered_[1].data(), filtered_[2].data(),
                        padded_, out_.data());
  return out_.data();
}

void ImagePart::take(const uint16_t* image, const Vec3i& size, const Vec3i& first, int32_t columns,
                     int32_t rows) {
  if (first.x >= 0 && first.y >= 0 && first.z >= 0 && int64_t{first.x} + columns <= size.x &&
      int64_t{first.y} + rows <= size.y && first.z < size.z) {
    stride_ = size.x;
    origin_ = image + (static_cast<int64_t>(first.z) * size.y + first.y) * stride_ + first.x;
    return;
  }
  stride_ = columns;
  copy_.resize(static_cast<size_t>(stride_ * rows));
  origin_ = copy_.data();
  for (int32_t j = 0; j < rows; ++j) {
    copy_row(image, size, first + Vec3i{0, j, 0}, columns, copy_.data() + j * stride_);
  }
}

BlockSamples::BlockSamples(const MatchJob& job)
    : job_(job),
      taps_(gain_taps()),
      block_(job.grid->block),
      padded_(whole_lanes(job.grid->block.x)),
      reach_(job.range + 3),
      base_places_(has_base() ? make_field_grid(*job.base.grid, Device::cpu()) : FieldGrid{}),
      contrast_(static_cast<size_t>(padded_ * rows()), kNoSample),
      sampled_(static_cast<size_t>(padded_ * rows()), kNoSample) {
  const size_t filtered = static_cast<size_t>(block_.y) + 2 * static_cast<size_t>(reach_);
  filtered_.resize(filtered * static_cast<size_t>(padded_));
  is_filtered_.resize(filtered);
}

void BlockSamples::move_to(int64_t frame, int32_t block) {
  start_ = job_.grid->start(block);
  centre_ = job_.centre == nullptr ? Vec3i{} : job_.centre[frame];
  std::fill(is_filtered_.begin(), is_filtered_.end(), false);
  copy_contrast(frame);
  if (has_base()) {
    find_base(frame, block);
  } else {
    take_parts();
  }
}

Vec3i BlockSamples::in_block(int64_t row) const {
  const auto number = static_cast<int32_t>(row);
  return {0, number % block_.y, number / block_.y};
}

void BlockSamples::copy_contrast(int64_t frame) {
  const Vec3i& image = job_.grid->image;
  const uint16_t* contrast =
      job_.contrast + frame * static_cast<int64_t>(image.x) * image.y * image.z;
  counted_ = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    uint16_t* out = contrast_.data() + row * padded_;
    copy_row(contrast, image, start_ + in_block(row), block_.x, out);
    counted_ += static_cast<uint32_t>(block_.x - std::count(out, out + block_.x, kNoSample));
  }
}

void BlockSamples::find_base(int64_t frame, int32_t block) {
  const FieldView view = base_places_.view(job_.base.vectors + frame * job_.base.grid->blocks(),
                                           border_field_of(*job_.config, is_volume()));
  base_at_centre_ = field_q16(field_sum_at_half(view, job_.grid->twice_centre(block)));
  find_field_in_box(view, start_, block_, base_);
  if (!is_volume()) take_base_part();
}

/// Takes the part of the mask that displacements reach, and counts positions from its corner.
void BlockSamples::take_base_part() {
  x_units_.clear();
  y_units_.clear();
  const Vec3i* base = base_.data();
  for (int32_t y = 0; y < block_.y; ++y) {
    for (int32_t x = 0; x < block_.x; ++x, ++base) {
      x_units_.push_back((start_.x + x) * kUnit + base->x);
      y_units_.push_back((start_.y + y) * kUnit + base->y);
    }
    const auto row_end = static_cast<size_t>((y + 1) * padded_);
    x_units_.resize(row_end, x_units_.back());
    y_units_.resize(row_end, y_units_.back());
  }
  const auto [least_x, most_x] = std::minmax_element(x_units_.begin(), x_units_.end());
  const auto [least_y, most_y] = std::minmax_element(y_units_.begin(), y_units_.end());
  // Taps before and after, and one sample more behind, which loads of pairs touch.
  const int32_t x0 = split_step(*least_x).pixel + centre_.x - reach_ - 1;
  const int32_t y0 = split_step(*least_y).pixel + centre_.y - reach_ - 1;
  const int32_t x1 = split_step(*most_x).pixel + centre_.x + reach_ + 2;
  const int32_t y1 = split_step(*most_y).pixel + centre_.y + reach_ + 2;
  unfiltered_.take(job_.mask, job_.grid->image, {x0, y0, 0}, x1 - x0 + 1, y1 - y0 + 1);
  for (int32_t& x : x_units_) x -= x0 * kUnit;
  for (int32_t& y : y_units_) y -= y0 * kUnit;
}

/// The parts of the mask that displacements reach: (reach_, reach_, reach_) is the block's first
/// voxel at the middle of the window, or (reach_, reach_, 0) in a picture.
void BlockSamples::take_parts() {
  const int32_t depth = is_volume() ? reach_ : 0;
  const Vec3i first = start_ + centre_ - Vec3i{reach_, reach_, depth};
  const int32_t columns = static_cast<int32_t>(padded_) + 2 * reach_, rows = block_.y + 2 * reach_;
  const int32_t planes = block_.z + 2 * depth;
  at_zero_.resize(static_cast<size_t>(planes));
  for (int32_t z = 0; z < planes; ++z) {
    at_zero_[static_cast<size_t>(z)].take(job_.mask_at_zero, job_.grid->image,
                                          first + Vec3i{0, 0, z}, columns, rows);
  }
  if (!is_volume()) unfiltered_.take(job_.mask, job_.grid->image, first, columns, rows);
}

MaskRows BlockSamples::mask_at(const Vec3i& units) {
  const Vec3i from_centre = units - centre_ * kUnit;
  const bool is_whole =
      !has_base() && units.x % kUnit == 0 && units.y % kUnit == 0 && units.z % kUnit == 0;
  if (is_volume()) {
    is_whole ? whole_voxels(from_centre / kUnit) : between_voxels(units);
  } else if (has_base()) {
    const WarpPart part{unfiltered_.at(0, 0), unfiltered_.stride(), taps_.at};
    match_lanes().warp_row(part, units, x_units_.data(), y_units_.data(), padded_ * block_.y,
                           sampled_.data());
  } else if (is_whole) {
    const ImagePart& part = at_zero_.front();
    return {part.at(reach_ + from_centre.x / kUnit, reach_ + from_centre.y / kUnit), part.stride()};
  } else {
    between_pixels(from_centre);
  }
  return {sampled_.data(), padded_};
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
  const Step step = split_step(x_units);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  const uint16_t* here = unfiltered_.at(reach_ + step.pixel, reach_ + y);
  match_lanes().tap_row(taps, here - 1, here, here + 1, padded_, out);
  return out;
}

void BlockSamples::between_pixels(const Vec3i& units) {
  const Step step = split_step(units.y);
  const Taps& taps = taps_.at[step.fraction + kUnit / 2];
  for (int32_t y = 0; y < block_.y; ++y) {
    const uint16_t* here = filtered_row(units.x, y + step.pixel);
    const uint16_t* before = filtered_row(units.x, y + step.pixel - 1);
    const uint16_t* after = filtered_row(units.x, y + step.pixel + 1);
    match_lanes().tap_row(taps, before, here, after, padded_, sampled_.data() + y * padded_);
  }
}

void BlockSamples::whole_voxels(const Vec3i& from_centre) {
  const Vec3i from = from_centre + Vec3i{reach_, reach_, reach_};
  uint16_t* out = sampled_.data();
  const ImagePart* plane = at_zero_.data() + from.z;
  for (int32_t z = 0; z < block_.z; ++z, ++plane) {
    for (int32_t y = 0; y < block_.y; ++y, out += padded_) {
      std::copy_n(plane->at(from.x, from.y + y), block_.x, out);
    }
  }
}

void BlockSamples::between_voxels(const Vec3i& units) {
  const MaskView mask{job_.mask, job_.grid->image, &taps_};
  size_t voxel = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    for (int32_t x = 0; x < block_.x; ++x, ++voxel) {
      const Vec3i at = start_ + in_block(row) + Vec3i{x, 0, 0};
      const Vec3i d = has_base() ? units + base_[voxel] : units;
      sampled_[static_cast<size_t>(row * padded_ + x)] = volume_sample(mask, at * kUnit + d);
    }
  }
}

}  // namespace larch::dsa::cpu
