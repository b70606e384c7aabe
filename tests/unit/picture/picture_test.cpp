// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/picture/draw.h"
#include "larch/picture/qc.h"
#include "tests/unit/box_mask.h"

namespace {

using namespace larch;
using namespace larch::picture;
using larch::test::grid_of;
using Colour = std::array<int, 3>;

Colour pixel(const RgbImage& image, int x, int y) {
  const size_t at = 3 * (static_cast<size_t>(y) * image.width + x);
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

/// The box of pixels with exactly this colour: left, top, right, bottom; -1 if there is none.
std::array<int, 4> box_of(const RgbImage& image, const Colour& colour, int left, int right) {
  std::array<int, 4> box{1 << 30, 1 << 30, -1, -1};
  for (int y = 0; y < image.height; ++y) {
    for (int x = left; x < right; ++x) {
      if (pixel(image, x, y) != colour) continue;
      box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x), std::max(box[3], y)};
    }
  }
  return box;
}

/// The letter drawn at (x, y), found by comparing with each of the six.
char read_letter(const RgbImage& image, int x, int y, int scale) {
  for (const char letter : {'R', 'L', 'A', 'P', 'S', 'I'}) {
    RgbImage only{image.width, image.height, std::vector<uint8_t>(image.rgb.size(), 7)};
    draw_text(only, x, y, {&letter, 1}, scale, kWhite, /*rim=*/true);
    bool same = true;
    for (size_t i = 0; i < only.rgb.size(); ++i) {
      same = same && (only.rgb[i] == 7 || only.rgb[i] == image.rgb[i]);
    }
    if (same) return letter;
  }
  return '?';
}

const LabelTable kRed{{1, "structure", {255, 0, 0}}};

}  // namespace

TEST_CASE("three slices with square pixels, at least as wide as asked for") {
  const Grid grid = grid_of({30, 40, 10}, {1, 1, 4});
  Volume<float> image(grid, 0);
  LabelVolume labels(grid, 0);
  for (int z = 3; z < 6; ++z)
    for (int y = 10; y < 22; ++y)
      for (int x = 6; x < 12; ++x) labels({x, y, z}) = 1;
  QcOptions options;
  options.colours = kRed;
  const RgbImage picture = qc_picture(image, labels, options);
  CHECK(picture.width >= 900);
  CHECK(picture.width < 910);
  REQUIRE(picture.rgb.size() == static_cast<size_t>(3) * picture.width * picture.height);
  // Panels of 30, 30 and 40 mm; heights 40, 40 and 40 mm.
  const double per_mm = (picture.width - 8) / 100.0;
  const int first = static_cast<int>(30 * per_mm), second = static_cast<int>(60 * per_mm) + 8;
  const auto axial = box_of(picture, {255, 0, 0}, 0, first);
  CHECK((axial[2] - axial[0] + 1) / per_mm == Approx(6).margin(0.3));
  CHECK((axial[3] - axial[1] + 1) / per_mm == Approx(12).margin(0.3));
  CHECK(axial[0] / per_mm == Approx(6).margin(0.3));
  CHECK(axial[1] / per_mm == Approx(10).margin(0.3));
  const auto coronal = box_of(picture, {255, 0, 0}, first + 4, second);
  CHECK((coronal[3] - coronal[1] + 1) / per_mm == Approx(12).margin(0.3));  // 3 slices of 4 mm
  // Superior is up: slices 3 to 5 of 10 lie in the lower half, 12 to 24 mm from the bottom.
  CHECK((picture.height - coronal[3] - 1) / per_mm == Approx(12).margin(0.3));
  const auto sagittal = box_of(picture, {255, 0, 0}, second, picture.width);
  CHECK((sagittal[2] - sagittal[0] + 1) / per_mm == Approx(12).margin(0.3));
}

TEST_CASE("the contour of a disc is a thin circle in the label's colour") {
  Grid grid = grid_of({20, 20, 1});
  grid.frame = WorldFrame::kUnknown;  // no letters
  LabelVolume labels(grid, 0);
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    const Vec3i d = grid.voxel(i) - Vec3i{10, 10, 0};
    labels[i] = d.x * d.x + d.y * d.y <= 49 ? 1 : 0;
  }
  QcOptions options;
  options.colours = kRed;
  options.min_width = 200;
  const RgbImage picture = qc_picture(Volume<float>(grid, 0), labels, options);
  int full = 0;
  for (int y = 0; y < 200; ++y) {
    for (int x = 0; x < 200; ++x) {
      const Colour colour = pixel(picture, x, y);
      if (colour[0] == 0) continue;
      CHECK((colour[1] == 0 && colour[2] == 0));
      CHECK(std::abs(std::hypot(x - 104.5, y - 104.5) - 71) < 6);
      full += colour[0] == 255;
    }
  }
  CHECK(full > 150);  // of about 446 pixels around
}

