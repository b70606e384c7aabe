// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/text.h"

#include <array>
#include <string_view>

namespace larch::picture {
namespace {

using Glyph = std::array<std::string_view, kLetterHeight>;

const Glyph* find_glyph(char letter) {
  static constexpr Glyph kR{"####.", "#...#", "#...#", "####.", "#.#..", "#..#.", "#...#"};
  static constexpr Glyph kL{"#....", "#....", "#....", "#....", "#....", "#....", "#####"};
  static constexpr Glyph kA{".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"};
  static constexpr Glyph kP{"####.", "#...#", "#...#", "####.", "#....", "#....", "#...."};
  static constexpr Glyph kS{".####", "#....", "#....", ".###.", "....#", "....#", "####."};
  static constexpr Glyph kI{".###.", "..#..", "..#..", "..#..", "..#..", "..#..", ".###."};
  switch (letter) {
    case 'R':
      return &kR;
    case 'L':
      return &kL;
    case 'A':
      return &kA;
    case 'P':
      return &kP;
    case 'S':
      return &kS;
    case 'I':
      return &kI;
    default:
      return nullptr;
  }
}

void fill(RgbImage& image, int x, int y, int size, uint8_t value) {
  for (int v = y; v < y + size; ++v) {
    for (int u = x; u < x + size; ++u) {
      if (u < 0 || v < 0 || u >= image.width || v >= image.height) continue;
      const size_t at = 3 * (static_cast<size_t>(v) * image.width + u);
      image.rgb[at] = image.rgb[at + 1] = image.rgb[at + 2] = value;
    }
  }
}

}  // namespace

void draw_letter(RgbImage& image, int x, int y, char letter, int scale) {
  const Glyph* glyph = find_glyph(letter);
  if (glyph == nullptr) return;
  for (const bool rim : {true, false}) {
    for (int row = 0; row < kLetterHeight; ++row) {
      for (int column = 0; column < kLetterWidth; ++column) {
        if ((*glyph)[row][column] != '#') continue;
        const int grow = rim ? 1 : 0;
        fill(image, x + column * scale - grow, y + row * scale - grow, scale + 2 * grow,
             rim ? 0 : 255);
      }
    }
  }
}

}  // namespace larch::picture
