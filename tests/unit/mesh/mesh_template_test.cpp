// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/mesh/sphere_template.h"
#include "larch/mesh/voxelise.h"
#include "tests/unit/mesh_measures.h"

namespace larch::mesh {
namespace {

constexpr double kPi = 3.14159265358979323846;

const TemplateLevel& level_of(int level) {
  return sphere_template().levels[static_cast<size_t>(level)];
}

/// The places of a level on the sphere.
std::vector<Vec3d> unit_of(int level) {
  const std::vector<Vec3d>& unit = sphere_template().unit;
  return {unit.begin(), unit.begin() + kTemplateVertices[level]};
}

Mesh mesh_of(int level) {
  return {unit_of(level), level_of(level).triangles};
}

/// What is known of a level.
struct Known {
  int level;
  size_t vertices, triangles;
  int valence;
  double volume, areas;  ///< over that of the sphere; the largest over the smallest triangle
};
Known known_level() {
  return GENERATE(values<Known>({{0, 602, 1200, 6, 0.9893, 1.43},
                                 {1, 1202, 2400, 8, 0.9946, 1.41},
                                 {2, 2402, 4800, 8, 0.9973, 1.41}}));
}

TEST_CASE("each level of the template is a closed sphere of known size") {
  const Known known = known_level();
  CAPTURE(known.level);
  const Mesh sphere = mesh_of(known.level);
  CHECK(sphere.vertices_mm.size() == known.vertices);
  CHECK(sphere.triangles.size() == known.triangles);
  CHECK(is_closed(sphere));
  CHECK(euler_characteristic(sphere) == 2);
  for (const Vec3d& at : sphere.vertices_mm) REQUIRE(norm(at) == Approx(1));
  CHECK(signed_volume_mm3(sphere) / (4 * kPi / 3) == Approx(known.volume).margin(0.001));

  double least = 1e300, most = 0;
  for (const Vec3i& t : sphere.triangles) {
    const auto at = [&](int k) { return sphere.vertices_mm[static_cast<size_t>(t[k])]; };
    const Vec3d normal = cross(at(1) - at(0), at(2) - at(0));
    REQUIRE(dot(normal, at(0) + at(1) + at(2)) > 0);
    least = std::min(least, norm(normal));
    most = std::max(most, norm(normal));
  }
  CHECK(most / least == Approx(known.areas).margin(0.006));
}

TEST_CASE("rings have the neighbours of a vertex in the order of its triangles") {
  const Known known = known_level();
  CAPTURE(known.level);
  const TemplateLevel& level = level_of(known.level);
  REQUIRE(level.rings.size() == known.vertices);
  int most = 0;
  std::vector<Vec3i> around;
  for (size_t v = 0; v < level.rings.size(); ++v) {
    const Ring& ring = level.rings[v];
    most = std::max<int>(most, ring.count);
    for (int i = 0; i < ring.count; ++i) {
      Vec3i t{static_cast<int>(v), ring.neighbours[i], ring.neighbours[(i + 1) % ring.count]};
      while (t.x > t.y || t.x > t.z) t = {t.y, t.z, t.x};
      around.push_back(t);
    }
  }
  CHECK(most == known.valence);
  // Each triangle is met at its three vertices.
  std::vector<Vec3i> thrice;
  for (Vec3i t : level.triangles) {
    while (t.x > t.y || t.x > t.z) t = {t.y, t.z, t.x};
    thrice.insert(thrice.end(), 3, t);
  }
  const auto before = [](const Vec3i& a, const Vec3i& b) {
    return std::lexicographical_compare(&a.x, &a.x + 3, &b.x, &b.x + 3);
  };
  std::sort(around.begin(), around.end(), before);
  std::sort(thrice.begin(), thrice.end(), before);
  CHECK(around == thrice);
}

TEST_CASE("a finer level adds vertices between those of the one before, which keep their numbers") {
  const int level = GENERATE(1, 2);
  const auto coarse = static_cast<size_t>(kTemplateVertices[level - 1]);
  const std::vector<Vec3d> unit = unit_of(level);
  const TemplateLevel& of = level_of(level);
  REQUIRE(of.parents.size() == unit.size() - coarse);
  for (size_t i = 0; i < of.parents.size(); ++i) {
    Vec3d mean{};
    for (const uint16_t parent : of.parents[i]) {
      REQUIRE(parent < coarse);
      mean += unit[parent] * 0.25;
    }
    // A new place lies over the middle of its parents, and they are no farther than a quad is wide.
    REQUIRE(norm(mean / norm(mean) - unit[coarse + i]) < 0.02);
    REQUIRE(norm(mean) > 0.98);
  }

  // From a shape, the new vertices go where the turned and scaled shape has them.
  const Mat3 turn{{{0, -2, 0}, {2, 0, 0}, {0, 0, 2}}};
  const Vec3d shift{5, -3, 40};
  std::vector<Vec3d> grown;
  for (size_t v = 0; v < coarse; ++v) grown.push_back(shift + turn * unit[v]);
  add_vertices(level, sphere_template().unit, turn, grown);
  REQUIRE(grown.size() == unit.size());
  for (size_t v = 0; v < grown.size(); ++v)
    REQUIRE(norm(grown[v] - shift - turn * unit[v]) < 1e-12);
}

TEST_CASE("the level of a mesh is known by its triangles alone") {
  const int level = GENERATE(0, 1, 2);
  Mesh mesh = mesh_of(level);
  for (Vec3d& at : mesh.vertices_mm) at = {3 * at.x, 7, at.z - 100};
  CHECK(template_level_of(mesh) == level);
  Mesh other = mesh;
  std::swap(other.triangles[7], other.triangles[8]);
  CHECK(template_level_of(other) == -1);
  other = mesh;
  std::swap(other.triangles[3].y, other.triangles[3].z);
  CHECK(template_level_of(other) == -1);
  other = mesh;
  other.triangles.pop_back();
  CHECK(template_level_of(other) == -1);
  other = mesh;
  other.vertices_mm.push_back({});
  CHECK(template_level_of(other) == -1);
  CHECK(template_level_of(Mesh{}) == -1);
}

TEST_CASE("triangles that are turned over are counted") {
  const int level = GENERATE(0, 1, 2);
  std::vector<Vec3d> places = unit_of(level);
  CHECK(flipped_triangles(level, places) == 0);
  // Turned inside out as a whole, the normals at the vertices turn, too.
  for (Vec3d& at : places) at.x = -at.x;
  CHECK(flipped_triangles(level, places) == 0);
  // A vertex that is pulled over one of its neighbours turns a few triangles.
  places = unit_of(level);
  const Ring& ring = level_of(level).rings[100];
  const Vec3d far = places[ring.neighbours[0]];
  places[100] = far + (far - places[100]);
  const int flipped = flipped_triangles(level, places);
  CHECK(flipped >= 1);
  CHECK(flipped <= 8);
}

}  // namespace
}  // namespace larch::mesh
