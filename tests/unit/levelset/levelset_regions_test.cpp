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

/// The sums, voxel by voxel and box by box.
RegionSums plain_sums(const RegionImages& images, const Vec3i& reach) {
  const Grid& grid = images.phi.grid();
  const IntensitySteps steps = intensity_steps_of(images.image, 1);
  Volume<uint8_t> near(grid, reach == Vec3i{} ? 1 : 0);
  for (int64_t i = 0; i < near.voxels(); ++i) {
    if (!(images.phi[i] < 0) || reach == Vec3i{}) continue;
    const Vec3i at = grid.voxel(i);
    for (int32_t z = std::max(0, at.z - reach.z); z <= at.z + reach.z && z < grid.size.z; ++z) {
      for (int32_t y = std::max(0, at.y - reach.y); y <= at.y + reach.y && y < grid.size.y; ++y) {
        for (int32_t x = std::max(0, at.x - reach.x); x <= at.x + reach.x && x < grid.size.x; ++x) {
          near({x, y, z}) = 1;
        }
      }
    }
  }
  RegionSums sums;
  for (int64_t i = 0; i < near.voxels(); ++i) {
    const float intensity = images.image[i];
    const bool is_pinned = !images.pinned.empty() && images.pinned[i] != 0;
    if (near[i] == 0 || is_pinned || !std::isfinite(intensity)) continue;
    const int side = images.phi[i] < 0 ? 0 : 1;
    sums.steps[side] +=
        std::llround((static_cast<double>(intensity) - steps.lowest) / steps.per_step);
    ++sums.voxels[side];
  }
  return sums;
}

void check_same(const RegionSums& a, const RegionSums& b) {
  for (int side = 0; side < 2; ++side) {
    CHECK(a.steps[side] == b.steps[side]);
    CHECK(a.voxels[side] == b.voxels[side]);
  }
}

TEST_CASE("sums of regions are those of all voxels near to one inside") {
  const Vec3i size = GENERATE(Vec3i{37, 29, 21}, Vec3i{45, 33, 1}, Vec3i{7, 5, 3}, Vec3i{1, 1, 9},
                              Vec3i{170, 9, 10}, Vec3i{64, 8, 8});
  const double part = GENERATE(0.0, 0.0004, 0.02, 1.0);
  const bool is_pinned = GENERATE(false, true);
  const RegionImages images = region_images(size, scattered(size, part), is_pinned);
  Context context;
  context.threads = 3;
  for (const Vec3i& reach :
       {Vec3i{}, Vec3i{1, 1, 1}, Vec3i{2, 3, 1}, Vec3i{31, 1, 2}, Vec3i{32, 2, 1}, Vec3i{33, 1, 1},
        Vec3i{64, 3, 3}, Vec3i{95, 40, 1}, Vec3i{200, 200, 200}}) {
    CAPTURE(size.x, size.y, size.z, part, is_pinned, reach.x, reach.y, reach.z);
    const RegionSums plain = plain_sums(images, reach);
    check_same(region_sums_of(images, reach, context), plain);
    check_same(region_sums_of(images, reach, {}), plain);
  }
}

TEST_CASE("bits that are spread do not leave their word, and come on from others") {
  CHECK(spread(1U << 30, 3, true) == 3U << 30);
  CHECK(spread(1U << 30, 3, false) == 15U << 27);
  CHECK(spread(1U, 100, true) == ~0U);
  CHECK(spread(0x10010U, 2, true) == 0x70070U);
  CHECK(spread_from(1U << 31, 1, 1, true) == 1U);
  CHECK(spread_from(1U << 30, 1, 1, true) == 0U);
  CHECK(spread_from(1U, 1, 1, false) == 1U << 31);
  CHECK(spread_from(1U, 2, 33, false) == 1U << 31);
  CHECK(spread_from(3U << 4, 3, 96, true) == 63U);
  CHECK(spread_from(1U, 1, 200, true) == ~0U);
  CHECK(spread_from(0U, 1, 200, true) == 0U);
  CHECK(spread_from(~0U, 2, 32, true) == 0U);
}

