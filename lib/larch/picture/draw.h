// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "larch/picture/canvas.h"
#include "larch/picture/font.h"

namespace larch::picture {

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

/// Lines from each point to the next.
void draw_lines(RgbImage& image, std::span<const Pixel> points, Rgb colour);

/// The outline of a box with the given corners, both included.
void draw_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour);

/// The same, filled.
void fill_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour);

/// A disc of the given radius (0: one pixel) with a black rim of one pixel.
void draw_point(RgbImage& image, Pixel centre, int radius, Rgb colour);

/// A line of text in letters of 5 x 7 dots of `scale` pixels, one dot apart, its top left corner at
/// (x, y); with a black rim of one pixel if `rim`. Bytes that are no printable ASCII are drawn as
/// question marks.
void draw_text(RgbImage& image, int x, int y, std::string_view text, int scale, Rgb colour,
               bool rim = false);

/// The width of a text in pixels.
int text_width(std::string_view text, int scale);

}  // namespace larch::picture
