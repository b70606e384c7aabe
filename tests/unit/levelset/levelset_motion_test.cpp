// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <catch2/catch.hpp>

#include "tests/unit/levelset/problems.h"

// Motions with known answers: that the equation is the one that the room's page says.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

Volume<int16_t> constant_speed(const Grid& grid, double speed) {
  return test::speed_of(grid, [speed](const Vec3d&) { return speed; });
}

/// `phi` moved for `time` in steps of `dt`.
Volume<float> moved(const Volume<float>& phi, const Volume<int16_t>& speed, double curvature_weight,
                    double dt, double time) {
  Run run;
  run.config.curvature_weight = curvature_weight;
  run.config.time_step = dt;
  run.add(phi, speed);
  run.evolve(std::lround(time / dt));
  REQUIRE(run.iterations() == std::lround(time / dt));
  return run.phi();
}

TEST_CASE("a sphere shrinks by its curvature as sqrt(r^2 - 4 t)") {
  const Grid grid = levelset_grid({56, 56, 56});
  const double dt = GENERATE(0.16, 0.15);
  const auto phi = moved(sphere(grid, middle_mm(grid), 20), constant_speed(grid, 0), 1, dt, 48);
  CHECK(ball_radius(phi) == Approx(std::sqrt(400 - 4 * 48.0)).margin(0.10));
}

TEST_CASE("cylinders and circles shrink as sqrt(r^2 - 2 t)") {
  const int depth = GENERATE(1, 8);
  const Grid grid = levelset_grid({44, 44, depth});
  const Vec3d middle = middle_mm(grid);
  const auto start = volume_of<float>(
      grid, [&](const Vec3d& at) { return std::hypot(at.x - middle.x, at.y - middle.y) - 15; });
  const auto phi = moved(start, constant_speed(grid, 0), 1, 0.16, 48);
  const double radius = std::sqrt(partial_volume(phi) / depth / M_PI);
  CHECK(radius == Approx(std::sqrt(225 - 2 * 48.0)).margin(0.10));
}

/// Whether a front gets through a hole of a radius in a wall, from one slab to the other.
bool passes(double radius) {
  const Grid grid = levelset_grid({40, 32, 32});
  const Vec3d middle = middle_mm(grid);
  const auto speed = test::speed_of(grid, [&](const Vec3d& at) {
    const bool is_wall = std::abs(at.x - middle.x) < 6;
    return is_wall && std::hypot(at.y - middle.y, at.z - middle.z) > radius ? -1.0 : 1.0;
  });
  Run run;
  run.config.curvature_weight = 0.7;
  run.add(volume_of<float>(grid, [](const Vec3d& at) { return at.x - 6; }), speed);
  run.evolve(2500);
  return run.phi()({38, 16, 16}) < 0;
}

TEST_CASE("curvature holds a front back at a narrow hole and not at a wide one") {
  CHECK_FALSE(passes(3));
  CHECK(passes(7));
}

TEST_CASE("two seeds merge to the union of what each becomes") {
  const Grid grid = levelset_grid({66, 40, 40});
  const Vec3d left{18, 19.5, 19.5}, right{48, 19.5, 19.5};
  const auto grown = [&](const Volume<float>& seed) {
    return moved(seed, constant_speed(grid, 1), 0, 0.25, 13);
  };
  const auto united = [](Volume<float> a, const Volume<float>& b) {
    for (int64_t i = 0; i < a.voxels(); ++i) a[i] = std::min(a[i], b[i]);
    return a;
  };
  const auto a = sphere(grid, left, 4), b = sphere(grid, right, 4);
  const auto phi = grown(united(a, b));
  CHECK(std::none_of(phi.begin(), phi.end(), [](float value) { return std::isnan(value); }));
  for (int32_t x = 18; x <= 48; ++x) CHECK(phi({x, 20, 20}) < 0);  // one component
  CHECK(partial_volume(phi) == Approx(partial_volume(united(grown(a), grown(b)))).epsilon(0.01));
}

/// Radii in mm of a ball about the middle of its grid: that of the volume inside, from a part of
/// the voxels at the surface, and where phi changes its sign along each axis.
std::array<double, 4> radii_mm(const Volume<float>& phi) {
  const Vec3d& spacing = phi.grid().spacing_mm;
  const double volume_mm3 = partial_volume(phi) * spacing.x * spacing.y * spacing.z;
  const Vec3i middle{phi.size().x / 2, phi.size().y / 2, phi.size().z / 2};
  return {std::cbrt(volume_mm3 * 3 / (4 * M_PI)), crossing_mm(phi, middle, 0),
          crossing_mm(phi, middle, 1), crossing_mm(phi, middle, 2)};
}
Volume<float> middle_ball(const Grid& grid, double radius_mm) {
  const Vec3i& n = grid.size;
  const Vec3d& h = grid.spacing_mm;
  const Vec3d centre_mm{n.x / 2 * h.x, n.y / 2 * h.y, n.z / 2 * h.z};
  return sphere(grid, centre_mm, radius_mm);
}

TEST_CASE("lengths are mm on grids of thick slices") {
  // A ball of 20 mm, in the program's own time step.
  const Grid grid = levelset_grid({60, 60, 25}, {1, 1, 2.5});
  const double dt = 0.9 / (2 * (1 + 1 + 1 / 6.25));
  const auto phi = moved(middle_ball(grid, 20), constant_speed(grid, 0), 1, dt, 120 * dt);
  const double expected = std::sqrt(400 - 4 * 120 * dt);
  for (const double radius : radii_mm(phi)) CHECK(radius == Approx(expected).margin(0.15));
}

