// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/levelset/speed/edges.h"
#include "larch/levelset/speed/window.h"
#include "tests/unit/levelset/problems.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("the speed of a window is a tent") {
  const Window window{88, 116};
  CHECK(window_speed(window, 102) == 1);
  CHECK(window_speed(window, 88) == 0);
  CHECK(window_speed(window, 116) == 0);
  CHECK(window_speed(window, 95) == 0.5);
  CHECK(window_speed(window, 74) == -1);
  CHECK(window_speed(window, 1e6F) == -1);  // no more than that
}

/// Two intensities with noise of +- 5: a ball of 10 mm, and the rest.
Volume<float> two_classes(double ball, double rest) {
  const Grid grid = levelset_grid({40, 40, 40});
  const Vec3d middle = middle_mm(grid);
  Volume<float> image =
      volume_of<float>(grid, [&](const Vec3d& at) { return norm(at - middle) < 10 ? ball : rest; });
  for (int64_t i = 0; i < image.voxels(); ++i) {
    image[i] += static_cast<float>(10 * hash_unit(1, 0, static_cast<uint64_t>(i)) - 5);
  }
  return image;
}
Window window_from(const Volume<float>& image) {
  const Volume<float> seed = sphere(image.grid(), middle_mm(image.grid()), 5);
  return automatic_window(seed_intensities(image, seed, 2));
}

TEST_CASE("the automatic window ends half way to what is around, whatever is added to the image") {
  const auto [ball, rest] =
      GENERATE(std::pair(100.0, 70.0), std::pair(60.0, 90.0), std::pair(100.0, 0.0),
               std::pair(-100.0, -300.0), std::pair(1100.0, 1060.0), std::pair(-900.0, -1000.0));
  CAPTURE(ball, rest);
  const double off = std::abs(ball - rest) / 20;
  const Window window = window_from(two_classes(ball, rest));
  CHECK((ball > rest ? window.lower : window.upper) == Approx((ball + rest) / 2).margin(off));
  CHECK(window.middle() == Approx(ball).margin(1));
  CHECK(window.is_automatic);
}

TEST_CASE("which borders the automatic window comes from") {
  SECTION("what touches the structure, not what else is there") {
    // Air around the head: the threshold stays between white and grey matter.
    Volume<float> image = two_classes(100, 70);
    for (int64_t i = 0; i < image.voxels(); ++i) {
      if (image.grid().voxel(i).z < 8) image[i] = 0;
    }
    CHECK(window_from(image).lower == Approx(85).margin(2));
  }
  SECTION("of a middle class on both sides") {
    Volume<float> image = two_classes(100, 70);
    for (int64_t i = 0; i < image.voxels(); ++i) {
      const Vec3i at = image.grid().voxel(i);
      if (at.z > 20 && image[i] < 85) image[i] += 80;
    }
    const Window window = window_from(image);
    CHECK(window.lower == Approx(85).margin(2));
    CHECK(window.upper == Approx(125).margin(3));
  }
  SECTION("far away is not around") {
    const Grid grid = levelset_grid({120, 20, 20});
    const Vec3d at_end{10, 10, 10};
    const auto image = volume_of<float>(grid, [&](const Vec3d& at) {
      return at.x > 60 ? 1000 : norm(at - at_end) < 8 ? 100 : 70;
    });
    const SeedIntensities seed = seed_intensities(image, sphere(grid, at_end, 5), 1);
    REQUIRE(seed.lower);
    CHECK(*seed.lower == Approx(85).margin(2));
    CHECK(seed.noise == 0);
    CHECK(seed.contrast == Approx(30).margin(4));
  }
  SECTION("a constant image has no contrast, and still a window") {
    const Grid grid = levelset_grid({10, 10, 10});
    const SeedIntensities seed =
        seed_intensities(Volume<float>(grid, 7), sphere(grid, middle_mm(grid), 3), 1);
    CHECK(seed.contrast == 0);
    const Window window = automatic_window(seed);
    CHECK(window.lower < 7);
    CHECK(window.upper > 7);
  }
  SECTION("background ends it half way, unless it ends before or the two are alike") {
    const Grid grid = levelset_grid({40, 40, 40});
    const Volume<float> image = two_classes(100, 70), ball = sphere(grid, middle_mm(grid), 5);
    const auto with = [&](float there) {
      SeedIntensities seed = seed_intensities(image, ball, 2);
      leave_out(seed, Volume<float>(Grid{{3, 1, 1}}, there), {0, 1, 2});
      return automatic_window(seed);
    };
    const Window alone = window_from(image);
    CHECK(with(84).lower == Approx(92).margin(1));
    CHECK(with(140).upper == Approx(120).margin(1));
    CHECK(with(140).lower == alone.lower);
    for (const float there : {20.0F, 99.0F, kNan}) CHECK(with(there).lower == alone.lower);
  }
  SECTION("voxels that are not a number do not count") {
    Volume<float> image = two_classes(100, 70);
    const Window before = window_from(image);
    image[0] = kNan;
    image[1] = std::numeric_limits<float>::infinity();
    CHECK(window_from(image).lower == Approx(before.lower).margin(0.5));
  }
}

