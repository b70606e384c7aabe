// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/sampling/block_samples.h"
#include "larch/dsa/sampling/sampling_math.h"

namespace larch::dsa {

/// mask_sample in a volume: filtered along x, y and z, in this order.
inline uint16_t volume_sample(const MaskView& mask, const Vec3i& units) {
  const Step sz = split_step(units.z);
  const Taps& tz = mask.taps->at[sz.fraction + kUnit / 2];
  uint32_t planes[3] = {};
  for (int k = 0; k < 3; ++k) {
    const int32_t z = sz.pixel + k - 1;
    if (z < 0 || z >= mask.size.z) return kNoSample;
    MaskView plane = mask;
    plane.samples += static_cast<int64_t>(z) * mask.size.x * mask.size.y;
    planes[k] = mask_sample(plane, units.x, units.y);
    if (planes[k] == kNoSample) return kNoSample;
  }
  return tap_sum(tz, planes[0], planes[1], planes[2]);
}

}  // namespace larch::dsa

namespace larch::dsa::cpu {

/// The samples of one block of a volume and of the mask at displacements of it: one per thread, for
/// block after block. As BlockSamples does for pictures.
class VolumeSamples {
 public:
  explicit VolumeSamples(const MatchJob& job);

  void move_to(int64_t frame, int32_t block);

  const Vec3i& block() const { return block_; }
  int64_t rows() const { return int64_t{block_.y} * block_.z; }
  int64_t padded_width() const { return padded_; }
  const uint16_t* contrast_row(int64_t row) const { return contrast_.data() + row * padded_; }
  uint32_t counted() const { return counted_; }
  Vec3i base_at_centre() const { return base_at_centre_; }
  MaskRows mask_at(const Vec3i& units);

 private:
  void find_base(int64_t frame, int32_t block);
  void copy_window();
  void copy_whole_pixels(const Vec3i& from_centre);
  void sample(const Vec3i& units);

  const MatchJob& job_;
  const TapTable taps_;
  const MaskView mask_;
  const Vec3i block_;
  const int64_t padded_;
  const int32_t reach_;  // of whole-pixel displacements from the middle of the window
  const FieldGrid base_places_;
  Vec3i start_{}, centre_{};
  uint32_t counted_ = 0;
  std::vector<uint16_t> contrast_;
  std::vector<uint16_t> sampled_;
  // mask_at_zero around the block, where displacements of whole pixels are copied from.
  bool has_window_ = false;
  Vec3i window_size_{};
  std::vector<uint16_t> window_{};
  Vec3i base_at_centre_{};
  std::vector<Vec3i> base_{};  // by voxel of the block, units
};

}  // namespace larch::dsa::cpu
