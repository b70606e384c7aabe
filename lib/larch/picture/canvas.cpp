// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/canvas.h"

#include <array>
#include <string>

#include "larch/core/error.h"

namespace larch::picture {

RgbImage make_canvas(int width, int height, Rgb colour) {
  if (width < 1 || height < 1 || width > kMaximumPixels || height > kMaximumPixels) {
    throw UsageError("a picture of " + std::to_string(width) + "x" + std::to_string(height) +
                     " pixels; both sides are from 1 to " + std::to_string(kMaximumPixels));
  }
  RgbImage image{width, height, {}};
  image.rgb.resize(3 * static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) put(image, x, y, colour);
  }
  return image;
}

Rgb pixel_at(const RgbImage& image, int x, int y) {
  const size_t at =
      3 * (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x));
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

Rgb palette_colour(int64_t number) {
  static constexpr std::array<Rgb, 8> kPalette{Rgb{255, 80, 80}, {80, 220, 80},   {80, 160, 255},
                                               {255, 220, 60},   {255, 110, 220}, {70, 230, 230},
                                               {255, 150, 50},   {180, 130, 255}};
  const int64_t turn = (number - 1) % 8;
  return kPalette[static_cast<size_t>(turn < 0 ? turn + 8 : turn)];
}

}  // namespace larch::picture
