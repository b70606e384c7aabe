// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/angiography_preview.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "larch/core/error.h"
#include "larch/picture/animation.h"
#include "larch/picture/montage.h"

namespace larch::pipeline {
namespace {

constexpr double kLow = 0.005, kHigh = 0.995;  // of the pixels, for windows
constexpr double kArrowScale = 3;
constexpr double kLeastDelayMs = 20;
constexpr int kPanelSide = 640;  // pixels at most, of a preview

std::vector<picture::Arrow> arrows_of(const PreviewFrame& frame, const dsa::BlockGrid& grid) {
  std::vector<picture::Arrow> arrows;
  if (frame.vectors.size() != static_cast<size_t>(grid.blocks())) return arrows;
  for (int32_t i = 0; i < grid.blocks(); ++i) {
    const Vec3i centre = grid.twice_centre(i), v = frame.vectors[static_cast<size_t>(i)];
    picture::Arrow arrow;
    arrow.x = centre.x / 2.0;
    arrow.y = centre.y / 2.0;
    arrow.dx = v.x / 65536.0;
    arrow.dy = v.y / 65536.0;
    arrows.push_back(arrow);
  }
  return arrows;
}

/// Without the second where there is none.
std::vector<picture::Panel> panels_of(std::span<const int16_t> uncorrected,
                                      std::span<const int16_t> shifted,
                                      std::span<const int16_t> corrected) {
  std::vector<picture::Panel> panels{{"before", uncorrected, {}}};
  if (!shifted.empty()) panels.push_back({"shifted", shifted, {}});
  panels.push_back({"corrected", corrected, {}});
  return panels;
}

/// Panels whose longer side is at most `side` pixels, or one shrunk pixel wide.
int panel_width(const Vec3i& size, int side) {
  if (size.y <= size.x) return side;
  return std::max<int>(1, static_cast<int>(int64_t{side} * size.x / size.y));
}

}  // namespace

RgbImage preview_picture(const PreviewFrame& frame, const dsa::BlockGrid& grid) {
  auto panels = panels_of(frame.uncorrected, frame.shifted, frame.corrected);
  panels.back().title += ", frame " + std::to_string(frame.frame + 1);
  panels.back().arrows = arrows_of(frame, grid);
  picture::MontageOptions options;
  options.width = frame.size.x;
  options.height = frame.size.y;
  options.window = picture::percentile_window(frame.corrected, kLow, kHigh, true);
  options.most_panel_width = panel_width(frame.size, kPanelSide);
  options.arrow_scale = kArrowScale;
  return picture::montage(panels, options);
}

AnimationFrames::AnimationFrames(const Vec3i& size, int64_t count)
    : size_(size),
      rows_(size.y),
      stride_((count + kMostFrames - 1) / kMostFrames),
      shrink_((std::max(size.x, size.y) + kMostPixels - 1) / kMostPixels) {
  size_ = {std::max(1, size.x / shrink_), std::max(1, size.y / shrink_), 1};
}

std::vector<int16_t> AnimationFrames::shrunk(std::span<const int16_t> frame) const {
  const size_t width = frame.size() / static_cast<size_t>(rows_);
  std::vector<int16_t> out;
  out.reserve(static_cast<size_t>(size_.x) * static_cast<size_t>(size_.y));
  for (int y = 0; y < size_.y; ++y) {
    for (int x = 0; x < size_.x; ++x) {
      int32_t sum = 0, count = 0;
      for (int v = y * shrink_; v < std::min((y + 1) * shrink_, rows_); ++v) {
        for (int u = x * shrink_; u < std::min((x + 1) * shrink_, static_cast<int>(width)); ++u) {
          sum += frame[static_cast<size_t>(v) * width + static_cast<size_t>(u)];
          ++count;
        }
      }
      out.push_back(static_cast<int16_t>(sum / std::max(count, 1)));
    }
  }
  return out;
}

void AnimationFrames::add(int64_t number, std::span<const int16_t> uncorrected,
                          std::span<const int16_t> shifted, std::span<const int16_t> corrected) {
  if (number % stride_ != 0) return;
  for (const auto& frame : {uncorrected, shifted, corrected}) frames_.push_back(shrunk(frame));
}

void AnimationFrames::write(const std::string& path, double frame_ms) const {
  std::vector<int16_t> all;
  for (size_t i = 2; i < frames_.size(); i += 3) {
    all.insert(all.end(), frames_[i].begin(), frames_[i].end());
  }
  picture::MontageOptions options;
  options.width = size_.x;
  options.height = size_.y;
  options.most_panel_width = panel_width(size_, kMostPixels);
  options.window = picture::percentile_window(all, kLow, kHigh, true);
  const double delay = std::max(frame_ms * static_cast<double>(stride_), kLeastDelayMs);
  std::ofstream file(path, std::ios::binary);
  for (size_t i = 0; i + 2 < frames_.size(); i += 3) {
    const RgbImage image =
        picture::montage(panels_of(frames_[i], frames_[i + 1], frames_[i + 2]), options);
    if (i == 0) file << picture::gif_header(image.width, image.height, {});
    file << picture::gif_frame(image, {}, delay);
  }
  file << picture::gif_end();
  file.close();
  if (!file) throw OutputError("cannot write '" + path + "'");
}

}  // namespace larch::pipeline
