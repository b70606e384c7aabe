// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/data/vec.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/sampling/sampling_math.h"

namespace larch::dsa::cpu {

/// Copies `count` samples of a row of an image from a place on; kNoSample beyond the image.
void copy_row(const uint16_t* image, const Vec3i& size, const Vec3i& from, int32_t count,
              uint16_t* out);

/// Rows of a picture at a displacement: one per thread.
class DisplacedRows {
 public:
  explicit DisplacedRows(const Vec3i& size);
  /// Returns the width of a row, rounded up to whole lanes.
  int64_t padded() const { return padded_; }
  /// Returns row y from column x on, with a sample before it and whole lanes behind it; valid until
  /// the next call.
  const uint16_t* copied(const uint16_t* image, int32_t x, int32_t y);
  /// Returns the same filtered along x, then y; valid until the next call.
  const uint16_t* filtered(const uint16_t* image, int32_t x, int32_t y, const Taps& along_x,
                           const Taps& along_y);

 private:
  const Vec3i size_;
  const int64_t padded_;
  std::vector<uint16_t> copy_, filtered_[3], out_;
};

/// A rectangle of an image that may reach beyond it: a view where it does not, otherwise a copy.
class ImagePart {
 public:
  /// The rectangle of `columns` x `rows` pixels from `first` on. Pixels beyond the image are
  /// kNoSample.
  void take(const uint16_t* image, const Vec3i& size, const Vec3i& first, int32_t columns,
            int32_t rows);
  /// A pixel from there on, and those behind it in its row.
  const uint16_t* at(int32_t x, int32_t y) const { return origin_ + y * stride_ + x; }
  int64_t stride() const { return stride_; }

 private:
  const uint16_t* origin_ = nullptr;
  int64_t stride_ = 0;
  std::vector<uint16_t> copy_{};
};

/// Rows of mask samples below the rows of a block; padded_width() of each may be read.
struct MaskRows {
  const uint16_t* rows = nullptr;
  int64_t stride = 0;
};

/// The samples of one block of a picture or a volume, and of the mask at displacements of it, on
/// the CPU: one per thread, for block after block. The rows of a volume's planes follow each other.
class BlockSamples {
 public:
  explicit BlockSamples(const MatchJob& job);

  void move_to(int64_t frame, int32_t block);

  int32_t width() const { return block_.x; }
  int64_t rows() const { return int64_t{block_.y} * block_.z; }
  /// Returns the width of a block, rounded up to whole lanes; pixels beyond the block do not count.
  int64_t padded_width() const { return padded_; }
  const uint16_t* contrast_row(int64_t y) const { return contrast_.data() + y * padded_; }
  /// Contrast pixels that count.
  uint32_t counted() const { return counted_; }
  /// Returns the base field at the block's centre, Q16; 0 without one.
  const Vec3i& base_at_centre() const { return base_at_centre_; }

  /// Returns the mask at a displacement in units of 1/kUnit pixel, which adds to the base field;
  /// valid until the next call.
  MaskRows mask_at(const Vec3i& units);

 private:
  bool is_volume() const { return job_.grid->image.z > 1; }
  bool has_base() const { return job_.base.vectors != nullptr; }
  /// The first voxel of a row, from that of the block.
  Vec3i in_block(int64_t row) const;
  void copy_contrast(int64_t frame);
  void find_base(int64_t frame, int32_t block);
  void take_base_part();
  void take_parts();
  const uint16_t* filtered_row(int32_t x_units, int32_t y);
  void between_pixels(const Vec3i& units);
  void whole_voxels(const Vec3i& from_centre);
  void between_voxels(const Vec3i& units);

  const MatchJob& job_;
  const TapTable taps_;
  const Vec3i block_;
  const int64_t padded_;
  const int32_t reach_;  // of displacements from the middle of the window, in whole pixels
  const FieldGrid base_places_;
  Vec3i start_{}, centre_{}, base_at_centre_{};
  uint32_t counted_ = 0;
  std::vector<uint16_t> contrast_;
  std::vector<ImagePart> at_zero_{};  // by plane
  ImagePart unfiltered_{};
  // Rows of the mask filtered along x at one displacement, from block row -reach_ on, and which of
  // them are.
  int32_t filtered_units_ = 0;
  std::vector<uint16_t> filtered_{};
  std::vector<bool> is_filtered_{};
  std::vector<uint16_t> sampled_;
  std::vector<Vec3i> base_{};  // by pixel of the block, units
  // Pictures with a base field have here the base plus the pixel's position in the part, by padded
  // row.
  std::vector<int32_t> x_units_{}, y_units_{};
};

}  // namespace larch::dsa::cpu
