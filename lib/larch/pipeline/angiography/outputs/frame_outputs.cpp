// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/frame_outputs.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/picture/animation.h"
#include "larch/picture/montage.h"

namespace larch::pipeline {
namespace {

constexpr double kLow = 0.005, kHigh = 0.995;  // of the pixels, for windows
constexpr double kArrowScale = 3;
constexpr double kMinimumDelayMs = 20;
constexpr int kPanelSide = 640;  // pixels at most, of a preview

std::vector<picture::Arrow> arrows_of(const PreviewFrame& frame, const dsa::BlockGrid& grid) {
  std::vector<picture::Arrow> arrows;
  if (frame.vectors.size() != static_cast<size_t>(grid.blocks())) return arrows;
  for (int32_t i = 0; i < grid.blocks(); ++i) {
    const Vec3d centre = grid.twice_centre(i).cast<double>() / 2;
    const Vec3d v = pixels_of_q16(frame.vectors[static_cast<size_t>(i)]);
    arrows.push_back({centre.x, centre.y, v.x, v.y});
  }
  return arrows;
}

/// Returns the panels of a frame: two where it has no shifted picture.
std::vector<picture::Panel> panels_of(std::span<const int16_t> uncorrected,
                                      std::span<const int16_t> shifted,
                                      std::span<const int16_t> corrected) {
  std::vector<picture::Panel> panels{{"before", uncorrected, {}}};
  if (!shifted.empty()) panels.push_back({"shifted", shifted, {}});
  panels.push_back({"corrected", corrected, {}});
  return panels;
}

/// Panels whose longer side is at most `side` pixels, or one shrunk pixel wide. The window is that
/// of the pixels `corrected`.
picture::MontageOptions montage_of(const Vec3i& size, std::span<const int16_t> corrected,
                                   int side) {
  const int64_t width = size.y <= size.x ? side : int64_t{side} * size.x / size.y;
  return {.width = size.x,
          .height = size.y,
          .window = picture::percentile_window(corrected, kLow, kHigh, /*is_difference=*/true),
          .most_panel_width = static_cast<int>(std::max<int64_t>(1, width)),
          .arrow_scale = kArrowScale};
}

const char* status_of(const dsa::BlockMatch& match) {
  if ((match.flags & dsa::kBlockOutside) != 0) return "outside";
  if ((match.flags & dsa::kBlockOfFrame) != 0) return "frame";
  if ((match.flags & dsa::kBlockUnreliable) != 0) return "unreliable";
  return (match.flags & dsa::kBlockReplaced) != 0 ? "replaced" : "ok";
}

/// One per axis; those of the third axis for volumes alone.
template <class T>
void add_numbers(std::string& text, const char* format, const Vec3<T>& v, bool is_volume) {
  for (int axis = 0; axis < (is_volume ? 3 : 2); ++axis) {
    text += formatted(format, v[axis]) + ",";
  }
}

size_t pixels_of(const Vec3i& size) {
  return static_cast<size_t>(size.x) * static_cast<size_t>(size.y);
}

}  // namespace

std::string grid_header(bool is_volume) {
  const std::string rest = "score0,score,sd_least,sd_most,n,overflow,status\n";
  return is_volume ? "frame,i,j,k,cx,cy,cz,dx,dy,dz,dx_raw,dy_raw,dz_raw," + rest
                   : "frame,i,j,cx,cy,dx,dy,dx_raw,dy_raw," + rest;
}

std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric) {
  const bool is_volume = grid.image.z > 1;
  std::string text;
  for (size_t i = 0; i < matches.size(); ++i) {
    const dsa::BlockMatch& match = matches[i];
    const auto block = static_cast<int32_t>(i);
    text += std::to_string(frame) + ",";
    add_numbers(text, "%d", grid.at(block), is_volume);
    add_numbers(text, "%.1f", grid.twice_centre(block).cast<double>() / 2, is_volume);
    add_numbers(text, "%.4f", pixels_of_q16(match.vector), is_volume);
    add_numbers(text, "%.4f", pixels_of_q16(match.found), is_volume);
    const double counted = std::max<double>(match.best.count, 1);
    text += formatted("%.8f,%.8f,%.4f,%.4f,%u,%.4f,%s\n", dsa::similarity_of(match.before, metric),
                      dsa::similarity_of(match.best, metric),
                      static_cast<double>(match.least_deviation_px),
                      static_cast<double>(match.most_deviation_px), match.counted,
                      match.overflow / counted, status_of(match));
  }
  return text;
}

PreviewFrame preview_frame(int frame, const dsa::SubtractedFrames& result, size_t at,
                           const Vec3i& size, std::span<const Vec3i> vectors) {
  const auto copy = [&](const std::vector<int16_t>& all) {
    const auto part = part_of(all, at, pixels_of(size));
    return std::vector<int16_t>(part.begin(), part.end());
  };
  return {frame,
          size,
          copy(result.uncorrected),
          copy(result.difference),
          copy(result.shifted),
          {vectors.begin(), vectors.end()}};
}

RgbImage preview_picture(const PreviewFrame& frame, const dsa::BlockGrid& grid) {
  auto panels = panels_of(frame.uncorrected, frame.shifted, frame.corrected);
  panels.back().title += ", frame " + std::to_string(frame.frame + 1);
  panels.back().arrows = arrows_of(frame, grid);
  return picture::montage(panels, montage_of(frame.size, frame.corrected, kPanelSide));
}

AnimationFrames::AnimationFrames(const Vec3i& size, int64_t count)
    : whole_(size),
      stride_((count + kMaximumFrames - 1) / kMaximumFrames),
      shrink_((std::max(size.x, size.y) + kMaximumPixels - 1) / kMaximumPixels),
      size_{std::max(1, size.x / shrink_), std::max(1, size.y / shrink_), 1} {}

std::vector<int16_t> AnimationFrames::shrunk(std::span<const int16_t> frame) const {
  std::vector<int16_t> out;
  for (int y = 0; y < size_.y; ++y) {
    for (int x = 0; x < size_.x; ++x) {
      int32_t sum = 0, count = 0;
      for (int v = y * shrink_; v < std::min((y + 1) * shrink_, whole_.y); ++v) {
        for (int u = x * shrink_; u < std::min((x + 1) * shrink_, whole_.x); ++u, ++count) {
          sum += frame[static_cast<size_t>(v) * static_cast<size_t>(whole_.x) +
                       static_cast<size_t>(u)];
        }
      }
      out.push_back(static_cast<int16_t>(sum / count));
    }
  }
  return out;
}

void AnimationFrames::add(const dsa::SubtractedFrames& result, size_t at) {
  if (added_++ % stride_ != 0) return;
  for (const auto* all : {&result.uncorrected, &result.shifted, &result.difference}) {
    frames_.push_back(shrunk(part_of(*all, at, pixels_of(whole_))));
  }
}

void AnimationFrames::write(const std::string& path, double frame_ms) const {
  std::vector<int16_t> all;
  for (size_t i = 2; i < frames_.size(); i += 3) {
    all.insert(all.end(), frames_[i].begin(), frames_[i].end());
  }
  const picture::MontageOptions options = montage_of(size_, all, kMaximumPixels);
  const double delay = std::max(frame_ms * static_cast<double>(stride_), kMinimumDelayMs);
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
