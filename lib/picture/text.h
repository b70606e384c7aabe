// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "larch/core/rgb_image.h"

namespace larch::picture {

struct Rgb {
  uint8_t r = 0, g = 0, b = 0;
};

/// Draws text with a built-in 5x7 font (capitals, digits, space, and . - + = : / %; other
/// characters are drawn as a box), its top left corner at (x, y), each dot `scale` pixels wide.
/// What lies outside the picture is cut off.
struct TextStyle {
  Rgb colour{255, 255, 255};
  int scale = 1;
};
void draw_text(RgbImage& image, int x, int y, std::string_view text, const TextStyle& style);

/// Width of the text in pixels; its height is 7 * scale.
int text_width(std::string_view text, int scale);

}  // namespace larch::picture