TEST_CASE("noise does not move the automatic window") {
  // A structure of 100 that fills nine tenths of what is around the seeds, beside 72.
  const Grid grid = levelset_grid({40, 40, 40});
  const auto lower = [&](double deviation) {
    Volume<float> image =
        volume_of<float>(grid, [](const Vec3d& at) { return at.x < 4 ? 72 : 100; });
    for (int64_t i = 0; i < image.voxels(); ++i) {
      double normal = -6;  // the sum of twelve
      for (uint64_t k = 0; k < 12; ++k) normal += hash_unit(9, k, static_cast<uint64_t>(i));
      image[i] += static_cast<float>(deviation * normal);
    }
    return window_from(image).lower;
  };
  const double deviation = GENERATE(0.0, 3.0, 5.0, 7.0, 9.1);  // 100 / 9.1: an SNR of 11
  CAPTURE(deviation);
  CHECK(lower(deviation) == Approx(86).margin(2));
}

TEST_CASE("edges attract from both sides") {
  const Grid grid = levelset_grid({30, 8, 8}, {1, 1, 2});
  SECTION("a ramp") {
    const auto ramp = volume_of<float>(grid, [](const Vec3d& at) { return 3 * at.x + 8 * at.z; });
    const Edges edges = find_edges(ramp, 0, std::hypot(3, 8), 1, 1);
    CHECK(edges.advection[0]({10, 4, 4}) == 0);
    CHECK(find_edges(ramp, 0, 0, 1, 1).contrast == Approx(std::hypot(3, 8)));
  }
  SECTION("a step") {
    const auto image = volume_of<float>(grid, [](const Vec3d& at) { return at.x < 15 ? 0 : 100; });
    const Edges edges = find_edges(image, 1, 0, 1, 2);
    CHECK(edges.advection[0]({12, 4, 4}) > 0);
    CHECK(edges.advection[0]({17, 4, 4}) < 0);
    CHECK(edges.advection[1]({12, 4, 4}) == 0);
    CHECK(edges.advection[0]({2, 4, 4}) == 0);
    CHECK(edges.largest_advection > 0.1);
    CHECK(edges.largest_advection <= 1);
    const Edges again = find_edges(image, 1, 0, 1, 1);
    CHECK(std::equal(edges.advection[0].begin(), edges.advection[0].end(),
                     again.advection[0].begin()));
  }
  SECTION("half of a component along z counts, where voxels are 2 units long") {
    const auto image = volume_of<float>(
        grid, [](const Vec3d& at) { return 60 * std::tanh((at.x + at.y + at.z - 20) / 4); });
    const Edges edges = find_edges(image, 1, 8, 1, 1);
    CHECK(edges.largest_advection > 0);
    double largest = 0;
    for (int64_t i = 0; i < image.voxels(); ++i) {
      const auto size = [&](size_t axis) {
        return std::abs(static_cast<double>(edges.advection[axis][i])) / kSpeedOne;
      };
      largest = std::max(largest, size(0) + size(1) + size(2) / 2);
    }
    CHECK(edges.largest_advection == Approx(largest));
  }
  SECTION("a voxel that is not a number has no edge and makes none") {
    Volume<float> image(grid, 5);
    image({15, 4, 4}) = kNan;
    image({0, 0, 0}) = std::numeric_limits<float>::infinity();
    for (const double sigma_mm : {0.0, 1.0}) {
      const Edges edges = find_edges(image, sigma_mm, 2, 1, 1);
      CHECK(edges.largest_advection == 0);
    }
    // Beside an edge: the voxel alone changes without a Gaussian, and what a voxel further sees.
    auto step = volume_of<float>(grid, [](const Vec3d& at) { return at.x < 15 ? 0 : 100; });
    const Edges before = find_edges(step, 0, 50, 1, 1);
    step({14, 4, 4}) = kNan;
    const Edges after = find_edges(step, 0, 50, 1, 1);
    CHECK(before.advection[0]({13, 4, 4}) != 0);
    CHECK(after.advection[0]({14, 4, 4}) == 0);
    CHECK(after.advection[0]({13, 5, 4}) == before.advection[0]({13, 5, 4}));
  }
  SECTION("none") {
    CHECK_THROWS_AS(find_edges(Volume<float>(grid, 5), 1, 0, 1, 1), InputError);
    const Edges edges = find_edges(Volume<float>(grid, 5), 1, 2, 1, 1);
    CHECK(edges.largest_advection == 0);
  }
}

