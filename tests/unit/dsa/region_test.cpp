// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Regions of interest and the collimator.
#include "larch/dsa/region.h"

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"

using namespace larch;
using namespace larch::dsa;

namespace {

uint8_t at(const std::vector<uint8_t>& region, const Vec3i& size, int x, int y) {
  return region[static_cast<size_t>(y) * static_cast<size_t>(size.x) + static_cast<size_t>(x)];
}

/// A frame of texture behind a collimator that leaves `open`.
std::vector<uint32_t> collimated(const Vec3i& size, const Rectangle& open, uint32_t contrast) {
  std::vector<uint32_t> frame(static_cast<size_t>(size.x * size.y), 40);
  for (int y = open.y; y < open.y + open.height; ++y) {
    for (int x = open.x; x < open.x + open.width; ++x) {
      frame[static_cast<size_t>(y) * static_cast<size_t>(size.x) + static_cast<size_t>(x)] =
          1000 + contrast * static_cast<uint32_t>((x * 7 + y * 13) % 5);
    }
  }
  return frame;
}

}  // namespace

TEST_CASE("a rectangle keeps its pixels alone and lies within the frame") {
  const Vec3i size{7, 5, 1};
  auto region = whole_region(size);
  keep_rectangle(region, size, {2, 1, 3, 2});
  CHECK(count_inside(region) == 6);
  CHECK(at(region, size, 2, 1) == 1);
  CHECK(at(region, size, 4, 2) == 1);
  CHECK(at(region, size, 5, 2) == 0);
  CHECK(at(region, size, 4, 3) == 0);
  keep_rectangle(region, size, {4, 0, 3, 5});
  CHECK(count_inside(region) == 2);
  for (const Rectangle& wrong :
       {Rectangle{-1, 0, 2, 2}, Rectangle{0, 0, 0, 2}, Rectangle{6, 0, 2, 2}, Rectangle{0, 4, 2, 2},
        Rectangle{2, 0, std::numeric_limits<int32_t>::max(), 2}}) {
    CHECK_THROWS_AS(keep_rectangle(region, size, wrong), UsageError);
  }
}

TEST_CASE("a polygon keeps the pixels whose centres are inside, also a concave one") {
  const Vec3i size{10, 10, 1};
  auto region = whole_region(size);
  const Corner triangle[] = {{-0.5, -0.5}, {9.5, -0.5}, {-0.5, 9.5}};
  keep_polygon(region, size, triangle);
  CHECK(count_inside(region) == 45);  // x + y < 9
  CHECK(at(region, size, 0, 8) == 1);
  CHECK(at(region, size, 1, 8) == 0);
  // Two that share an edge cover each pixel once.
  auto left = whole_region(size), right = whole_region(size);
  const Corner a[] = {{0, 0}, {5, 0}, {5, 9}, {0, 9}};
  const Corner b[] = {{5, 0}, {9, 0}, {9, 9}, {5, 9}};
  keep_polygon(left, size, a);
  keep_polygon(right, size, b);
  for (size_t i = 0; i < left.size(); ++i) CHECK(left[i] + right[i] <= 1);
  CHECK(count_inside(left) + count_inside(right) == 81);
  auto arrow = whole_region(size);
  const Corner concave[] = {{0, 0}, {9, 0}, {9, 9}, {5, 2}, {0, 9}};
  keep_polygon(arrow, size, concave);
  CHECK(at(arrow, size, 5, 1) == 1);
  CHECK(at(arrow, size, 5, 4) == 0);
  CHECK(at(arrow, size, 1, 5) == 1);
}

TEST_CASE("the collimator is found at the edges, and nothing where there is none") {
  const Vec3i size{120, 90, 1};
  const auto found = [&](const std::vector<uint32_t>& sum, int32_t frames = 1) {
    return find_shutter(sum, size, {.frames = frames, .flat = 2});
  };
  const auto only = [&](const Rectangle& open) {
    auto region = whole_region(size);
    keep_rectangle(region, size, open);
    return region;
  };
  const Rectangle open{30, 20, 70, 50}, left_only{40, 0, 80, 90}, whole{0, 0, 120, 90};
  CHECK(found(collimated(size, open, 30)) == only(open));
  CHECK(found(collimated(size, left_only, 30)) == only(left_only));
  CHECK(found(collimated(size, whole, 30)) == whole_region(size));
  CHECK(found(std::vector<uint32_t>(120 * 90, 0)) == whole_region(size));
  // The sum of four frames has four times the deviation.
  auto sum = collimated(size, open, 30);
  for (uint32_t& v : sum) v *= 4;
  CHECK(found(sum, 4) == only(open));
}

