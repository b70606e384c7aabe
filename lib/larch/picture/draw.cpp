// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

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

namespace {

/// The dots of a character, rows from top to bottom: '#' is set.
using Glyph = std::array<std::string_view, kLetterHeight>;

// The characters of ASCII from the space to the tilde.
constexpr char kFirst = ' ', kLast = '~';
// clang-format off
constexpr Glyph kGlyphs[] = {
    {".....", ".....", ".....", ".....", ".....", ".....", "....."},
    {"..#..", "..#..", "..#..", "..#..", "..#..", ".....", "..#.."},
    {".#.#.", ".#.#.", ".....", ".....", ".....", ".....", "....."},
    {".#.#.", ".#.#.", "#####", ".#.#.", "#####", ".#.#.", ".#.#."},
    {"..#..", ".####", "#.#..", ".###.", "..#.#", "####.", "..#.."},
    {"##..#", "##.#.", "...#.", "..#..", ".#...", ".#.##", "#..##"},
    {".##..", "#..#.", "#.#..", ".#...", "#.#.#", "#..#.", ".##.#"},
    {"..#..", "..#..", ".....", ".....", ".....", ".....", "....."},
    {"...#.", "..#..", ".#...", ".#...", ".#...", "..#..", "...#."},
    {".#...", "..#..", "...#.", "...#.", "...#.", "..#..", ".#..."},
    {".....", "#.#.#", ".###.", "#####", ".###.", "#.#.#", "....."},
    {".....", "..#..", "..#..", "#####", "..#..", "..#..", "....."},
    {".....", ".....", ".....", ".....", ".....", "..#..", ".#..."},
    {".....", ".....", ".....", "#####", ".....", ".....", "....."},
    {".....", ".....", ".....", ".....", ".....", ".....", "..#.."},
    {"....#", "....#", "...#.", "..#..", ".#...", "#....", "#...."},
    {".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."},
    {"..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."},
    {".###.", "#...#", "....#", "..##.", ".#...", "#....", "#####"},
    {".###.", "#...#", "....#", "..##.", "....#", "#...#", ".###."},
    {"...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."},
    {"#####", "#....", "####.", "....#", "....#", "#...#", ".###."},
    {".###.", "#....", "#....", "####.", "#...#", "#...#", ".###."},
    {"#####", "....#", "...#.", "...#.", "..#..", "..#..", "..#.."},
    {".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."},
    {".###.", "#...#", "#...#", ".####", "....#", "....#", ".###."},
    {".....", ".....", "..#..", ".....", ".....", "..#..", "....."},
    {".....", ".....", "..#..", ".....", ".....", "..#..", ".#..."},
    {"...#.", "..#..", ".#...", "#....", ".#...", "..#..", "...#."},
    {".....", ".....", "#####", ".....", "#####", ".....", "....."},
    {".#...", "..#..", "...#.", "....#", "...#.", "..#..", ".#..."},
    {".###.", "#...#", "....#", "...#.", "..#..", ".....", "..#.."},
    {".###.", "#...#", "#.###", "#.#.#", "#.###", "#....", ".####"},
    {".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"},
    {"####.", "#...#", "#...#", "####.", "#...#", "#...#", "####."},
    {".####", "#....", "#....", "#....", "#....", "#....", ".####"},
    {"####.", "#...#", "#...#", "#...#", "#...#", "#...#", "####."},
    {"#####", "#....", "#....", "####.", "#....", "#....", "#####"},
    {"#####", "#....", "#....", "####.", "#....", "#....", "#...."},
    {".####", "#....", "#....", "#..##", "#...#", "#...#", ".####"},
    {"#...#", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"},
    {".###.", "..#..", "..#..", "..#..", "..#..", "..#..", ".###."},
    {"..###", "...#.", "...#.", "...#.", "...#.", "#..#.", ".##.."},
    {"#...#", "#..#.", "#.#..", "##...", "#.#..", "#..#.", "#...#"},
    {"#....", "#....", "#....", "#....", "#....", "#....", "#####"},
    {"#...#", "##.##", "#.#.#", "#.#.#", "#...#", "#...#", "#...#"},
    {"#...#", "##..#", "##..#", "#.#.#", "#..##", "#..##", "#...#"},
    {".###.", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."},
    {"####.", "#...#", "#...#", "####.", "#....", "#....", "#...."},
    {".###.", "#...#", "#...#", "#...#", "#.#.#", "#..#.", ".##.#"},
    {"####.", "#...#", "#...#", "####.", "#.#..", "#..#.", "#...#"},
    {".####", "#....", "#....", ".###.", "....#", "....#", "####."},
    {"#####", "..#..", "..#..", "..#..", "..#..", "..#..", "..#.."},
    {"#...#", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."},
    {"#...#", "#...#", "#...#", "#...#", ".#.#.", ".#.#.", "..#.."},
    {"#...#", "#...#", "#...#", "#.#.#", "#.#.#", "##.##", "#...#"},
    {"#...#", "#...#", ".#.#.", "..#..", ".#.#.", "#...#", "#...#"},
    {"#...#", "#...#", ".#.#.", "..#..", "..#..", "..#..", "..#.."},
    {"#####", "....#", "...#.", "..#..", ".#...", "#....", "#####"},
    {".###.", ".#...", ".#...", ".#...", ".#...", ".#...", ".###."},
    {"#....", "#....", ".#...", "..#..", "...#.", "....#", "....#"},
    {".###.", "...#.", "...#.", "...#.", "...#.", "...#.", ".###."},
    {"..#..", ".#.#.", "#...#", ".....", ".....", ".....", "....."},
    {".....", ".....", ".....", ".....", ".....", ".....", "#####"},
    {".#...", "..#..", ".....", ".....", ".....", ".....", "....."},
    {".....", ".....", ".###.", "....#", ".####", "#...#", ".####"},
    {"#....", "#....", "####.", "#...#", "#...#", "#...#", "####."},
    {".....", ".....", ".####", "#....", "#....", "#....", ".####"},
    {"....#", "....#", ".####", "#...#", "#...#", "#...#", ".####"},
    {".....", ".....", ".###.", "#...#", "#####", "#....", ".###."},
    {"..##.", ".#...", ".#...", "####.", ".#...", ".#...", ".#..."},
    {".....", ".####", "#...#", "#...#", ".####", "....#", ".###."},
    {"#....", "#....", "#.##.", "##..#", "#...#", "#...#", "#...#"},
    {"..#..", ".....", ".##..", "..#..", "..#..", "..#..", ".###."},
    {"...#.", ".....", "..##.", "...#.", "...#.", "#..#.", ".##.."},
    {"#....", "#....", "#..#.", "#.#..", "##...", "#.#..", "#..#."},
    {".##..", "..#..", "..#..", "..#..", "..#..", "..#..", ".###."},
    {".....", ".....", "##.#.", "#.#.#", "#.#.#", "#.#.#", "#.#.#"},
    {".....", ".....", "####.", "#...#", "#...#", "#...#", "#...#"},
    {".....", ".....", ".###.", "#...#", "#...#", "#...#", ".###."},
    {".....", "####.", "#...#", "#...#", "####.", "#....", "#...."},
    {".....", ".####", "#...#", "#...#", ".####", "....#", "....#"},
    {".....", ".....", "#.##.", "##...", "#....", "#....", "#...."},
    {".....", ".....", ".####", "#....", ".###.", "....#", "####."},
    {".#...", ".#...", "####.", ".#...", ".#...", ".#...", "..##."},
    {".....", ".....", "#...#", "#...#", "#...#", "#...#", ".####"},
    {".....", ".....", "#...#", "#...#", ".#.#.", ".#.#.", "..#.."},
    {".....", ".....", "#...#", "#.#.#", "#.#.#", "#.#.#", ".#.#."},
    {".....", ".....", "#...#", ".#.#.", "..#..", ".#.#.", "#...#"},
    {".....", "#...#", "#...#", ".####", "....#", "....#", ".###."},
    {".....", ".....", "#####", "...#.", "..#..", ".#...", "#####"},
    {"...#.", "..#..", "..#..", ".#...", "..#..", "..#..", "...#."},
    {"..#..", "..#..", "..#..", "..#..", "..#..", "..#..", "..#.."},
    {".#...", "..#..", "..#..", "...#.", "..#..", "..#..", ".#..."},
    {".....", ".....", ".#...", "#.#.#", "...#.", ".....", "....."},
};
// clang-format on
static_assert(std::size(kGlyphs) == kLast - kFirst + 1);

/// Null for what is no printable character of ASCII.
const Glyph* find_glyph(char character) {
  if (character < kFirst || character > kLast) return nullptr;
  return &kGlyphs[character - kFirst];
}

/// False for NaN too. Farther away, positions no longer tell neighbouring pixels apart.
bool is_near(const Pixel& p) {
  return std::abs(p.x) <= kFarthest && std::abs(p.y) <= kFarthest;
}

/// Cuts the line down to the picture and a rim of one pixel; false if nothing is left (Liang and
/// Barsky, ACM Transactions on Graphics 3(1), 1984).
bool clip(const RgbImage& image, Pixel& from, Pixel& to) {
  double first = 0, last = 1;
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double step[4] = {-dx, dx, -dy, dy};
  const double room[4] = {from.x + 1, image.width - from.x, from.y + 1, image.height - from.y};
  for (int side = 0; side < 4; ++side) {
    if (step[side] == 0) {
      if (room[side] < 0) return false;
    } else if (step[side] < 0) {
      first = std::max(first, room[side] / step[side]);
    } else {
      last = std::min(last, room[side] / step[side]);
    }
  }
  if (!(first <= last)) return false;
  const Pixel start = from;
  from = {start.x + first * dx, start.y + first * dy};
  to = {start.x + last * dx, start.y + last * dy};
  return true;
}

/// Returns the pixels of a range of positions that are in the picture.
std::pair<int, int> inside(double a, double b, int size) {
  const auto [low, high] = std::minmax(a, b);
  return {static_cast<int>(std::lround(std::clamp(low, -1.0, static_cast<double>(size)))),
          static_cast<int>(std::lround(std::clamp(high, -1.0, static_cast<double>(size))))};
}

void fill_square(RgbImage& image, int x, int y, int size, Rgb colour) {
  for (int v = y; v < y + size; ++v) {
    for (int u = x; u < x + size; ++u) put(image, u, v, colour);
  }
}

void draw_character(RgbImage& image, int x, int y, char character, int scale, int grow,
                    Rgb colour) {
  const Glyph* glyph = find_glyph(character);
  if (glyph == nullptr) glyph = find_glyph('?');
  for (int row = 0; row < kLetterHeight; ++row) {
    for (int column = 0; column < kLetterWidth; ++column) {
      if ((*glyph)[static_cast<size_t>(row)][static_cast<size_t>(column)] != '#') continue;
      fill_square(image, x + column * scale - grow, y + row * scale - grow, scale + 2 * grow,
                  colour);
    }
  }
}

}  // namespace

void draw_line(RgbImage& image, Pixel from, Pixel to, Rgb colour) {
  if (!is_near(from) || !is_near(to) || !clip(image, from, to)) return;
  const double dx = to.x - from.x, dy = to.y - from.y;
  const int steps = static_cast<int>(std::lround(std::ceil(std::max(std::abs(dx), std::abs(dy)))));
  for (int i = 0; i <= steps; ++i) {
    const double t = steps == 0 ? 0 : static_cast<double>(i) / steps;
    put(image, static_cast<int>(std::lround(from.x + t * dx)),
        static_cast<int>(std::lround(from.y + t * dy)), colour);
  }
}

void draw_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour) {
  if (!is_near(corner) || !is_near(opposite)) return;
  const Pixel right_top{opposite.x, corner.y}, left_bottom{corner.x, opposite.y};
  const Pixel around[] = {corner, right_top, opposite, left_bottom, corner};
  for (int side = 0; side < 4; ++side) draw_line(image, around[side], around[side + 1], colour);
}

void fill_box(RgbImage& image, Pixel corner, Pixel opposite, Rgb colour) {
  if (!is_near(corner) || !is_near(opposite)) return;
  const auto [left, right] = inside(corner.x, opposite.x, image.width);
  const auto [top, bottom] = inside(corner.y, opposite.y, image.height);
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) put(image, x, y, colour);
  }
}

