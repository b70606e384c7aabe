// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "larch/data/rgb_image.h"

namespace larch::picture {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;

  friend bool operator==(const Rgb& a, const Rgb& b) = default;
};

constexpr Rgb kBlack{0, 0, 0}, kWhite{255, 255, 255};

/// The longest side of a picture, in pixels.
constexpr int kMaximumPixels = 4096;

/// Returns a picture of one colour. Throws UsageError unless both sides are from 1 to
/// kMaximumPixels.
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

/// Returns the colour of a pixel that lies inside.
Rgb pixel_at(const RgbImage& image, int x, int y);

/// Returns the colour of a curve or structure that has none of its own: eight of them in turn, from
/// 1 on.
Rgb palette_colour(int64_t number);

// Everything that is drawn over a picture. Positions are in pixels from its top left corner and may
// lie outside: only what is inside is drawn. What has a position that is NaN, or more than
// kFarthest away, is not drawn at all. Nothing is smoothed, so that the same drawing is the same
// bytes everywhere.

constexpr double kFarthest = 1e9;  ///< pixels

struct Pixel {
  double x = 0, y = 0;  ///< centres of pixels have whole numbers
};

/// A line of one pixel width, both ends included.
void draw_line(RgbImage& image, Pixel from, Pixel to, Rgb colour);

/// The outline of a box with the given corners, both included.
void draw_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour);

/// The same, filled.
void fill_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour);

/// A disc of the given radius (0: one pixel) with a black rim of one pixel.
void draw_point(RgbImage& image, Pixel centre, int radius, Rgb colour);

constexpr int kLetterWidth = 5, kLetterHeight = 7;  ///< dots

/// A line of text in letters of 5 x 7 dots of `scale` pixels, one dot apart, its top left corner at
/// (x, y); with a black rim of one pixel if `rim`. Bytes that are no printable ASCII are drawn as
/// question marks.
void draw_text(RgbImage& image, int x, int y, std::string_view text, int scale, Rgb colour,
               bool rim = false);

/// Returns the width of a text in pixels.
int text_width(std::string_view text, int scale);

}  // namespace larch::picture
