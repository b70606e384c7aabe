// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/picture/plot.h"
#include "larch/picture/slice_view.h"
#include "tests/unit/picture/picture_digest.h"

namespace larch::picture {
namespace {

constexpr Rgb kRed{255, 0, 0};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The picture as rows of '#' and '.'.
std::vector<std::string> rows_of(const RgbImage& image) {
  std::vector<std::string> rows;
  for (int y = 0; y < image.height; ++y) {
    rows.emplace_back();
    for (int x = 0; x < image.width; ++x) {
      rows.back() += pixel_at(image, x, y) == kBlack ? '.' : '#';
    }
  }
  return rows;
}

int64_t count(const RgbImage& image, Rgb colour) {
  int64_t n = 0;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) n += pixel_at(image, x, y) == colour;
  }
  return n;
}

using test::digest_of;

TEST_CASE("lines, boxes and points, pixel by pixel") {
  RgbImage image = make_canvas(7, 5);
  draw_line(image, {0, 0}, {6, 3}, kRed);
  CHECK(rows_of(image) ==
        std::vector<std::string>{"#......", ".##....", "...##..", ".....##", "......."});
  image = make_canvas(7, 5);
  draw_line(image, {3, 4}, {3, 4}, kRed);
  CHECK(count(image, kRed) == 1);
  image = make_canvas(7, 5);
  draw_box(image, {1, 1}, {5, 3}, kRed);
  CHECK(rows_of(image) ==
        std::vector<std::string>{".......", ".#####.", ".#...#.", ".#####.", "......."});
  fill_box(image, {5, 3}, {1, 1}, kRed);
  CHECK(count(image, kRed) == 15);
  image = make_canvas(7, 7, kWhite);
  draw_point(image, {3, 3}, 1, kRed);
  CHECK(count(image, kRed) == 9);
  CHECK(count(image, kBlack) > 8);
  CHECK(pixel_at(image, 3, 3) == kRed);
}

TEST_CASE("what lies outside is left out, however far") {
  RgbImage image = make_canvas(8, 8);
  const double far = 1e9, too_far = 1e10;
  draw_line(image, {-far, 4}, {far, 4}, kRed);
  CHECK(count(image, kRed) == 8);
  draw_line(image, {-1e9, -1e9}, {1e9, 1e9}, kWhite);
  CHECK(count(image, kWhite) == 8);
  const RgbImage before = image;
  for (const double x : {kInfinity, -kInfinity, std::nan("")}) {
    draw_line(image, {x, 0}, {3, 3}, kRed);
    draw_point(image, {3, x}, 2, kRed);
    fill_box(image, {x, 1}, {2, 2}, kRed);
    draw_box(image, {1, x}, {2, 2}, kRed);
  }
  draw_line(image, {-5, -9}, {-1e8, 3}, kRed);
  draw_point(image, {far, far}, 3, kRed);
  draw_line(image, {-too_far, 4}, {too_far, 4}, kRed);
  draw_point(image, {1e6, 2}, 3, kRed);
  draw_text(image, 100, 100, "out", 1, kRed);
  draw_text(image, -5000, 0, "out", 1, kRed);
  CHECK(image.rgb == before.rgb);
  fill_box(image, {-far, -far}, {far, far}, kRed);
  CHECK(count(image, kRed) == 64);
  CHECK_THROWS_AS(make_canvas(0, 5), UsageError);
  CHECK_THROWS_AS(make_canvas(5, kMaximumPixels + 1), UsageError);
}

TEST_CASE("every printable character is drawn, each in its own way") {
  std::set<std::string> seen;
  for (char c = ' '; c <= '~'; ++c) {
    RgbImage image = make_canvas(kLetterWidth, kLetterHeight);
    draw_text(image, 0, 0, {&c, 1}, 1, kRed);
    seen.insert(digest_of(image));
    CHECK((count(image, kRed) > 0) == (c != ' '));
  }
  CHECK(seen.size() == 95);
  RgbImage strange = make_canvas(20, 9), marks = make_canvas(20, 9);
  draw_text(strange, 0, 0, "\n\xc3\xa4", 1, kRed);
  draw_text(marks, 0, 0, "???", 1, kRed);
  CHECK(strange.rgb == marks.rgb);
  CHECK(text_width("", 3) == 0);
  CHECK(text_width("ab", 2) == 22);
}