TEST_CASE("structures of a few voxels have a contour, in whatever scale, and so do their gaps") {
  const int width = GENERATE(16, 40, 160);
  const bool is_gap = GENERATE(false, true);
  const std::vector<Vec3i> shape =
      GENERATE(values<std::vector<Vec3i>>({{{8, 8, 0}},
                                           {{8, 8, 0}, {9, 8, 0}},
                                           {{8, 8, 0}, {9, 9, 0}},
                                           {{8, 7, 0}, {8, 8, 0}, {8, 9, 0}}}));
  Grid grid = grid_of({16, 16, 1});
  grid.frame = WorldFrame::kUnknown;
  LabelVolume labels(grid, is_gap ? 1 : 0);
  for (const Vec3i& at : shape) labels(at) = is_gap ? 0 : 1;
  QcOptions options;
  options.colours = kRed;
  options.min_width = width;
  const RgbImage picture = qc_picture(Volume<float>(grid, 0), labels, options);
  CHECK(*std::max_element(picture.rgb.begin(), picture.rgb.end()) > 200);
}

TEST_CASE("the reference is white, below the labels") {
  const Grid grid = grid_of({16, 16, 1});
  LabelVolume labels(grid, 0), reference(grid, 0);
  for (int y = 4; y < 12; ++y)
    for (int x = 4; x < 12; ++x) {
      labels({x, y, 0}) = 1;
      if (x >= 6) reference({x, y, 0}) = 9;
    }
  QcOptions options;
  options.colours = kRed;
  options.min_width = 160;
  options.reference = &reference;
  const RgbImage picture = qc_picture(Volume<float>(grid, 0), labels, options);
  CHECK(pixel(picture, 60, 70) == Colour{255, 255, 255});
  CHECK(pixel(picture, 119, 70) == Colour{255, 0, 0});  // shared side
}

TEST_CASE("letters follow the direction matrix") {
  // Axes that run to R, A, S (as NIfTI files often do) and to L, P, S give the same letters,
  // because the slices are turned for the viewer.
  const bool ras = GENERATE(false, true);
  Grid grid = grid_of({32, 32, 32});
  if (ras) {
    grid.direction.m[0][0] = -1;
    grid.direction.m[1][1] = -1;
  }
  const RgbImage picture = qc_picture(Volume<float>(grid, 0), LabelVolume(grid, 0), {});
  const int side = (picture.width - 8) / 3;
  REQUIRE(picture.height == side);
  const int scale = side / 130, width = 5 * scale, height = 7 * scale, margin = 2 * scale;
  const auto letters = [&](int panel) {
    const int left = panel * (side + 4);
    std::string text;
    text += read_letter(picture, left + margin, (side - height) / 2, scale);
    text += read_letter(picture, left + side - width - margin, (side - height) / 2, scale);
    text += read_letter(picture, left + (side - width) / 2, margin, scale);
    text += read_letter(picture, left + (side - width) / 2, side - height - margin, scale);
    return text;
  };
  Grid unknown = grid;
  unknown.frame = WorldFrame::kUnknown;
  const RgbImage bare = qc_picture(Volume<float>(unknown, 0), LabelVolume(unknown, 0), {});
  CHECK(std::all_of(bare.rgb.begin(), bare.rgb.end(), [](uint8_t v) { return v == 0; }));
  CHECK(std::any_of(picture.rgb.begin(), picture.rgb.end(), [](uint8_t v) { return v > 200; }));
  CHECK(letters(0) == "RLAP");
  CHECK(letters(1) == "RLSI");
  CHECK(letters(2) == "APSI");
}

TEST_CASE("a volume stored with other axes looks the same") {
  // The same anatomy, stored as x, y, z and as z, -x, y.
  const Grid plain = grid_of({12, 14, 16});
  Grid turned = grid_of({16, 12, 14});
  turned.direction = {{{0, -1, 0}, {0, 0, 1}, {1, 0, 0}}};
  turned.origin_mm = {11, 0, 0};
  Volume<float> a(plain), b(turned);
  LabelVolume la(plain, 0), lb(turned, 0);
  for (int64_t i = 0; i < a.voxels(); ++i) {
    const Vec3i p = plain.voxel(i);
    const Vec3i q{p.z, 11 - p.x, p.y};
    REQUIRE(norm(world_from_index(plain, p.cast<double>()) -
                 world_from_index(turned, q.cast<double>())) < 1e-9);
    a[i] = static_cast<float>(p.x + 20 * p.y + 300 * p.z);
    b(q) = a[i];
    la[i] = norm((p - Vec3i{7, 8, 5}).cast<double>()) < 3.5 ? 2 : 0;
    lb(q) = la[i];
  }
  const RgbImage one = qc_picture(a, la), two = qc_picture(b, lb);
  CHECK(one.width == two.width);
  // Rounding may tip a pixel that lies on the border of a voxel.
  int64_t different = 0;
  for (size_t i = 0; i < one.rgb.size(); ++i) different += std::abs(one.rgb[i] - two.rgb[i]) > 2;
  CHECK(different < static_cast<int64_t>(one.rgb.size() / 200));
}

