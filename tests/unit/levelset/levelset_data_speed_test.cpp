// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/unit/levelset/speeds.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("speeds are stored rounded half away from zero") {
  CHECK(stored_speed(1) == 16384);
  CHECK(stored_speed(-1) == -16384);
  CHECK(stored_speed(0.5 / 16384) == 1);
  CHECK(stored_speed(-0.5 / 16384) == -1);
  CHECK(stored_speed(0.4999 / 16384) == 0);
  CHECK(stored_speed(-1e9) == -32767);  // never frozen
  CHECK(stored_speed(1e9) == 32767);
  CHECK(stored_speed(std::numeric_limits<double>::quiet_NaN()) == -16384);
  CHECK(stored_speed(std::nextafter(0.5, 0) / 16384) == 0);
  for (int half = -65000; half <= 65000; ++half) {
    for (const double off : {-1e-9, 0.0, 1e-9}) {
      const double scaled = half / 2.0 + off;
      REQUIRE(stored_speed(scaled / 16384) == std::lround(std::clamp(scaled, -32767.0, 32767.0)));
    }
  }
}

TEST_CASE("the nearest integer is that of lround, at halves and beside them") {
  for (const double whole : {0.0, 1.0, 2.0, 3.0, 16383.0, 32766.0, 16777215.0, 2147483000.0}) {
    for (const double part : {0.0, 0.25, 0.5, 0.75}) {
      for (const double sign : {1.0, -1.0}) {
        const double value = sign * (whole + part);
        for (const double to : {-1e300, 0.0, 1e300}) {
          const double beside = to == 0 ? value : std::nextafter(value, to);
          REQUIRE(nearest_integer(beside) == std::lround(beside));
        }
      }
    }
  }
}

/// D of the voxels of a row, for which `parts` has images of its length.
std::vector<int16_t> speeds_of_row(const SpeedParts& parts) {
  std::vector<int16_t> by_brick = speeds_by_brick(parts, {});
  by_brick.resize(static_cast<size_t>(parts.values.size().x));
  return by_brick;
}

TEST_CASE("D of a window is rounded once, and not where a voxel is pinned") {
  const Grid grid = levelset_grid({4, 1, 1});
  SpeedParts parts;
  parts.values = volume_of<float>(grid, [](const Vec3d& at) { return 88 + 7 * at.x; });
  parts.rule.window = {88, 116};
  CHECK(speeds_of_row(parts)[1] == kSpeedOne / 2);
  SpeedParts outside = parts;
  const float far_away[] = {-1e9F, kInfinity, kNan, 74};
  std::copy_n(far_away, 4, outside.values.data());
  for (const int16_t speed : speeds_of_row(outside)) CHECK(speed == -kSpeedOne);
  parts.pinned = Volume<uint8_t>(grid);
  parts.pinned[1] = 1;
  CHECK(speeds_of_row(parts)[1] == kFrozen);
  CHECK(speeds_of_row(parts)[2] != kFrozen);
}

TEST_CASE("D of a speed image") {
  SpeedParts parts;
  parts.values = Volume<float>(levelset_grid({4, 1, 1}));
  parts.values[0] = -3, parts.values[1] = kNan, parts.values[2] = 4;
  parts.rule.is_given = true;
  parts.rule.given_scale = 4;
  const std::vector<int16_t> stored = speeds_of_row(parts);
  CHECK(stored[0] == -3 * kSpeedOne / 4);
  CHECK(stored[1] == -kSpeedOne);
  CHECK(stored[2] == kSpeedOne);
}

/// D of a voxel, in the words of data_speed.h.
int16_t plain_speed(const SpeedParts& parts, int64_t i) {
  const SpeedRule& rule = parts.rule;
  const double value = parts.values[i];
  if (!parts.pinned.empty() && parts.pinned[i] != 0) return kFrozen;
  double speed = -1;
  if (std::isfinite(value) && rule.is_given) speed = value / rule.given_scale;
  if (std::isfinite(value) && !rule.is_given) {
    speed = std::max(1 - std::abs(value - rule.window.middle()) / rule.window.half_width(), -1.0);
  }
  return static_cast<int16_t>(std::lround(std::clamp(speed * 16384, -32767.0, 32767.0)));
}

TEST_CASE("D of any parts is made by brick, with any number of threads") {
  const Vec3i size = GENERATE(Vec3i{37, 29, 21}, Vec3i{45, 33, 1}, Vec3i{7, 5, 3}, Vec3i{16, 8, 8});
  const BrickLayout layout = make_brick_layout(size);
  Context context;
  context.threads = GENERATE(1, 3);
  for (const SpeedParts& parts : all_speed_parts(size)) {
    std::vector<int16_t> plain(static_cast<size_t>(layout.stored_voxels()), 0);
    for (int64_t i = 0; i < parts.values.voxels(); ++i) {
      plain[static_cast<size_t>(layout.offset(parts.values.grid().voxel(i)))] =
          plain_speed(parts, i);
    }
    CAPTURE(parts.rule.is_given, parts.pinned.empty());
    CHECK(speeds_by_brick(parts, context) == plain);
  }
}

}  // namespace
