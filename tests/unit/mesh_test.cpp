// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "larch/core/context.h"
#include "larch/core/random_math.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/smooth.h"
#include "larch/mesh/triangle_tree.h"
#include "larch/mesh/voxelise.h"
#include "tests/unit/box_mask.h"
#include "tests/unit/mesh_measures.h"

namespace {

using namespace larch;
using larch::mesh::marching_cubes;
using larch::test::grid_of;

constexpr double kPi = 3.14159265358979323846;

/// Signed distance to a sphere in world space, positive inside.
Volume<float> sphere_field(const Grid& grid, Vec3d centre_mm, double radius_mm) {
  Volume<float> field(grid);
  for (int64_t i = 0; i < field.voxels(); ++i) {
    const Vec3d p = world_from_index(grid, grid.voxel(i).cast<double>());
    field[i] = static_cast<float>(radius_mm - norm(p - centre_mm));
  }
  return field;
}

/// A rotation about a skew axis, exact enough for geometry tests.
Mat3 rotation() {
  const double c = std::cos(0.5), s = std::sin(0.5);
  const Mat3 about_z{{{c, -s, 0}, {s, c, 0}, {0, 0, 1}}};
  const Mat3 about_x{{{1, 0, 0}, {0, c, -s}, {0, s, c}}};
  return about_z * about_x;
}

}  // namespace

TEST_CASE("one voxel gives an octahedron") {
  Volume<uint8_t> mask(grid_of({1, 1, 1}), 1);
  const Mesh surface = marching_cubes(mask, Context{});
  CHECK(surface.vertices_mm.size() == 6);
  CHECK(surface.triangles.size() == 8);
  CHECK(mesh::volume_mm3(surface) == Approx(1.0 / 6));
  CHECK(mesh::area_mm2(surface) == Approx(std::sqrt(3.0)));
  CHECK(mesh::is_closed(surface));
  CHECK(mesh::euler_characteristic(surface) == 2);
}

TEST_CASE("the size of a surface is known before it is made, and memory is bounded by it") {
  std::mt19937 random(11);
  for (const Vec3i& size : {Vec3i{1, 1, 1}, Vec3i{9, 1, 4}, Vec3i{13, 17, 21}}) {
    for (const unsigned share : {0U, 1U, 4U, 8U}) {
      Volume<uint8_t> mask(grid_of(size), 0);
      for (uint8_t& m : mask) m = random() % 8 < share ? 3 : 0;
      for (const int threads : {1, 3}) {
        Context context;
        context.threads = threads;
        const mesh::SurfaceSize counted = mesh::surface_size(mask, context);
        const Mesh surface = marching_cubes(mask, context);
        CHECK(counted.vertices == static_cast<int64_t>(surface.vertices_mm.size()));
        CHECK(counted.triangles == static_cast<int64_t>(surface.triangles.size()));
        CHECK(counted.bytes() == 24 * counted.vertices + 12 * counted.triangles);
        CHECK(mesh::marching_cubes_bytes(counted, size, threads) > counted.bytes());
        CHECK(mesh::smooth_bytes(counted, {}) >= counted.bytes() + 40 * counted.vertices);
        CHECK(mesh::smooth_bytes(counted, {0}) == counted.bytes());
      }
    }
  }
}

TEST_CASE("no inside, no surface; all inside, a closed box with cut corners") {
  const Volume<uint8_t> none(grid_of({3, 4, 5}), 0), all(grid_of({3, 4, 5}), 7);
  CHECK(marching_cubes(none, Context{}).triangles.empty());
  const Mesh surface = marching_cubes(all, Context{});
  CHECK(mesh::is_closed(surface));
  // Cells with 8, 4, 2 and 1 inside corners hold 1, 1/2, 1/8 and 1/48 of their volume.
  CHECK(mesh::volume_mm3(surface) == Approx(24 + 52 / 2.0 + 36 / 8.0 + 8 / 48.0));
  Vec3d low{1e9, 1e9, 1e9}, high = low * -1;
  for (const Vec3d& v : surface.vertices_mm) {
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], v[axis]);
      high[axis] = std::max(high[axis], v[axis]);
    }
  }
  CHECK(low == Vec3d{-0.5, -0.5, -0.5});
  CHECK(high == Vec3d{2.5, 3.5, 4.5});
}