TEST_CASE("means of regions, and the speed from them") {
  const Grid grid = levelset_grid({20, 20, 20});
  RegionImages images;
  images.phi = sphere(grid, {9.5, 9.5, 9.5}, 5);
  images.image = volume_of<float>(grid, [&](const Vec3d& at) {
    const double r = norm(at - Vec3d{9.5, 9.5, 9.5});
    return r < 5 ? 100 : r < 8 ? 60 : 0;
  });
  images.image({9, 9, 9}) = kNan;
  const RegionMeans near = region_means(images, 1);
  CHECK(near.inside == Approx(100));
  CHECK(near.outside == Approx(60));
  CHECK(region_means(images, 0.1).outside == Approx(60));  // a voxel at least
  CHECK(region_means(images, 0).outside < 30);
  {
    // 2 mm are four voxels along x, one along y and two along z.
    const Grid flat = levelset_grid({21, 21, 21}, {0.5, 2, 1});
    RegionImages one{Volume<float>(flat), Volume<float>(flat, 1), {}};
    one.phi({10, 10, 10}) = -1;
    for (int64_t i = 0; i < flat.voxels(); ++i) {
      const Vec3i d = flat.voxel(i) - Vec3i{10, 10, 10};
      one.image[i] = std::abs(d.x) <= 4 && std::abs(d.y) <= 1 && std::abs(d.z) <= 2 ? 1.0F : 50.0F;
    }
    CHECK(region_means(one, 2).outside == Approx(1));
    CHECK(region_means(one, 3).outside > 1.1);
  }
  images.pinned = Volume<uint8_t>(grid);
  for (int64_t i = 0; i < grid.voxels(); ++i) images.pinned[i] = images.phi[i] >= 0 ? 1 : 0;
  const RegionMeans one_side = region_means(images, 1);
  CHECK(one_side.inside == one_side.outside);
  CHECK(region_speed(one_side, 50) == 0);
  for (uint8_t& pinned : images.pinned) pinned = 1;
  CHECK(region_means(images, 1).inside == 0);
  CHECK(region_speed(near, 100) == Approx(1));
  CHECK(region_speed(near, 60) == Approx(-1));
  CHECK(region_speed(near, 80) == Approx(0).margin(1e-6));
  CHECK(region_speed(near, 500) == 1);
  CHECK(region_speed({60, 100}, 60) == 1);  // a dark structure
}

TEST_CASE("an image of one intensity, or of none, has means") {
  const Grid grid = levelset_grid({9, 9, 9});
  RegionImages images{Volume<float>(grid, -7), sphere(grid, {4, 4, 4}, 2), {}};
  CHECK(region_means(images, 0).inside == -7);
  CHECK(region_means(images, 0).outside == -7);
  images.image = Volume<float>(grid, kNan);
  CHECK(region_means(images, 0).inside == 0);
}

/// D of the voxels of a row, for which `parts` has images of its length.
std::vector<int16_t> speeds_of_row(const SpeedParts& parts) {
  std::vector<int16_t> by_brick = speeds_by_brick(parts, {});
  by_brick.resize(static_cast<size_t>(parts.image.size().x));
  return by_brick;
}

TEST_CASE("D is made of its parts and rounded once") {
  const Grid grid = levelset_grid({4, 1, 1});
  SpeedParts parts;
  parts.image = volume_of<float>(grid, [](const Vec3d& at) { return 88 + 7 * at.x; });
  parts.rule.window = {88, 116};
  CHECK(speeds_of_row(parts)[1] == kSpeedOne / 2);
  SpeedParts outside = parts;
  const float far_away[] = {-1e9F, kInfinity, kNan, 74};
  std::copy_n(far_away, 4, outside.image.data());
  for (const int16_t speed : speeds_of_row(outside)) CHECK(speed == -kSpeedOne);
  parts.rule.region_weight = outside.rule.region_weight = 0.25;
  parts.rule.means = outside.rule.means = {102, 60};  // 95: 2 / 3
  CHECK(speeds_of_row(parts)[1] == stored_speed(0.75 * 0.5 + 0.25 * 28 / 42.0));
  for (const int16_t speed : speeds_of_row(outside)) CHECK(speed <= -kSpeedOne / 2);
  CHECK(speeds_of_row(outside)[1] == -kSpeedOne);
  CHECK(speeds_of_row(outside)[2] == -kSpeedOne);
  SpeedParts flat = parts;
  flat.rule.means = {70, 70};
  CHECK(speeds_of_row(flat)[1] == stored_speed(0.75 * 0.5));
  parts.edge_stop = Volume<int16_t>(grid, kSpeedOne / 2);
  CHECK(speeds_of_row(parts)[1] == stored_speed((0.75 * 0.5 + 0.25 * 28 / 42.0) / 2));
  parts.pinned = Volume<uint8_t>(grid);
  parts.pinned[1] = 1;
  CHECK(speeds_of_row(parts)[1] == kFrozen);
  CHECK(speeds_of_row(parts)[2] != kFrozen);
}