void draw_point(RgbImage& image, Pixel centre, int radius, Rgb colour) {
  radius = std::clamp(radius, 0, kMaximumPixels);
  const double far = radius + 2;
  if (!is_near(centre) || centre.x < -far || centre.y < -far || centre.x > image.width + far ||
      centre.y > image.height + far) {
    return;
  }
  const int x = static_cast<int>(std::lround(centre.x)),
            y = static_cast<int>(std::lround(centre.y));
  const auto disc = [&](int r, Rgb with) {
    for (int v = -r; v <= r; ++v) {
      for (int u = -r; u <= r; ++u) {
        if (u * u + v * v <= r * r + r) put(image, x + u, y + v, with);
      }
    }
  };
  disc(radius + 1, kBlack);
  disc(radius, colour);
}

void draw_text(RgbImage& image, int x, int y, std::string_view text, int scale, Rgb colour,
               bool rim) {
  for (const bool under : {true, false}) {
    if (under && !rim) continue;
    for (size_t i = 0; i < text.size(); ++i) {
      const int64_t left = x + static_cast<int64_t>(i) * (kLetterWidth + 1) * scale;
      if (left >= image.width) break;
      draw_character(image, static_cast<int>(left), y, text[i], scale, under ? 1 : 0,
                     under ? kBlack : colour);
    }
  }
}

int text_width(std::string_view text, int scale) {
  const auto letters = static_cast<int>(std::min<size_t>(text.size(), kMaximumPixels));
  return letters == 0 ? 0 : (letters * (kLetterWidth + 1) - 1) * scale;
}

}  // namespace larch::picture
