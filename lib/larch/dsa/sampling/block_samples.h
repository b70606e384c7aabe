// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "larch/dsa/match/match.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/sampling/base_samples.h"
#include "larch/dsa/sampling/image_part.h"

namespace larch::dsa::cpu {

/// Rows of mask samples below the rows of a block; padded_width() of each may be read.
struct MaskRows {
  const uint16_t* rows = nullptr;
  int64_t stride = 0;
};

/// The samples of one block and of the mask at displacements of it, on the CPU: one per thread, for
/// block after block.
class BlockSamples {
 public:
  explicit BlockSamples(const MatchJob& job);

  void move_to(int64_t frame, int32_t block);

  const Vec3i& block() const { return block_; }
  int64_t rows() const { return block_.y; }
  /// The width of a block, rounded up to whole lanes; pixels beyond the block do not count.
  int64_t padded_width() const { return padded_; }
  const uint16_t* contrast_row(int64_t y) const { return contrast_.data() + y * padded_; }
  /// Contrast pixels that count.
  uint32_t counted() const { return counted_; }
  /// The base field at the block's centre, Q16; 0 without one.
  Vec3i base_at_centre() const { return base_ ? base_->at_centre() : Vec3i{}; }

  /// The mask at a displacement in units of 1/kUnit pixel, which adds to the base field; valid
  /// until the next call.
  MaskRows mask_at(const Vec3i& units);

 private:
  void copy_contrast(int64_t frame);
  /// The part of an image that displacements reach: (reach_, reach_) is the block's first pixel at
  /// the middle of the window.
  const ImagePart& part_of(const uint16_t* image, ImagePart& part, bool& is_taken);
  const uint16_t* filtered_row(int32_t x_units, int32_t y);
  MaskRows between_pixels(const Vec3i& units);

  const MatchJob& job_;
  const TapTable taps_;
  const Vec3i block_;
  const int64_t padded_;
  const int32_t reach_;  // of displacements from the middle of the window, in whole pixels
  Vec3i start_{}, centre_{};
  uint32_t counted_ = 0;
  std::vector<uint16_t> contrast_;
  ImagePart at_zero_{}, unfiltered_{};
  bool has_at_zero_ = false, has_unfiltered_ = false;
  // Rows of the mask filtered along x at one displacement, from block row -reach_ on, and which of
  // them are.
  int32_t filtered_units_ = 0;
  std::vector<uint16_t> filtered_{};
  std::vector<bool> is_filtered_{};
  std::vector<uint16_t> sampled_;
  std::optional<BaseSamples> base_{};
};

}  // namespace larch::dsa::cpu
