// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "larch/data/vec.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/match_lanes.h"

namespace larch::dsa::cpu {

/// A rectangle of an image that may reach beyond it: a view where it does not, otherwise a copy.
class ImagePart {
 public:
  /// The rectangle of `columns` x `rows` pixels from (x0, y0) on. Pixels beyond the image are
  /// kNoSample.
  void take(const uint16_t* image, const Vec3i& size, int32_t x0, int32_t y0, int32_t columns,
            int32_t rows);
  /// A pixel from (x0, y0), and those behind it in its row.
  const uint16_t* at(int32_t x, int32_t y) const { return origin_ + y * stride_ + x; }
  int64_t stride() const { return stride_; }

 private:
  const uint16_t* origin_ = nullptr;
  int64_t stride_ = 0;
  std::vector<uint16_t> copy_{};
};

/// The mask below a block at the vectors of an earlier pass, on the CPU: one per thread, for block
/// after block.
class BaseSamples {
 public:
  /// `job` has a base field.
  explicit BaseSamples(const MatchJob& job);

  /// Finds the vectors of a block's pixels. `reach`: displacements are so many pixels from the
  /// middle of the window at most.
  void move_to(int64_t frame, int32_t block, int32_t reach);
  /// The base field at the block's centre, Q16 pixels.
  const Vec3i& at_centre() const { return at_centre_; }
  /// The mask at base + displacement (units), rows of `padded` samples; what lies beyond the
  /// block's width has no meaning.
  void sample(const Vec3i& units, int64_t padded, uint16_t* out) const;

 private:
  void find_vectors(int64_t frame, int32_t block, int64_t padded);
  void take_part(const Vec3i& centre, int32_t reach);

  const MatchJob& job_;
  const std::vector<LaneTaps> taps_;
  const FieldGrid places_;
  Vec3i start_{}, at_centre_{};
  ImagePart part_{};
  // By pixel of the block, rows padded to whole lanes: base + the pixel's position in the part.
  std::vector<int32_t> x_units_{}, y_units_{};
};

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
  /// Returns the width of a block, rounded up to whole lanes; pixels beyond the block do not count.
  int64_t padded_width() const { return padded_; }
  const uint16_t* contrast_row(int64_t y) const { return contrast_.data() + y * padded_; }
  /// Contrast pixels that count.
  uint32_t counted() const { return counted_; }
  /// Returns the base field at the block's centre, Q16; 0 without one.
  Vec3i base_at_centre() const { return base_ ? base_->at_centre() : Vec3i{}; }

  /// Returns the mask at a displacement in units of 1/kUnit pixel, which adds to the base field;
  /// valid until the next call.
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
