// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "larch/data/rgb_image.h"

namespace larch::picture {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;

  friend bool operator==(const Rgb& a, const Rgb& b) = default;
};

constexpr Rgb kBlack{0, 0, 0}, kWhite{255, 255, 255};

/// The longest side of a picture, in pixels.
constexpr int kMaximumPixels = 4096;

/// A picture of one colour. Throws UsageError unless both sides are from 1 to kMaximumPixels.
RgbImage make_canvas(int width, int height, Rgb colour = kBlack);

/// Colours one pixel; what lies outside is left out.
inline void put(RgbImage& image, int x, int y, Rgb colour) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
  uint8_t* pixel =
      image.rgb.data() +
      3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x));
  pixel[0] = colour.r;
  pixel[1] = colour.g;
  pixel[2] = colour.b;
}

/// The colour of a pixel that lies inside.
Rgb pixel_at(const RgbImage& image, int x, int y);

/// The colour of a curve or structure that has none of its own: eight of them in turn, from 1 on.
Rgb palette_colour(int64_t number);

}  // namespace larch::picture
