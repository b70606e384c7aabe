// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/data/rgb_image.h"
#include "larch/dsa/sequence.h"

// Pictures of a subtraction: without correction, after the rigid shift, and corrected.
namespace larch::pipeline {

/// One frame in three ways.
struct PreviewFrame {
  int frame = -1;  ///< in the file, counted from 0; below 0: none yet
  Vec3i size{};
  std::vector<int16_t> uncorrected{}, corrected{};
  std::vector<int16_t> shifted{};  ///< may be empty: of volumes
  std::vector<Vec3i> vectors{};    ///< Q16, by block; may be empty
};

/// They side by side in one window, which holds 99 of 100 pixels of the corrected one about
/// its middle, with the vectors over the corrected one, three times as long as they are.
RgbImage preview_picture(const PreviewFrame& frame, const dsa::BlockGrid& grid);

/// Frames of an animation, made smaller as they come, so that a long sequence takes little memory.
class AnimationFrames {
 public:
  /// `count`: of all frames; of more than kMostFrames every second, third... is kept.
  AnimationFrames(const Vec3i& size, int64_t count);
  /// The next frame; `number` counts the frames of the sequence from 0.
  void add(int64_t number, std::span<const int16_t> uncorrected, std::span<const int16_t> shifted,
           std::span<const int16_t> corrected);
  /// The animation as GIF; frames follow each other after `frame_ms`.
  void write(const std::string& path, double frame_ms) const;

  static constexpr int64_t kMostFrames = 240;
  static constexpr int kMostPixels = 256;  ///< of a panel's side

 private:
  std::vector<int16_t> shrunk(std::span<const int16_t> frame) const;
  Vec3i size_;  // of a panel
  int rows_;    // of a frame
  int64_t stride_ = 1;
  int shrink_ = 1;
  std::vector<std::vector<int16_t>> frames_{};  // three per picture
};

}  // namespace larch::pipeline