TEST_CASE("a growing ball lags by what differences of first order cost") {
  // |grad phi| is too small by sum h_i |n_i| (1 - n_i^2) / 2r for a normal n, on average over the
  // sphere by sum h_i / 8r; to this the clamp adds less than a tenth of a voxel.
  struct Case {
    double thickness, from, to;
  };
  const auto run = GENERATE(Case{1, 10, 22}, Case{2.5, 10, 22}, Case{2.5, 20, 26});
  const Grid grid =
      levelset_grid({60, 60, static_cast<int>(60 / run.thickness)}, {1, 1, run.thickness});
  const auto phi =
      moved(middle_ball(grid, run.from), constant_speed(grid, 1), 0, 0.25, run.to - run.from);
  const double lag = (2 + run.thickness) / 8 * std::log(run.to / run.from);
  CAPTURE(run.thickness, run.from, lag);
  CHECK(radii_mm(phi)[0] < run.to - lag + 0.02);
  CHECK(radii_mm(phi)[0] > run.to - lag - 0.1);
}

TEST_CASE("fronts get on down to the speed that is said to be the slowest, on thick slices too") {
  const double h = GENERATE(1.0, 10.0);
  const Grid grid = levelset_grid({9, 9, 40}, {1, 1, h});
  const auto travelled_mm = [&](double speed) {
    Run run;
    run.config.curvature_weight = 0;
    run.config.time_step = 0.45;
    run.add(volume_of<float>(grid, [&](const Vec3d& at) { return at.z - 10.2 * h; }),
            constant_speed(grid, speed));
    run.evolve(std::lround(20 * h / speed / 0.45));
    return crossing_mm(run.phi(), {4, 4, 0}, 2) - 10.2 * h;
  };
  const double slowest = slowest_front(0.45, h);
  CHECK(slowest == Approx(0.01 * h / 0.45));
  CHECK(travelled_mm(0.9 * slowest) < 4 * h);
  CHECK(travelled_mm(1.5 * slowest) > 6 * h);
  CHECK(travelled_mm(4 * slowest) > 15 * h);
}

TEST_CASE("the negative of field and speed gives the negative, bit for bit") {
  const Grid grid = levelset_grid({24, 20, 22});
  const auto phi = sphere(grid, middle_mm(grid), 6.3);
  const auto wave = [](const Vec3d& at) {
    return std::sin(0.4 * at.x) * std::cos(0.3 * at.y + at.z);
  };
  auto minus_phi = phi;
  for (float& value : minus_phi) value = -value;
  const double a = GENERATE(0.0, 0.3);
  const auto plus = moved(phi, test::speed_of(grid, wave), a, 0.2, 12);
  auto minus = moved(minus_phi, test::speed_of(grid, [&](const Vec3d& at) { return -wave(at); }), a,
                     0.2, 12);
  for (float& value : minus) value = -value;
  CHECK(std::equal(plus.begin(), plus.end(), minus.begin()));
}

TEST_CASE("an image with its axes exchanged and turned round gives the same") {
  // In mm; each axis has a spacing of its own in the second round, and so every difference its own.
  const Vec3d h = GENERATE(Vec3d{1, 1, 1}, Vec3d{1, 1.3, 1.7});
  const Grid grid = levelset_grid({24, 20, 22}, h);
  const Grid turned = levelset_grid({22, 24, 20}, {h.z, h.x, h.y});
  const auto from = [&](const Vec3d& at) { return Vec3d{23 * h.x - at.y, at.z, at.x}; };
  const auto ball = [](const Vec3d& at) { return norm(at - Vec3d{12, 9, 10}) - 6.3; };
  const auto wave = [](const Vec3d& at) {
    return std::sin(0.4 * at.x) * std::cos(0.3 * at.y + at.z);
  };
  const auto attraction = [](const Vec3d& at) {
    return Vec3d{0.5 * std::sin(0.5 * at.y), 0.4 * std::cos(0.3 * at.z), 0.3 * std::sin(at.x)};
  };
  const auto run = [](const Grid& on, const auto& field, const auto& data, const auto& a) {
    Run r;
    r.config.curvature_weight = 0.2;
    r.config.advection_weight = 0.3;
    r.config.time_step = 0.2;
    r.add(volume_of<float>(on, field), test::speed_of(on, data));
    for (int axis = 0; axis < 3; ++axis) {
      const auto along = [&](const Vec3d& at) { return a(at)[axis]; };
      r.job.fields[0].advection[axis] = by_brick(test::speed_of(on, along), r.context);
    }
    r.evolve(60);
    return r.phi();
  };
  const auto phi = run(grid, ball, wave, attraction);
  const auto other = run(
      turned, [&](const Vec3d& at) { return ball(from(at)); },
      [&](const Vec3d& at) { return wave(from(at)); },
      [&](const Vec3d& at) {
        const Vec3d a = attraction(from(at));
        return Vec3d{a.z, -a.x, a.y};
      });
  REQUIRE(voxels_inside(phi) > 100);
  double largest = 0;
  for (int64_t i = 0; i < other.voxels(); ++i) {
    const Vec3i to = turned.voxel(i), at{23 - to.y, to.z, to.x};
    largest = std::max(largest, std::abs(double{other[i]} - double{phi(at)}));
  }
  CHECK(largest <= 1e-5);
}

}  // namespace
