// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/data/rgb_image.h"

// Frames of a subtraction as pictures, without correction, after the rigid shift and corrected, and
// their vectors as CSV.
namespace larch::pipeline {

/// The part number `at` of parts of `count` values; nothing if there is no such part.
template <class T>
std::span<const T> part_of(const std::vector<T>& all, size_t at, size_t count) {
  if (all.size() < (at + 1) * count) return {};
  return std::span(all).subspan(at * count, count);
}

/// Returns the first line of the grid: frame (as in the file, counted from 0), block (i, j, of
/// volumes k), its centre, vector and vector before repair in pixels, similarity at the start
/// vector and at the vector found (EHD or entropy), confidence, pixels that count, share of them
/// beyond the bins, and status: ok, replaced (by its neighbours), unreliable (its vector is that of
/// its neighbours too) or outside.
std::string grid_header(bool is_volume);

/// Returns the lines of the blocks of one frame. The same numbers are the same text on every
/// machine.
std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric);

/// Returns a vector in pixels.
inline Vec3d pixels_of_q16(const Vec3i& q16) {
  return q16.cast<double>() / (1 << dsa::kVectorBits);
}

/// One frame in three ways.
struct PreviewFrame {
  int frame = 0;  ///< in the file, counted from 0
  Vec3i size{};
  std::vector<int16_t> uncorrected{}, corrected{};
  std::vector<int16_t> shifted{};  ///< may be empty: of volumes
  std::vector<Vec3i> vectors{};    ///< Q16, by block; may be empty
};
/// Returns a copy of frame `at` of a batch, or of a slice of a volume. `size`: of a frame.
PreviewFrame preview_frame(int frame, const dsa::SubtractedFrames& result, size_t at,
                           const Vec3i& size, std::span<const Vec3i> vectors);

/// Draws the panels of a frame side by side in one window, which holds 99 of 100 pixels of the
/// corrected one about its middle, with the vectors over the corrected one, three times as long as
/// they are.
RgbImage preview_picture(const PreviewFrame& frame, const dsa::BlockGrid& grid);

/// Frames of an animation, made smaller as they come, so that a long sequence takes little memory.
class AnimationFrames {
 public:
  /// `count`: of all frames; of more than kMaximumFrames every second, third... is kept.
  AnimationFrames(const Vec3i& size, int64_t count);
  /// The next frame of the sequence, which is frame `at` of a batch.
  void add(const dsa::SubtractedFrames& result, size_t at);
  /// The animation as GIF; frames follow each other after `frame_ms`.
  void write(const std::string& path, double frame_ms) const;

  static constexpr int64_t kMaximumFrames = 240;
  static constexpr int kMaximumPixels = 256;  ///< of a panel's side

 private:
  std::vector<int16_t> shrunk(std::span<const int16_t> frame) const;
  Vec3i whole_;  // size of a frame
  int64_t stride_;
  int shrink_;
  Vec3i size_;                                  // of a panel
  int64_t added_ = 0;                           // frames
  std::vector<std::vector<int16_t>> frames_{};  // three per picture
};

}  // namespace larch::pipeline