TEST_CASE("a sphere has the volume, area and topology of a sphere, in any grid") {
  Grid grid = grid_of({40, 44, 30}, {1.0, 0.9, 1.4});
  grid.origin_mm = {-17, 3, 50};
  const double radius_mm = 14.3;
  const bool turned = GENERATE(false, true);
  const bool mirrored = GENERATE(false, true);
  if (turned) grid.direction = rotation();
  if (mirrored) {
    for (auto& row : grid.direction.m) row[2] = -row[2];
  }
  const Vec3d centre_mm = world_from_index(grid, {19.6, 21.7, 14.3});
  const Mesh surface = marching_cubes(sphere_field(grid, centre_mm, radius_mm), 0.0, Context{});
  CHECK(mesh::is_closed(surface));
  CHECK(mesh::euler_characteristic(surface) == 2);
  CHECK(mesh::volume_mm3(surface) == Approx(4.0 / 3 * kPi * std::pow(radius_mm, 3)).epsilon(0.01));
  CHECK(mesh::area_mm2(surface) == Approx(4 * kPi * radius_mm * radius_mm).epsilon(0.01));
  for (const Vec3d& v : surface.vertices_mm) {
    REQUIRE(norm(v - centre_mm) == Approx(radius_mm).margin(0.05));
  }
}

TEST_CASE("every input gives a closed surface") {
  for (int trial = 0; trial < 60; ++trial) {
    Volume<float> field(grid_of({2 + trial % 5, 2 + trial % 3, 2 + trial % 7}));
    for (int64_t i = 0; i < field.voxels(); ++i) {
      field[i] = static_cast<float>(hash_unit(7, trial, i));
      // Values exactly at the isovalue, and values that are no numbers.
      if (hash_below(8, trial, i, 9) == 0) field[i] = 0.5f;
      if (hash_below(9, trial, i, 11) == 0) field[i] = std::numeric_limits<float>::quiet_NaN();
      if (hash_below(10, trial, i, 13) == 0) field[i] = std::numeric_limits<float>::infinity();
    }
    const Mesh surface = marching_cubes(field, 0.5, Context{});
    REQUIRE(mesh::is_closed(surface));
    REQUIRE(mesh::volume_mm3(surface) > 0);
    for (const Vec3i& t : surface.triangles) {
      const Vec3d a = surface.vertices_mm[t.x];
      REQUIRE(norm(cross(surface.vertices_mm[t.y] - a, surface.vertices_mm[t.z] - a)) > 0);
    }
  }
}

TEST_CASE("all pairs of neighbouring cells fit together") {
  // 2^12 masks of 2x2x3 voxels: every case beside every case that can be its neighbour.
  Volume<uint8_t> mask(grid_of({2, 2, 3}));
  for (int bits = 0; bits < 4096; ++bits) {
    for (int i = 0; i < 12; ++i) mask[i] = bits >> i & 1;
    REQUIRE(mesh::is_closed(marching_cubes(mask, Context{})));
  }
}

TEST_CASE("is_closed sees a hole, a flipped triangle and a doubled one") {
  const Mesh good = marching_cubes(Volume<uint8_t>(grid_of({2, 2, 2}), 1), Context{});
  CHECK(mesh::is_closed(good));
  CHECK(mesh::is_closed(Mesh{}));
  Mesh hole = good, flipped = good, doubled = good;
  hole.triangles.pop_back();
  std::swap(flipped.triangles[0].x, flipped.triangles[0].y);
  doubled.triangles.push_back(doubled.triangles[0]);
  CHECK_FALSE(mesh::is_closed(hole));
  CHECK_FALSE(mesh::is_closed(flipped));
  CHECK_FALSE(mesh::is_closed(doubled));
}

TEST_CASE("smoothing takes the steps off and keeps the volume") {
  const Volume<float> field = sphere_field(grid_of({40, 40, 40}), {19.5, 19.5, 19.5}, 15);
  Volume<uint8_t> mask(field.grid());
  for (int64_t i = 0; i < mask.voxels(); ++i) mask[i] = field[i] > 0;
  const Mesh rough = marching_cubes(mask, Context{});
  const Mesh fine = mesh::smooth(rough, {}, Context{});
  CHECK(mesh::volume_mm3(fine) == Approx(mesh::volume_mm3(rough)).epsilon(0.01));
  const double sphere_mm2 = 4 * kPi * 15 * 15;
  CHECK(mesh::area_mm2(rough) > 1.06 * sphere_mm2);
  CHECK(mesh::area_mm2(fine) < 1.02 * sphere_mm2);
  CHECK(mesh::is_closed(fine));
  mesh::SmoothConfig off;
  off.iterations = 0;
  CHECK(mesh::smooth(rough, off, Context{}).vertices_mm == rough.vertices_mm);
}

