// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/picture/draw.h"

// Pictures of one size side by side in one grey scale: before and after.
namespace larch::picture {

/// An arrow over a panel, in pixels of what the panel shows.
struct Arrow {
  double x = 0, y = 0;    ///< its tail
  double dx = 0, dy = 0;  ///< to its head
  Rgb colour{255, 220, 60};
};

struct Panel {
  std::string title{};
  std::span<const int16_t> pixels{};  ///< rows from top to bottom
  std::vector<Arrow> arrows{};
};

struct MontageOptions {
  int width = 0, height = 0;           ///< of what each panel shows, pixels
  std::array<double, 2> window{0, 0};  ///< [0] and below is black, [1] and above white
  int most_panel_width = 640;          ///< pictures are shrunk to it by whole factors
  double arrow_scale = 1;              ///< arrows are drawn longer than they are
};

/// Returns the panels from left to right, their titles above. Shrunk pixels are means, pictures of
/// less than half of most_panel_width are enlarged by whole factors; the same panels are the same
/// bytes everywhere. An arrow that would be shorter than a pixel is a dot. Throws UsageError for no
/// panels and for pictures that do not fit kMaximumPixels, std::logic_error for panels of other
/// sizes.
RgbImage montage(std::span<const Panel> panels, const MontageOptions& options);

/// Returns the values below which a share of `low` and of `high` of the pixels lie, at least 1
/// apart. Symmetric about 0 if `is_difference`: grey is then no difference. Throws UsageError
/// unless 0 <= low < high <= 1.
std::array<double, 2> percentile_window(std::span<const int16_t> pixels, double low, double high,
                                        bool is_difference);

}  // namespace larch::picture
