// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "tests/unit/levelset/problems.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

TEST_CASE("a field holds an image by brick, in both buffers, within the clamp") {
  const Grid grid = levelset_grid({11, 9, 17});
  const auto phi = volume_of<float>(grid, [](const Vec3d& at) { return 0.4 * at.x + at.y - at.z; });
  Run run;
  run.context.threads = 2;
  run.add(phi, Volume<int16_t>(grid, 77));
  const LevelsetField& field = run.job.fields[0];
  CHECK(field.phi[0].size() == static_cast<size_t>(2 * 2 * 3 * kBrickVoxels));
  for (int64_t buffer = 0; buffer < 2; ++buffer) {
    const auto back = phi_volume(field, buffer, grid, run.context);
    for (int64_t i = 0; i < grid.voxels(); ++i) {
      const float wanted = phi[i] > 2.94F ? 3.0F : phi[i] < -2.94F ? -3.0F : phi[i];
      REQUIRE(back[i] == wanted);
    }
  }
  CHECK(field.speed.data()[field.layout.offset({10, 8, 16})] == 77);
}

TEST_CASE("a field has no negative zeros") {
  // Beside others the larger of two zeros would else depend on which of them comes first.
  const Grid grid = levelset_grid({4, 4, 4});
  Run run;
  run.add(Volume<float>(grid, -0.0F), Volume<int16_t>(grid));
  for (const float value : phi_volume(run.job.fields[0], 0, grid, run.context)) {
    CHECK_FALSE(std::signbit(value));
  }
}

TEST_CASE("a field that is not a number somewhere is refused") {
  const Grid grid = levelset_grid({4, 4, 4});
  Volume<float> phi(grid);
  phi[5] = std::numeric_limits<float>::quiet_NaN();
  Run run;
  CHECK_THROWS_AS(run.add(phi, Volume<int16_t>(grid)), InputError);
}

TEST_CASE("the time step is the stable one, whatever the grid") {
  LevelsetConfig config;
  const Vec3i size{9, 9, 9};
  const auto largest = [&](const Vec3d& spacing, const Vec3i& of, const SpeedBounds& bounds = {}) {
    return largest_stable_step(config, bounds, spacing, of);
  };
  config.curvature_weight = 0.5;
  CHECK(largest({1, 1, 1}, size) == Approx(1 / (0.5 * std::sqrt(3.0) + 3)));
  CHECK(largest({2, 2, 2}, size) == Approx(largest({1, 1, 1}, size)));
  CHECK(largest({1, 1, 2}, size) == Approx(1 / (0.5 * std::sqrt(2.25) + 2.25)));
  // An axis of one voxel counts neither as spacing nor in the bound.
  CHECK(largest({1, 1, 0.1}, {9, 9, 1}) == Approx(1 / (0.5 * std::sqrt(2.0) + 2)));
  config.advection_weight = 0.2;
  CHECK(largest({1, 1, 1}, size, {1, 3}) == Approx(1 / (0.5 * std::sqrt(3.0) + 3 + 0.6)));
  config.advection_weight = 0;
  config.curvature_weight = 0;
  CHECK(largest({1, 1, 1}, size) == Approx(0.5));  // a front may move by a sixth of the clamp
  CHECK(make_step(config, {}, {1, 1, 1}, size).time == Approx(0.45));
  CHECK(make_step(config, {0, 0}, {1, 1, 1}, size).time == 1.0F);
}

}  // namespace