TEST_CASE("the window is set by quantiles, and what is not finite is black") {
  const Grid grid = grid_of({20, 20, 1});
  Volume<float> image(grid, 100);
  for (int y = 0; y < 20; ++y)
    for (int x = 10; x < 20; ++x) image({x, y, 0}) = 200;
  image({0, 0, 0}) = 1e6f;  // one outlier does not set the window
  image({5, 10, 0}) = std::numeric_limits<float>::quiet_NaN();
  image({15, 10, 0}) = std::numeric_limits<float>::infinity();
  image({15, 15, 0}) = -std::numeric_limits<float>::infinity();
  QcOptions options;
  options.min_width = 100;
  const RgbImage picture = qc_picture(image, LabelVolume(grid, 0), options);
  CHECK(pixel(picture, 20, 20) == Colour{0, 0, 0});
  CHECK(pixel(picture, 70, 20) == Colour{255, 255, 255});
  CHECK(pixel(picture, 27, 52) == Colour{0, 0, 0});
  CHECK(pixel(picture, 77, 52) == Colour{0, 0, 0});
  CHECK(pixel(picture, 77, 77) == Colour{0, 0, 0});
}

TEST_CASE("pictures need one grid") {
  const Volume<float> image(grid_of({4, 4, 4}));
  CHECK_THROWS_AS(qc_picture(image, LabelVolume(grid_of({4, 4, 5}))), InputError);
  const LabelVolume labels(grid_of({4, 4, 4})), other(grid_of({4, 4, 4}, {1, 1, 2}));
  QcOptions options;
  options.reference = &other;
  CHECK_THROWS_WITH(qc_picture(image, labels, options), Catch::Contains("reference"));
  CHECK_THROWS_AS(qc_picture(Volume<float>(), LabelVolume()), InputError);
}

TEST_CASE("pictures are stacked below their titles") {
  const Rgb red{200, 0, 0};
  const RgbImage pictures[] = {make_canvas(60, 20, red), make_canvas(80, 30, kWhite)};
  const std::string titles[] = {"", ""};
  const RgbImage all = stacked(pictures, titles);
  const int title = (all.height - 50) / 2;
  CHECK(all.width == 80);
  CHECK(pixel_at(all, 0, title - 1) == kBlack);
  CHECK(pixel_at(all, 59, title) == red);
  CHECK(pixel_at(all, 60, title + 19) == kBlack);
  CHECK(pixel_at(all, 79, all.height - 1) == kWhite);
  CHECK(most_stacked(20) * (20 + title) <= kMaximumPixels);
  const std::string titled[] = {"frame 1", "frame 2"};
  CHECK(stacked(pictures, titled).rgb != all.rgb);
}

TEST_CASE("poses are shown in rows of slices through them, and boxes stay within their slices") {
  const Volume<float> image(grid_of({40, 40, 20}));
  const Pose inside{{10, 10, 10}, {}, {6, 8, 10}}, leaves{{20, 20, 10}, {}, {80, 10, 10}};
  const std::vector<PoseRow> rows{{"a", "found", {255, 0, 0}, kWhite, inside},
                                  {"b", "not found", {0, 0, 255}, kWhite, {}},
                                  {"c", "found", {0, 255, 0}, kWhite, leaves}};
  const RgbImage picture = pose_picture(image, "case", rows);
  CHECK(picture.width >= 900);
  const double per_mm = (picture.width - 8) / 120.0;  // three slices 40 mm wide and two gaps
  const int gap = static_cast<int>(40 * per_mm) + 2;
  const std::array<int, 4> box = box_of(picture, {255, 0, 0}, 30, gap);
  CHECK(std::abs(box[2] - box[0] - 6 * per_mm) <= 2);
  bool is_black = true;
  for (int y = 80; y < picture.height; ++y) is_black &= pixel(picture, gap, y) == Colour{0, 0, 0};
  CHECK(is_black);  // although the last box is wider than the slice

  const RgbImage middle = pose_picture(image, "case", std::vector<PoseRow>{rows[1]});
  CHECK(box_of(middle, {0, 0, 255}, 0, middle.width)[2] > 0);  // the name
  CHECK(middle.height > 200);
  const std::vector<PoseRow> many(32, rows[0]);
  CHECK(pose_picture(image, "case", many).height <= kMaximumPixels);
  CHECK_THROWS_AS(pose_picture({}, "case", rows), InputError);
}
