// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/montage.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "larch/core/error.h"
#include "larch/picture/draw.h"

namespace larch::picture {
namespace {

constexpr int kGap = 4;     // pixels between panels
constexpr int kTitle = 14;  // pixels above them: letters of 7 dots and room around them

/// How the pixels of a panel become those of the picture: `shrink` of them one, or one `grow`.
struct Scale {
  int shrink = 1, grow = 1;
  int width = 0, height = 0;  ///< of a panel in the picture

  /// Position in the panel of a position in what it shows; centres have whole numbers.
  double place(double at) const { return (at + 0.5) * grow / shrink - 0.5; }
};

Scale make_scale(const MontageOptions& options) {
  Scale scale;
  const int most = std::max(options.most_panel_width, 1);
  scale.shrink = (options.width + most - 1) / most;
  if (scale.shrink == 1) scale.grow = std::max(1, most / options.width);
  scale.width = std::max(1, options.width / scale.shrink) * scale.grow;
  scale.height = std::max(1, options.height / scale.shrink) * scale.grow;
  return scale;
}

uint8_t shade(double value, const std::array<double, 2>& window) {
  const double share = (value - window[0]) / (window[1] - window[0]);
  return static_cast<uint8_t>(std::lround(std::clamp(share, 0.0, 1.0) * 255));
}

/// The mean of the pixels that become one; those at the edge that make no whole one are left out.
double mean_at(const Panel& panel, const MontageOptions& options, int shrink, int x, int y) {
  int64_t sum = 0, count = 0;
  for (int v = y * shrink; v < std::min((y + 1) * shrink, options.height); ++v) {
    for (int u = x * shrink; u < std::min((x + 1) * shrink, options.width); ++u, ++count) {
      sum += panel.pixels[static_cast<size_t>(v) * static_cast<size_t>(options.width) +
                          static_cast<size_t>(u)];
    }
  }
  return static_cast<double>(sum) / static_cast<double>(count);
}

void draw_arrow(RgbImage& image, Pixel from, Pixel to, Rgb colour) {
  draw_line(image, from, to, colour);
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::sqrt(dx * dx + dy * dy);
  if (!(length >= 3)) return;
  const double u = dx / length, v = dy / length, head = std::min(4.0, 0.5 * length);
  draw_line(image, to, {to.x - head * (u - 0.5 * v), to.y - head * (v + 0.5 * u)}, colour);
  draw_line(image, to, {to.x - head * (u + 0.5 * v), to.y - head * (v - 0.5 * u)}, colour);
}

void draw_panel(RgbImage& image, const Panel& panel, const MontageOptions& options,
                const Scale& scale, int left) {
  for (int y = 0; y < scale.height; ++y) {
    for (int x = 0; x < scale.width; ++x) {
      const double value = mean_at(panel, options, scale.shrink, x / scale.grow, y / scale.grow);
      const uint8_t grey = shade(value, options.window);
      put(image, left + x, kTitle + y, {grey, grey, grey});
    }
  }
  for (const Arrow& arrow : panel.arrows) {
    const Pixel from{left + scale.place(arrow.x), kTitle + scale.place(arrow.y)};
    const double times = options.arrow_scale * scale.grow / scale.shrink;
    draw_arrow(image, from, {from.x + times * arrow.dx, from.y + times * arrow.dy}, arrow.colour);
  }
}

}  // namespace

RgbImage montage(std::span<const Panel> panels, const MontageOptions& options) {
  if (panels.empty() || options.width < 1 || options.height < 1) {
    throw UsageError("a montage of " + std::to_string(panels.size()) + " pictures of " +
                     std::to_string(options.width) + "x" + std::to_string(options.height) +
                     " pixels");
  }
  const Scale scale = make_scale(options);
  const auto count = static_cast<int>(panels.size());
  RgbImage image = make_canvas(count * (scale.width + kGap) - kGap, kTitle + scale.height);
  for (int k = 0; k < count; ++k) {
    const Panel& panel = panels[static_cast<size_t>(k)];
    if (panel.pixels.size() !=
        static_cast<size_t>(options.width) * static_cast<size_t>(options.height)) {
      throw std::logic_error("a panel that is not as large as the others");
    }
    const int left = k * (scale.width + kGap);
    draw_panel(image, panel, options, scale, left);
    // Arrows may end in the gap or in the titles: these are drawn last.
    if (k > 0) fill_box(image, {left - 4.0, 0}, {left - 1.0, image.height - 1.0}, kBlack);
    fill_box(image, {double(left), 0}, {left + scale.width - 1.0, kTitle - 1.0}, kBlack);
    draw_text(image, left + 3, 3, panel.title, 1, kWhite);
  }
  return image;
}

std::array<double, 2> percentile_window(std::span<const int16_t> pixels, double low, double high,
                                        bool is_difference) {
  if (!(low >= 0 && low < high && high <= 1)) {
    throw UsageError("a window from a share of " + std::to_string(low) + " to " +
                     std::to_string(high) + " of the pixels");
  }
  if (pixels.empty()) return {0, 1};
  std::vector<int64_t> counts(65536, 0);
  for (const int16_t pixel : pixels) ++counts[static_cast<size_t>(pixel + 32768)];
  const auto at_share = [&](double share) {
    const auto wanted = static_cast<int64_t>(share * static_cast<double>(pixels.size() - 1));
    int64_t seen = 0;
    for (size_t k = 0; k < counts.size(); ++k) {
      seen += counts[k];
      if (seen > wanted) return static_cast<double>(k) - 32768;
    }
    return 32767.0;
  };
  std::array<double, 2> window{at_share(low), at_share(high)};
  if (is_difference) {
    const double reach = std::max({std::fabs(window[0]), std::fabs(window[1]), 0.5});
    window = {-reach, reach};
  }
  if (window[1] - window[0] < 1) window[1] = window[0] + 1;
  return window;
}

}  // namespace larch::picture
