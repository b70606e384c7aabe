// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/portable_math.h"
#include "larch/mesh/sphere_template.h"
#include "larch/mesh/voxelise.h"
#include "larch/pose/distance_map.h"
#include "larch/pose/truth.h"
#include "larch/shape/correspondence.h"
#include "larch/shape/shape_model.h"
#include "tests/unit/box_mask.h"

namespace larch::shape {
namespace {

constexpr double kDegree = 0.017453292519943295;

/// An ellipsoid that is somewhat turned, on a grid of its own.
struct Ellipsoid {
  Vec3d semi_axes, centre_mm;
  Quaternion rotation;
  Volume<uint8_t> mask;
};
Ellipsoid ellipsoid(uint64_t number) {
  const auto drawn = [&](uint64_t k) { return 2 * hash_unit(3, k, number) - 1; };
  Ellipsoid out;
  out.semi_axes = {11 + 1.5 * drawn(0), 8 + drawn(1), 6 + 0.6 * drawn(2)};
  out.rotation = from_rotation_vector(Vec3d{drawn(3), drawn(4), drawn(5)} * (8 * kDegree));
  Grid grid = test::grid_of({30, 26, 24});
  grid.origin_mm = {40 * drawn(6), 40 * drawn(7), 40 * drawn(8)};
  out.centre_mm = world_from_index(grid, {14.3 + drawn(9), 12.4 + drawn(10), 11.7 + drawn(11)});
  out.mask = Volume<uint8_t>(grid);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d at = world_from_index(grid, grid.voxel(i).cast<double>()) - out.centre_mm;
    const Vec3d m = rotate(conjugate(out.rotation), at);
    out.mask[i] =
        norm(Vec3d{m.x / out.semi_axes.x, m.y / out.semi_axes.y, m.z / out.semi_axes.z}) < 1;
  }
  return out;
}

struct Cases {
  std::vector<Volume<uint8_t>> masks;
  std::vector<Volume<float>> distances_mm;
  pose::PoseTruth truth;
  std::vector<Pose> poses;
};
const Cases& cases() {
  static const Cases made = [] {
    Cases all;
    for (uint64_t i = 0; i < 12; ++i) all.masks.push_back(ellipsoid(i).mask);
    Context context;
    context.threads = 2;
    all.truth = pose::fit_poses(all.masks, pose::OrientationKind::kFit, context);
    for (const pose::CasePose& c : all.truth.cases) all.poses.push_back(c.pose);
    for (const auto& m : all.masks) all.distances_mm.push_back(pose::distance_map(m, 128));
    return all;
  }();
  return made;
}
Correspondence corresponded(int threads) {
  Context context;
  context.threads = threads;
  return correspond(cases().distances_mm, cases().poses, cases().truth.mean_distance_mm, context);
}
const Correspondence& found() {
  static const Correspondence made = corresponded(2);
  return made;
}

TEST_CASE("the template lies on the surfaces of ellipsoids, without a triangle turned over") {
  REQUIRE(found().cases.size() == 12);
  REQUIRE(found().mean_mm.size() == static_cast<size_t>(mesh::kMaximumTemplateVertices));
  for (uint64_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    const CorrespondedCase& c = found().cases[i];
    CHECK(c.rejection.empty());
    REQUIRE(c.vertices_mm.size() == static_cast<size_t>(mesh::kMaximumTemplateVertices));
    CHECK(c.distance_voxels < 0.5);
    CHECK(c.flipped == 0);
    CHECK(c.flipped_strictly == 0);
    CHECK(mesh::flipped_triangles(2, c.vertices_mm) == 0);
    // The distance is that of the vertices, and the true surface is as near.
    const Ellipsoid truth = ellipsoid(i);
    const Volume<float> map = pose::distance_map(truth.mask, 128);
    double off_mask = 0, off_truth = 0;
    for (const Vec3d& at : c.vertices_mm) {
      off_mask += std::abs(pose::sample_distance(map, at).mm) / 2402;
      const Vec3d m = rotate(conjugate(truth.rotation), at - truth.centre_mm);
      const Vec3d& s = truth.semi_axes;
      const double r = norm(Vec3d{m.x / s.x, m.y / s.y, m.z / s.z});
      off_truth += std::abs(r - 1) * norm(m) / r / 2402;
    }
    CHECK(off_mask == Approx(c.distance_voxels));
    CHECK(off_truth < 0.5);
    const mesh::SphereTemplate& sphere = mesh::sphere_template();
    const Vec3d s = truth.semi_axes;
    const double volume = 4.18879 * s.x * s.y * s.z;
    CHECK(mesh::signed_volume_mm3({c.vertices_mm, sphere.levels[2].triangles}) ==
          Approx(volume).epsilon(0.08));
  }
}

TEST_CASE("a vertex is the same place in all cases") {
  // In the frames of their boxes, where boxes have edges of 1, corresponding vertices are near each
  // other: two of the template that are neighbours are 0.07 apart.
  double most = 0;
  for (size_t i = 1; i < found().cases.size(); ++i) {
    double sum = 0;
    for (size_t v = 0; v < found().mean_mm.size(); ++v) {
      const auto placed = [&](size_t c) {
        const Pose& pose = cases().poses[c];
        const Vec3d mm = box_mm_from_world(pose, found().cases[c].vertices_mm[v]);
        return Vec3d{mm.x / pose.edges_mm.x, mm.y / pose.edges_mm.y, mm.z / pose.edges_mm.z};
      };
      sum += norm(placed(i) - placed(0)) / static_cast<double>(found().mean_mm.size());
    }
    most = std::max(most, sum);
  }
  CAPTURE(most);
  CHECK(most < 0.06);
}

TEST_CASE("the shape model of ellipsoids has few modes of weight") {
  std::vector<std::vector<Vec3d>> vertices;
  for (const CorrespondedCase& c : found().cases) vertices.push_back(c.vertices_mm);
  const ShapeModel model = make_shape_model(vertices, cases().poses, {});
  CHECK_NOTHROW(check_shape(model));
  REQUIRE(model.modes.size() == 11);
  double all = 0;
  for (const double variance : model.variances_mm2) all += variance;
  const double two = model.variances_mm2[0] + model.variances_mm2[1];
  CAPTURE(two / all);
  // Three semi-axes less a common scale.
  CHECK(two > 0.75 * all);
  CHECK(model.quality.cases == 12);
  CHECK(model.quality.share == Approx(1));
  CHECK(model.quality.modes_95 <= 8);
  CHECK(model.quality.generalisation_mm < 0.5);
  CHECK(model.quality.specificity_mm < 1);
}

TEST_CASE("a ring is no sphere: it is rejected with a reason") {
  Volume<uint8_t> ring = cases().masks[1];
  for (int64_t i = 0; i < ring.voxels(); ++i) {
    const Vec3i at = ring.grid().voxel(i);
    ring[i] = std::hypot(std::hypot(at.x - 14.0, at.y - 12.0) - 9, at.z - 11.0) < 2;
  }
  const std::vector distances = {cases().distances_mm[0], pose::distance_map(ring, 128)};
  const Correspondence both =
      correspond(distances, std::vector(cases().poses.begin(), cases().poses.begin() + 2),
                 cases().truth.mean_distance_mm, {});
  CHECK(both.cases[0].rejection.empty());
  CHECK_THAT(both.cases[1].rejection, Catch::Contains("flipped triangles"));
  CHECK(both.cases[1].is_retried);
  CHECK(both.cases[1].vertices_mm.empty());
}

TEST_CASE("a mean without an inside has no template, and a stop is heeded") {
  const Volume<float> outside(test::grid_of({9, 9, 9}), 3.0F);
  CHECK_THROWS_AS(correspond(cases().distances_mm, cases().poses, outside, {}), InputError);
  const std::atomic<int> stop{130};
  Context context;
  context.stop = &stop;
  CHECK_THROWS_AS(
      correspond(cases().distances_mm, cases().poses, cases().truth.mean_distance_mm, context),
      Stopped);
}

}  // namespace
}  // namespace larch::shape