TEST_CASE("D of a speed image") {
  const Grid grid = levelset_grid({4, 1, 1});
  SpeedParts parts;
  parts.image = volume_of<float>(grid, [](const Vec3d& at) { return 88 + 7 * at.x; });
  parts.given = Volume<float>(grid);
  parts.given[0] = -3, parts.given[1] = kNan, parts.given[2] = 4;
  parts.rule.is_given = true;
  parts.rule.given_scale = 4;
  const std::vector<int16_t> stored = speeds_of_row(parts);
  CHECK(stored[0] == -3 * kSpeedOne / 4);
  CHECK(stored[1] == -kSpeedOne);
  CHECK(stored[2] == kSpeedOne);
  // The intensities count beside a speed image where there is a region term, and not without.
  parts.image[2] = kNan;
  const SpeedImages images{parts.image.data(), parts.given.data()};
  CHECK(speeds_of_row(parts)[2] == kSpeedOne);
  CHECK(count_without_number(images, parts.rule, 4, 2) == 1);
  parts.rule.region_weight = 0.25;
  parts.rule.means = {102, 60};
  CHECK(speeds_of_row(parts)[1] == -kSpeedOne);
  CHECK(speeds_of_row(parts)[2] == -kSpeedOne);
  CHECK(count_without_number(images, parts.rule, 4, 2) == 2);
}

/// D of a voxel, in the words of data_speed.h.
int16_t plain_speed(const SpeedParts& parts, int64_t i) {
  const SpeedRule& rule = parts.rule;
  const double intensity = parts.image[i],
               stop = parts.edge_stop.empty() ? 16384 : parts.edge_stop[i];
  if (!parts.pinned.empty() && parts.pinned[i] != 0) return kFrozen;
  double speed = 0;
  if (rule.is_given) {
    speed = double{parts.given[i]} / rule.given_scale;
  } else {
    speed =
        std::max(1 - std::abs(intensity - rule.window.middle()) / rule.window.half_width(), -1.0);
  }
  if (rule.region_weight > 0) {
    const double apart = rule.means.inside - rule.means.outside;
    const double value = 2 * intensity - rule.means.inside - rule.means.outside;
    speed = (1 - rule.region_weight) * speed +
            rule.region_weight * std::clamp(value / apart, -1.0, 1.0);
  }
  const bool has_intensity =
      std::isfinite(intensity) || (rule.is_given && !(rule.region_weight > 0));
  if (!has_intensity || (rule.is_given && !std::isfinite(parts.given[i]))) speed = -1;
  return static_cast<int16_t>(
      std::lround(std::clamp(speed * (stop / 16384) * 16384, -32767.0, 32767.0)));
}

TEST_CASE("D of any parts is made by brick, with any number of threads") {
  const Vec3i size = GENERATE(Vec3i{37, 29, 21}, Vec3i{45, 33, 1}, Vec3i{7, 5, 3}, Vec3i{16, 8, 8});
  const BrickLayout layout = make_brick_layout(size);
  Context context;
  context.threads = GENERATE(1, 3);
  for (const SpeedParts& parts : all_speed_parts(size)) {
    std::vector<int16_t> plain(static_cast<size_t>(layout.stored_voxels()), 0);
    for (int64_t i = 0; i < parts.image.voxels(); ++i) {
      plain[static_cast<size_t>(layout.offset(parts.image.grid().voxel(i)))] =
          plain_speed(parts, i);
    }
    CAPTURE(parts.rule.is_given, parts.rule.region_weight, parts.pinned.empty(),
            parts.edge_stop.empty());
    CHECK(speeds_by_brick(parts, context) == plain);
  }
}

}  // namespace