TEST_CASE("a Gaussian keeps the sum and has its deviation in mm") {
  const Grid grid = levelset_grid({41, 1, 21}, {0.5, 1, 1});
  Volume<float> image(grid);
  image({20, 0, 10}) = 1000;
  image({0, 0, 0}) = kNan;
  const Volume<float> smooth = smoothed(image, 2, 2);
  double sum = 0, along_x = 0, along_z = 0;
  for (int64_t i = 0; i < smooth.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    const auto value = static_cast<double>(smooth[i]);
    sum += value;
    along_x += value * (at.x - 20) * (at.x - 20) * 0.25;
    along_z += value * (at.z - 10) * (at.z - 10);
  }
  CHECK(sum == Approx(1000).epsilon(1e-4));
  CHECK(std::sqrt(along_x / sum) == Approx(2).epsilon(0.03));
  CHECK(std::sqrt(along_z / sum) == Approx(2).epsilon(0.03));
  const Volume<float> same = smoothed(image, 0, 1);
  CHECK(same({20, 0, 10}) == 1000);
  CHECK(std::isnan(same({0, 0, 0})));
  // Those that are not finite are passed over: what is constant beside them stays so.
  Volume<float> constant(grid, 5);
  for (int32_t x = 18; x < 23; ++x) constant({x, 0, 10}) = kNan;
  for (const float value : smoothed(constant, 2, 2)) REQUIRE(value == Approx(5));
}

TEST_CASE("a Gaussian wider than the image is that of an image that goes on with its border") {
  const Grid grid = levelset_grid({5, 1, 1}, {1e-3, 1, 1});
  Volume<float> image(grid);
  for (int32_t x = 0; x < 5; ++x) image[x] = static_cast<float>(10 + 7 * x * x);
  const double sigma = GENERATE(2.0, 9.0);
  const Volume<float> smooth = smoothed(image, sigma * 1e-3, 1);
  const auto reach = static_cast<int32_t>(std::ceil(3 * sigma));
  for (int32_t x = 0; x < 5; ++x) {
    double sum = 0, weights = 0;
    for (int32_t k = -reach; k <= reach; ++k) {
      const double weight = std::exp(-0.5 * (k / sigma) * (k / sigma));
      sum += weight * static_cast<double>(image[std::clamp(x + k, 0, 4)]);
      weights += weight;
    }
    CHECK(static_cast<double>(smooth[x]) == Approx(sum / weights));
  }
  // A scale of 1 mm on voxels far below it: half of either border.
  Grid small = grid;
  small.spacing_mm.x = GENERATE(1e-5, 1e-6, 1e-10);
  image.set_geometry(small);
  CHECK(smoothed(image, 1, 1)[2] == Approx((10 + 122) / 2.0).epsilon(1e-3));
}

}  // namespace