TEST_CASE("distance to a triangle: face, edges, corners") {
  const Vec3d a{0, 0, 0}, b{4, 0, 0}, c{0, 4, 0};
  CHECK(mesh::nearest_place({1, 1, 3}, a, b, c).squared == Approx(9));
  CHECK(mesh::nearest_place({2, -3, 0}, a, b, c).squared == Approx(9));
  CHECK(mesh::nearest_place({3, 3, 1}, a, b, c).squared == Approx(3));
  CHECK(mesh::nearest_place({-1, -2, 2}, a, b, c).squared == Approx(9));
  CHECK(mesh::nearest_place({6, 0, 0}, a, b, c).squared == Approx(4));
  CHECK(mesh::nearest_place({0, 9, 0}, a, b, c).squared == Approx(25));
  CHECK(mesh::nearest_place({5, 1, 0}, a, a, b).squared == Approx(2));
  CHECK(mesh::nearest_place({5, 1, 0}, a, a, a).squared == Approx(26));
  for (const Vec3d& p :
       {Vec3d{1, 1, 3}, {2, -3, 0}, {3, 3, 1}, {-1, -2, 2}, {6, 0, 0}, {-1, 2, 1}}) {
    const auto [squared, w] = mesh::nearest_place(p, a, b, c);
    const Vec3d off = p - (a * w.x + b * w.y + c * w.z);
    CHECK(dot(off, off) == Approx(squared));
    CHECK(w.x + w.y + w.z == Approx(1));
  }
}

TEST_CASE("the triangle tree finds the nearest of all triangles, whatever the hint") {
  Mesh surface =
      marching_cubes(sphere_field(grid_of({20, 24, 22}), {9, 11, 10}, 7.3), 0, Context{});
  const std::vector<Vec3i> again = surface.triangles;
  surface.triangles.insert(surface.triangles.end(), again.begin(), again.end());
  const mesh::TriangleTree tree(surface);
  const auto triangles = static_cast<uint32_t>(surface.triangles.size());
  for (int i = 0; i < 300; ++i) {
    const Vec3d p{30 * hash_unit(1, 0, i) - 5, 30 * hash_unit(1, 1, i) - 5,
                  30 * hash_unit(1, 2, i) - 5};
    double expected = 1e300;
    for (const Vec3i& t : surface.triangles) {
      const auto [squared, weights] = mesh::nearest_place(
          p, surface.vertices_mm[t.x], surface.vertices_mm[t.y], surface.vertices_mm[t.z]);
      expected = std::min(expected, squared);
    }
    int32_t hint = static_cast<int32_t>(hash_below(2, 0, i, triangles));
    REQUIRE(tree.distance_mm(p, hint) == std::sqrt(expected));
  }
}

TEST_CASE("voxelise is the inverse of marching cubes on a mask") {
  Grid grid = grid_of({17, 15, 13}, {1.5, 0.8, 2});
  grid.origin_mm = {3, -9, 4};
  grid.direction = rotation();
  Volume<uint8_t> mask(grid);
  for (int64_t i = 0; i < mask.voxels(); ++i) mask[i] = hash_below(5, 0, i, 3) == 0;
  const Mesh surface = marching_cubes(mask, Context{});
  const Volume<uint8_t> back = mesh::voxelise(surface, grid, Context{});
  CHECK(std::equal(mask.begin(), mask.end(), back.begin()));
}

TEST_CASE("voxelise: centres on the surface go to one of two boxes that touch") {
  const auto box = [](double low, double high) {
    Mesh m;
    for (int c = 0; c < 8; ++c) {
      m.vertices_mm.push_back({c & 1 ? high : low, c & 2 ? 6.0 : 1.0, c & 4 ? 6.0 : 1.0});
    }
    m.triangles = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6}, {0, 1, 4}, {1, 5, 4},
                   {2, 6, 3}, {3, 6, 7}, {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
    return m;
  };
  REQUIRE(mesh::is_closed(box(1, 4)));
  REQUIRE(mesh::volume_mm3(box(1, 4)) == Approx(75));
  const Grid grid = grid_of({9, 9, 9});
  const auto count = [&](const Mesh& m) {
    const Volume<uint8_t> mask = mesh::voxelise(m, grid, Context{});
    return std::count(mask.begin(), mask.end(), 1);
  };
  CHECK(count(box(1, 4)) == 75);
  CHECK(count(box(4, 7)) == 75);
  CHECK(count(box(1, 7)) == 150);
  CHECK(count(box(-5, 20)) == 9 * 25);
}
