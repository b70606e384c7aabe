// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/volume_samples.h"

#include <algorithm>

#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/search_math.h"

namespace larch::dsa::cpu {

VolumeSamples::VolumeSamples(const MatchJob& job)
    : job_(job),
      taps_(gain_taps()),
      mask_{job.mask, job.grid->image, &taps_},
      block_(job.grid->block),
      padded_(whole_lanes(job.grid->block.x)),
      reach_(job.range + 1),
      base_places_(job.base.grid == nullptr ? FieldGrid{}
                                            : make_field_grid(*job.base.grid, Device::cpu())),
      contrast_(static_cast<size_t>(padded_ * rows()), kNoSample),
      sampled_(static_cast<size_t>(padded_ * rows()), kNoSample) {}

void VolumeSamples::move_to(int64_t frame, int32_t block) {
  start_ = job_.grid->start(block);
  centre_ = job_.centre == nullptr ? Vec3i{} : job_.centre[frame];
  has_window_ = false;
  const Vec3i& image = job_.grid->image;
  const uint16_t* volume =
      job_.contrast + frame * static_cast<int64_t>(image.x) * image.y * image.z;
  counted_ = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t y = start_.y + row % block_.y, z = start_.z + row / block_.y;
    const uint16_t* from = volume + (z * image.y + y) * image.x + start_.x;
    std::copy_n(from, block_.x, contrast_.data() + row * padded_);
    counted_ += static_cast<uint32_t>(block_.x - std::count(from, from + block_.x, kNoSample));
  }
  if (job_.base.vectors != nullptr) find_base(frame, block);
}

void VolumeSamples::find_base(int64_t frame, int32_t block) {
  const FieldView view = base_places_.view(job_.base.vectors + frame * job_.base.grid->blocks(),
                                           border_field_of(*job_.config, /*is_volume=*/true));
  const Vec3i centre = job_.grid->twice_centre(block);
  AxisWeights at[3];
  for (int axis = 0; axis < 3; ++axis) {
    at[axis] = axis_weights_at_half(view.axes[axis], view.border, centre[axis]);
  }
  base_at_centre_ = field_q16(field_sum(view, at[0], at[1], at[2]));
  base_.clear();
  for (int64_t row = 0; row < rows(); ++row) {
    const auto y = static_cast<int32_t>(start_.y + row % block_.y);
    const auto z = static_cast<int32_t>(start_.z + row / block_.y);
    const AxisWeights wy = axis_weights(view.axes[1], view.border, y);
    const AxisWeights wz = axis_weights(view.axes[2], view.border, z);
    for (int32_t x = 0; x < block_.x; ++x) {
      const AxisWeights wx = axis_weights(view.axes[0], view.border, start_.x + x);
      base_.push_back(field_units(field_sum(view, wx, wy, wz)));
    }
  }
}

void VolumeSamples::copy_window() {
  if (has_window_) return;
  has_window_ = true;
  const Vec3i& image = job_.grid->image;
  window_size_ = block_ + Vec3i{2 * reach_, 2 * reach_, 2 * reach_};
  window_.clear();
  const auto is_inside = [](int32_t at, int32_t size) { return at >= 0 && at < size; };
  const Vec3i first = start_ + centre_ - Vec3i{reach_, reach_, reach_};
  for (int32_t z = first.z; z < first.z + window_size_.z; ++z) {
    for (int32_t y = first.y; y < first.y + window_size_.y; ++y) {
      const bool has_row = is_inside(z, image.z) && is_inside(y, image.y);
      const int64_t row = (static_cast<int64_t>(z) * image.y + y) * image.x;
      for (int32_t x = first.x; x < first.x + window_size_.x; ++x) {
        const bool has_sample = has_row && is_inside(x, image.x);
        window_.push_back(has_sample ? job_.mask_at_zero[row + x] : kNoSample);
      }
    }
  }
}

void VolumeSamples::copy_whole_pixels(const Vec3i& from_centre) {
  copy_window();
  const Vec3i first = from_centre + Vec3i{reach_, reach_, reach_};
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t y = first.y + row % block_.y, z = first.z + row / block_.y;
    const uint16_t* from = window_.data() + (z * window_size_.y + y) * window_size_.x + first.x;
    std::copy_n(from, block_.x, sampled_.data() + row * padded_);
  }
}

void VolumeSamples::sample(const Vec3i& units) {
  const bool has_base = job_.base.vectors != nullptr;
  size_t voxel = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    const Vec3i at{start_.x, static_cast<int32_t>(start_.y + row % block_.y),
                   static_cast<int32_t>(start_.z + row / block_.y)};
    uint16_t* out = sampled_.data() + row * padded_;
    for (int32_t x = 0; x < block_.x; ++x, ++voxel) {
      const Vec3i d = has_base ? units + base_[voxel] : units;
      out[x] = volume_sample(mask_, (at + Vec3i{x, 0, 0}) * kUnit + d);
    }
  }
}

MaskRows VolumeSamples::mask_at(const Vec3i& units) {
  const Vec3i from_centre = units - centre_ * kUnit;
  const bool is_whole =
      from_centre.x % kUnit == 0 && from_centre.y % kUnit == 0 && from_centre.z % kUnit == 0;
  if (is_whole && job_.base.vectors == nullptr) {
    copy_whole_pixels(from_centre / kUnit);
  } else {
    sample(units);
  }
  return {sampled_.data(), padded_};
}

}  // namespace larch::dsa::cpu