TEST_CASE("pixels behind the collimator take the values at its edge") {
  const Vec3i size{5, 4, 1};
  std::vector<uint16_t> frame(20);
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<uint16_t>(i);
  std::vector<uint8_t> open(20);
  for (const size_t i : {6, 7, 12, 13}) open[i] = 1;
  fill_covered(frame, size, open);
  CHECK(frame == std::vector<uint16_t>{6,  6,  7,  7,  7,  6,  6,  7,  7,  7,
                                       12, 12, 12, 13, 13, 12, 12, 12, 13, 13});
  const std::vector<uint16_t> before = frame;
  fill_covered(frame, size, std::vector<uint8_t>(20));
  CHECK(frame == before);
}

TEST_CASE("an octagonal collimator is dark, flat and joined with the edge of the picture") {
  const Vec3i size{120, 100, 1};
  std::vector<uint32_t> frame = collimated(size, {0, 0, 120, 100}, 30);
  std::vector<uint8_t> open = whole_region(size);
  for (int y = 0; y < size.y; ++y) {
    for (int x = 0; x < size.x; ++x) {
      const int right = 119 - x, below = 99 - y;
      const bool is_corner = x + y < 40 || right + y < 40 || x + below < 40 || right + below < 40;
      const bool is_hole = x > 50 && x < 75 && y > 40 && y < 65;  // dark, but in the body
      if (!is_corner && !is_hole) continue;
      frame[static_cast<size_t>(y) * static_cast<size_t>(size.x) + static_cast<size_t>(x)] = 10;
      if (is_corner)
        open[static_cast<size_t>(y) * static_cast<size_t>(size.x) + static_cast<size_t>(x)] = 0;
    }
  }
  ShutterRule rule{.frames = 1, .flat = 2, .dark = 256, .flat_where_dark = 2};
  const auto found = find_shutter(frame, size, rule);
  int64_t wrong = 0;
  for (size_t i = 0; i < open.size(); ++i) wrong += open[i] != found[i] ? 1 : 0;
  CHECK(wrong <= 240);  // of 3280: at the ends of the slanted edges a window finds no room
  CHECK(at(found, size, 60, 50) == 1);
  CHECK(at(found, size, 5, 5) == 0);
  // The same where contrast agent raises values.
  for (uint32_t& v : frame) v = 4095 - v;
  rule.top = 4095;
  CHECK(find_shutter(frame, size, rule) == found);
}

TEST_CASE("the blurred edge of a collimator is measured, and none where the edge is sharp") {
  const Vec3i size{120, 100, 1};
  const Rectangle open{30, 20, 70, 60};
  const auto width = [&](int blurred, bool is_bright) {
    std::vector<uint32_t> frame = collimated(size, open, 10);
    auto region = whole_region(size);
    keep_rectangle(region, size, open);
    for (int y = 0; y < size.y; ++y) {
      for (int x = 0; x < size.x; ++x) {
        uint32_t& v =
            frame[static_cast<size_t>(y) * static_cast<size_t>(size.x) + static_cast<size_t>(x)];
        const int inside = std::min(
            {x - open.x, open.x + open.width - 1 - x, y - open.y, open.y + open.height - 1 - y});
        const auto part = static_cast<uint32_t>(std::clamp(inside + 1, 0, blurred + 1));
        v = 40 + (v - 40) * part / static_cast<uint32_t>(blurred + 1);
        if (is_bright) v = 4095 - v;
      }
    }
    return blurred_edge(frame, size, region);
  };
  for (const bool is_bright : {false, true}) {
    CHECK(width(0, is_bright) == 0);
    CHECK(width(1, is_bright) == 1);
    CHECK(width(5, is_bright) == Approx(5).margin(1));
    CHECK(width(11, is_bright) == Approx(11).margin(2));
  }
  const std::vector<uint32_t> even(static_cast<size_t>(size.x) * 100, 1000);
  CHECK(blurred_edge(even, size, whole_region(size)) == 0);

  auto narrowed = whole_region(size), wanted = narrowed;
  keep_rectangle(narrowed, size, open);
  keep_rectangle(wanted, size, {33, 23, 64, 54});
  narrow_open(narrowed, size, 3);
  CHECK(narrowed == wanted);
  narrow_open(narrowed, size, 40);  // nothing would be left
  CHECK(narrowed == wanted);
  // The edge of the picture is none of a collimator.
  auto left_only = whole_region(size), less = left_only;
  keep_rectangle(left_only, size, {40, 0, 80, 100});
  keep_rectangle(less, size, {42, 0, 78, 100});
  narrow_open(left_only, size, 2);
  CHECK(left_only == less);
}
