// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include <catch2/catch.hpp>

#include "larch/levelset/step/step_math.h"
#include "tests/unit/levelset/problems.h"

// The formulas of one voxel, against fields whose derivatives are known.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

constexpr Vec3d kSpacing{1, 1.3, 1.7};

levelset::Step step_of(double curvature_weight, double advection_weight = 0) {
  LevelsetConfig config;
  config.curvature_weight = curvature_weight;
  config.advection_weight = advection_weight;
  config.time_step = 0.1;
  return make_step(config, {}, kSpacing, {9, 9, 9});
}

/// A function of a position in mm on the stencil around `centre`.
Stencil<float> stencil_of(const Vec3d& centre, const std::function<double(const Vec3d&)>& phi) {
  const auto at = [&](int x, int y, int z) {
    return static_cast<float>(phi(centre + Vec3d{x * kSpacing.x, y * kSpacing.y, z * kSpacing.z}));
  };
  Stencil<float> p{};
  p.centre = at(0, 0, 0);
  p.xm = at(-1, 0, 0), p.xp = at(1, 0, 0), p.ym = at(0, -1, 0), p.yp = at(0, 1, 0);
  p.zm = at(0, 0, -1), p.zp = at(0, 0, 1);
  p.xm_ym = at(-1, -1, 0), p.xp_ym = at(1, -1, 0), p.xm_yp = at(-1, 1, 0), p.xp_yp = at(1, 1, 0);
  p.xm_zm = at(-1, 0, -1), p.xp_zm = at(1, 0, -1), p.xm_zp = at(-1, 0, 1), p.xp_zp = at(1, 0, 1);
  p.ym_zm = at(0, -1, -1), p.yp_zm = at(0, 1, -1), p.ym_zp = at(0, -1, 1), p.yp_zp = at(0, 1, 1);
  return p;
}

TEST_CASE("the curvature is the sum of the principal ones times the gradient, however flat phi") {
  const levelset::Step s = step_of(0.5);
  const double slope = GENERATE(1.0, 0.02, -0.5);
  const Vec3d on_ball =
      GENERATE(Vec3d{24, 0, 0}, Vec3d{0, 17, 17}, Vec3d{-14, 14, 14}, Vec3d{9, -20, 10});
  CAPTURE(slope, on_ball.x);
  const auto ball = stencil_of(on_ball, [&](const Vec3d& at) { return slope * (norm(at) - 24); });
  CHECK(curvature_flow(ball, s) == Approx(slope * 2 / norm(on_ball)).epsilon(0.03));
  const auto rod = stencil_of(
      on_ball, [&](const Vec3d& at) { return slope * (std::hypot(at.x - 3, at.z + 4) - 20); });
  CHECK(curvature_flow(rod, s) ==
        Approx(slope / std::hypot(on_ball.x - 3, on_ball.z + 4)).epsilon(0.03));
  const auto plane =
      stencil_of(on_ball, [&](const Vec3d& at) { return slope * (at.x + 2 * at.y - at.z); });
  CHECK(curvature_flow(plane, s) == Approx(0).margin(1e-4));
  CHECK(curvature_flow(stencil_of({}, [](const Vec3d&) { return 3; }), s) == 0);
}

TEST_CASE("the upwind gradient is from where the front comes") {
  const levelset::Step s = step_of(0.5);
  const Vec3d n = GENERATE(Vec3d{0.6, -0.5, 0.2}, Vec3d{-0.1, 0.7, -0.9});
  const auto plane = stencil_of({1, 2, 3}, [&](const Vec3d& at) { return dot(n, at); });
  for (const float speed : {1.0F, -1.0F}) {
    CHECK(upwind_gradient(plane, speed, s) == Approx(norm(n)).epsilon(1e-5));
  }
  // A valley of phi inside: outwards nothing reaches it, inwards both sides do. The other way round
  // on a ridge.
  const auto valley = stencil_of(
      {}, [](const Vec3d& at) { return std::abs(at.x) + 2 * std::abs(at.y) + 3 * std::abs(at.z); });
  const auto ridge = stencil_of({}, [](const Vec3d& at) {
    return -std::abs(at.x) - 2 * std::abs(at.y) - 3 * std::abs(at.z);
  });
  const double both = std::sqrt(2 * (1 + 4 + 9));
  CHECK(upwind_gradient(valley, 1.0F, s) == 0);
  CHECK(upwind_gradient(valley, -1.0F, s) == Approx(both));
  CHECK(upwind_gradient(ridge, 1.0F, s) == Approx(both));
  CHECK(upwind_gradient(ridge, -1.0F, s) == 0);
}

TEST_CASE("attraction takes the difference from the side that it comes from") {
  const levelset::Step s = step_of(0, 1);
  const auto kink = stencil_of({}, [](const Vec3d& at) {
    const auto side = [](double x, double below, double above) {
      return x * (x < 0 ? below : above);
    };
    return side(at.x, 1, 10) + side(at.y, 2, 20) + side(at.z, 3, 30);
  });
  CHECK(upwind_advection(kink, 1.0F, 0.0F, 0.0F, s) == Approx(1));
  CHECK(upwind_advection(kink, -1.0F, 0.0F, 0.0F, s) == Approx(-10));
  CHECK(upwind_advection(kink, 0.0F, 0.5F, 0.0F, s) == Approx(1));
  CHECK(upwind_advection(kink, 0.0F, -0.5F, 0.0F, s) == Approx(-10));
  CHECK(upwind_advection(kink, 0.0F, 0.0F, 0.1F, s) == Approx(0.3));
  CHECK(upwind_advection(kink, 0.0F, 0.0F, -0.1F, s) == Approx(-3));
}

TEST_CASE("a step is the sum of its terms with their weights") {
  const levelset::Step s = step_of(0.25, 2);
  const auto ball = stencil_of({24, 0, 0}, [](const Vec3d& at) { return norm(at) - 24; });
  const double curvature = curvature_flow(ball, s), gradient = upwind_gradient(ball, 1.0F, s);
  const auto change = [&](float speed) {
    return static_cast<double>(stepped(ball, speed, s) - ball.centre);
  };
  CHECK(change(0) == Approx(0.1 * 0.25 * curvature));
  CHECK(change(0.5F) == Approx(0.1 * (0.25 * curvature - 0.75 * 0.5 * gradient)));
  CHECK(advected(1.0F, ball, 1.0F, 0.0F, 0.0F, s) == Approx(1 - 0.1 * 2).epsilon(1e-3));
}

TEST_CASE("a value is held, snapped and at rest alike on both sides") {
  for (const float sign : {1.0F, -1.0F}) {
    CHECK(held(sign * 2.93F) == sign * 2.93F);
    CHECK(held(sign * 2.95F) == sign * 3);
    CHECK(held(sign * 70) == sign * 3);
    CHECK(settle(1.0F, 1 + sign * 0.0009F) == 1);
    CHECK(settle(1.0F, 1 + sign * 0.0011F) == 1 + sign * 0.0011F);
    CHECK(settle(sign * 2.93F, sign * 2.9405F) == sign * 3);
  }
}

TEST_CASE("of two structures that push each other each has half of the gap") {
  CHECK(settle_apart(1.0F, 0.5F, 1.0F) == 0.5F);      // free
  CHECK(settle_apart(1.0F, -0.5F, 1.0F) == 0);        // both would take the voxel
  CHECK(settle_apart(-1.0F, -1.5F, 0.5F) == -0.75F);  // an overlap is given back
  CHECK(overlap(-1, 0.5F));
  CHECK_FALSE(overlap(-1, 1));
}

}  // namespace