TEST_CASE("a place in the world is seen where the slice shows it") {
  Grid grid;
  grid.size = {40, 33, 27};
  grid.spacing_mm = {0.9, 1.25, 2.5};
  grid.origin_mm = {-10, 20, 5};
  grid.direction = {{{0.6, 0, -0.8}, {-0.8, 0, -0.6}, {0, 1, 0}}};
  std::vector<SliceView> views = orthogonal_views(grid, {20, 16, 13});
  REQUIRE(views.size() == 3);
  lay_out(views, 600);
  for (const SliceView& view : views) {
    for (const auto& [x, y] : {std::pair{0, 0}, {view.width - 1, 3}, {17, view.height - 1}}) {
      const Vec3d index = index_of_pixel(view, x, y);
      const Seen seen = pixel_of_world(view, world_from_index(grid, index));
      CHECK(seen.pixel.x == Approx(view.left + x).margin(1e-9));
      CHECK(seen.pixel.y == Approx(view.top + y).margin(1e-9));
      CHECK(seen.off_slice_mm == Approx(0).margin(1e-9));
    }
    Vec3d off{5, 5, 5};
    off[view.normal] = view.position + 2;
    CHECK(pixel_of_world(view, world_from_index(grid, off)).off_slice_mm ==
          Approx(2 * grid.spacing_mm[view.normal]));
  }
}

TEST_CASE("boxes are drawn over a slice") {
  Grid grid;
  grid.size = {50, 50, 20};
  std::vector<SliceView> views = orthogonal_views(grid, {25, 25, 10});
  RgbImage boxes = lay_out(views, 300);
  const SliceView& axial = views[0];
  const Pose pose{{25, 25, 10}, {}, {20, 10, 6}};
  draw_pose(boxes, axial, pose, kRed);
  RgbImage wanted = lay_out(views, 300);
  draw_box(wanted, pixel_of_world(axial, {15, 20, 10}).pixel,
           pixel_of_world(axial, {35, 30, 10}).pixel, kRed);
  CHECK(boxes.rgb == wanted.rgb);  // seen along z, the edges along z are points
  CHECK(count(boxes, kRed) > 50);
}

TEST_CASE("ticks are round numbers within the range") {
  CHECK(ticks(0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1});
  CHECK(ticks(-3, 17, 5) == std::vector<double>{0, 5, 10, 15});
  CHECK(ticks(0.0013, 0.0021, 4) == std::vector<double>{0.0014, 0.0016, 0.0018, 0.002});
  CHECK(ticks(0, 1e6, 2) == std::vector<double>{0, 5e5, 1e6});
  CHECK(ticks(3, 3, 4).empty());
  for (const double far : {1e-250, 1e15, 1e250}) CHECK(ticks(-far, far, 6).size() >= 4);
}

TEST_CASE("a plot shows its curves, and the same curves are the same bytes") {
  Curve loss{"training loss", {}, {}, {}}, held{"held out", {}, {}, Rgb{0, 0, 255}};
  for (int i = 0; i < 60; ++i) {
    loss.x.push_back(i);
    loss.y.push_back(1.0 / (1 + i));
    held.x.push_back(i);
    held.y.push_back(i == 30 ? std::nan("") : 0.25 + 0.5 / (1 + i));
  }
  PlotOptions options;
  options.width = 480;
  options.height = 300;
  options.title = "History";
  options.x_label = "round";
  options.y_label = "log-loss";
  const Curve curves[] = {loss, held};
  const RgbImage image = plot(curves, options);
  CHECK(image.width == 480);
  CHECK(count(image, palette_colour(1)) > 200);
  CHECK(count(image, {0, 0, 255}) > 200);
  CHECK(digest_of(image) == "8c85ac7d80baa06b");
  // Without a name there is no legend, without points the axes go from 0 to 1.
  const RgbImage empty = plot({}, options);
  CHECK(count(empty, kBlack) > 500);
  CHECK(digest_of(empty) != digest_of(image));
}

TEST_CASE("plots of one point, of equal and of huge values are drawn; others are refused") {
  for (const double value : {0.0, 5.0, -1e-300, 1e308, -1e308, 1.7e308, -1.7e308}) {
    const Curve one[] = {{"", {1}, {value}, kRed}};
    CHECK(count(plot(one), kRed) > 10);
    const Curve flat[] = {{"", {1, 2, 3}, {value, value, value}, kRed}};
    CHECK(count(plot(flat), kRed) > 100);
  }
  const Curve wide[] = {{"", {0, 1}, {-1e308, 1e308}, kRed}};
  CHECK(count(plot(wide), kRed) > 100);
  const Curve infinite[] = {{"", {0, 1}, {kInfinity, std::nan("")}, kRed}};
  CHECK(count(plot(infinite), kRed) == 0);
  const Curve uneven[] = {{"", {0, 1}, {1}, {}}};
  CHECK_THROWS_AS(plot(uneven), UsageError);
  PlotOptions options;
  options.width = 100;
  CHECK_THROWS_AS(plot({}, options), UsageError);
  options.width = 5000;
  CHECK_THROWS_AS(plot({}, options), UsageError);
}

}  // namespace
}  // namespace larch::picture
