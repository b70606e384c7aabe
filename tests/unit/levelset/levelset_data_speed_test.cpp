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
