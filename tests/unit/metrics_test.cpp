// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/evaluate.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/voxelise.h"
#include "larch/metrics/agreement.h"
#include "tests/unit/box_mask.h"

namespace {

using namespace larch;
using namespace larch::metrics;
using larch::test::grid_of;

Volume<uint8_t> box(const Grid& grid, Vec3i low, Vec3i high) {
  Volume<uint8_t> mask(grid, 0);
  for (int z = low.z; z < high.z; ++z)
    for (int y = low.y; y < high.y; ++y)
      for (int x = low.x; x < high.x; ++x) mask({x, y, z}) = 1;
  return mask;
}

SurfaceDistance surface_distance(const Volume<uint8_t>& a, const Volume<uint8_t>& b,
                                 const Context& context) {
  return metrics::surface_distance(mesh::marching_cubes(a, context),
                                   mesh::marching_cubes(b, context), context);
}

/// 1 mm, with the origin in the middle.
Grid grid_about_origin() {
  Grid grid = grid_of({49, 49, 49});
  grid.origin_mm = {-24, -24, -24};
  return grid;
}

/// A fine surface of a sphere about the origin.
Mesh sphere(double radius_mm) {
  const Grid grid = grid_about_origin();
  Volume<float> field(grid);
  for (int64_t i = 0; i < field.voxels(); ++i) {
    field[i] =
        static_cast<float>(radius_mm - norm(world_from_index(grid, grid.voxel(i).cast<double>())));
  }
  return mesh::marching_cubes(field, 0, Context{});
}

/// Two triangles at height z: the square [0, side]^2.
Mesh square(double side, double z) {
  return {{{0, 0, z}, {side, 0, z}, {0, side, z}, {side, side, z}}, {{0, 1, 2}, {1, 3, 2}}};
}

}  // namespace

TEST_CASE("overlap of two boxes, by hand") {
  const Grid grid = grid_of({10, 10, 10}, {1, 2, 0.5});
  const auto a = box(grid, {1, 1, 1}, {5, 5, 5}), b = box(grid, {3, 1, 1}, {7, 5, 4});
  // |A| = 64, |B| = 48, |A and B| = 2 * 4 * 3 = 24.
  const Overlap o = overlap(a, b);
  CHECK(o.prediction_voxels == 64);
  CHECK(o.reference_voxels == 48);
  CHECK(o.common_voxels == 24);
  CHECK(o.dice == Approx(48.0 / 112));
  CHECK(o.jaccard == Approx(24.0 / 88));
  CHECK(o.total_correct_fraction == (1000 - 40 - 24) / 1000.0);
  CHECK(o.volume_difference_mm3 == Approx(16));
  CHECK(o.relative_volume_difference == Approx(1.0 / 3));
  CHECK(o.sensitivity == 0.5);
  CHECK(o.precision == 24.0 / 64);
  CHECK(o.reference_mm3 == Approx(48));
}

TEST_CASE("volumes of a sheared grid are those of its voxels") {
  // As a gantry that is tilted by 30 degrees gives it; mirrored, with which nothing shrinks.
  Grid grid = grid_of({10, 10, 10}, {1, 2, 3});
  grid.direction = {{{-1, 0, 0}, {0, 1, 0.5}, {0, 0, std::sqrt(0.75)}}};
  const auto a = box(grid, {1, 1, 1}, {5, 5, 5}), b = box(grid, {3, 1, 1}, {7, 5, 4});
  const double voxel_mm3 = 6 * std::sqrt(0.75);
  const Overlap o = overlap(a, b);
  CHECK(o.prediction_mm3 == Approx(64 * voxel_mm3));
  CHECK(o.reference_mm3 == Approx(48 * voxel_mm3));
  CHECK(o.volume_difference_mm3 == Approx(16 * voxel_mm3));
  CHECK(o.dice == Approx(48.0 / 112));
}

TEST_CASE("overlap with empty masks") {
  const Grid grid = grid_of({4, 4, 4});
  const auto some = box(grid, {0, 0, 0}, {2, 2, 2});
  const Volume<uint8_t> none(grid, 0);
  CHECK(overlap(none, none).dice == 1);
  CHECK(overlap(none, none).jaccard == 1);
  CHECK(overlap(none, none).total_correct_fraction == 1);
  CHECK(overlap(some, none).total_correct_fraction == 56.0 / 64);
  CHECK(overlap(none, none).relative_volume_difference == 0);
  CHECK(overlap(some, none).dice == 0);
  CHECK(std::isnan(overlap(some, none).relative_volume_difference));
  CHECK(overlap(none, some).dice == 0);
  CHECK(overlap(none, some).sensitivity == 0);
  CHECK(std::isnan(overlap(none, some).precision));
  CHECK(overlap(none, some).relative_volume_difference == -1);
}

TEST_CASE("surface distance of identical and of empty masks") {
  const Grid grid = grid_of({9, 9, 9});
  const auto a = box(grid, {2, 2, 2}, {6, 7, 5});
  const Volume<uint8_t> none(grid, 0);
  const SurfaceDistance same = surface_distance(a, a, Context{});
  CHECK(same.mean_mm == 0);
  CHECK(same.max_mm == 0);
  CHECK(surface_distance(none, none, Context{}).mean_mm == 0);
  const SurfaceDistance missing = surface_distance(a, none, Context{});
  CHECK(std::isnan(missing.mean_mm));
  CHECK(std::isnan(missing.p95_mm));
  CHECK(std::isnan(surface_distance(none, a, Context{}).max_mm));
}

TEST_CASE("surface distance of parallel squares is their distance, weighted by area") {
  const SurfaceDistance d = surface_distance(square(4, 0), square(4, 3), Context{});
  CHECK(d.mean_mm == Approx(3));
  CHECK(d.median_mm == Approx(3));
  CHECK(d.max_mm == Approx(3));
  // A second pair far away and nearer to each other: areas 16 and 2 * 0.5, distances 3 and 1. The
  // mean counts areas, not triangles.
  Mesh a = square(4, 0), b = square(4, 3);
  for (Mesh* m : {&a, &b}) {
    const double z = m == &a ? 0 : 1;
    for (const Vec3d v : {Vec3d{100, 0, z}, Vec3d{101, 0, z}, Vec3d{100, 1, z}}) {
      m->vertices_mm.push_back(v);
    }
    m->triangles.push_back({4, 5, 6});
  }
  const SurfaceDistance two = surface_distance(a, b, Context{});
  CHECK(two.mean_mm == Approx((16 * 3 + 0.5 * 1) / 16.5));
  CHECK(two.median_mm == Approx(3));
}

TEST_CASE("both directions are pooled") {
  // A large square against a small one above its middle: from the small to the large the distance
  // is 1 everywhere, from the large to the small it is more.
  Mesh small = square(2, 1);
  for (Vec3d& v : small.vertices_mm) v += Vec3d{9, 9, 0};
  const SurfaceDistance d = surface_distance(square(20, 0), small, Context{});
  const SurfaceDistance back = surface_distance(small, square(20, 0), Context{});
  CHECK(d.mean_mm == Approx(back.mean_mm));
  // The large one's centroids are (20/3, 20/3) and (40/3, 40/3); nearest points (9, 9) and (11,
  // 11).
  const double far_mm = std::sqrt(2 * std::pow(9 - 20 / 3.0, 2) + 1);
  CHECK(d.max_mm == Approx(far_mm));
  CHECK(d.mean_mm == Approx((400 * far_mm + 4 * 1) / 404));
  CHECK(d.median_mm == Approx(far_mm));
}

TEST_CASE(
    "hd95 is the greater of both directions, and surface Dice the area within the tolerance") {
  const auto within = [](const Mesh& a, const Mesh& b, double tolerance_mm) {
    return metrics::surface_distance(a, b, Context{}, tolerance_mm).surface_dice;
  };
  // Of the first surface 30 of 430 mm^2 are 49 mm off: more than 5 % of it, less of both together.
  Mesh far = square(std::sqrt(30), 50), a = square(20, 0);
  for (const Vec3i& t : far.triangles) a.triangles.push_back(t + Vec3i{4, 4, 4});
  a.vertices_mm.insert(a.vertices_mm.end(), far.vertices_mm.begin(), far.vertices_mm.end());
  const Mesh b = square(20, 1);
  using Meshes = std::pair<const Mesh*, const Mesh*>;
  for (const auto& [p, q] : {Meshes(&a, &b), Meshes(&b, &a)}) {
    const SurfaceDistance d = metrics::surface_distance(*p, *q, Context{});
    CHECK(d.hd95_mm == Approx(49));
    CHECK(d.p95_mm == Approx(1));
    CHECK(d.mean_mm == Approx((800 * 1 + 30 * 49) / 830.0));
    CHECK(within(*p, *q, 1) == Approx(800 / 830.0));
    CHECK(within(*p, *q, 0.99) == 0);
    CHECK(within(*p, *q, 49) == 1);
  }
  CHECK(within({}, {}, 0) == 1);
  CHECK(within(a, {}, 1) == 0);
  CHECK(std::isnan(metrics::surface_distance({}, a, Context{}).hd95_mm));
}

TEST_CASE("surface figures of boxes, by hand") {
  // Plates of one voxel, 4.5 mm apart: one face of each is 4.5 mm from the other plate, one 3 mm.
  const Grid grid = grid_of({30, 30, 12}, {1, 1, 1.5});
  const auto plate = box(grid, {2, 2, 3}, {28, 28, 4}), other = box(grid, {2, 2, 6}, {28, 28, 7});
  const auto scored = [](const Volume<uint8_t>& a, const Volume<uint8_t>& b, double tolerance_mm) {
    return metrics::surface_distance(mesh::marching_cubes(a, Context{}),
                                     mesh::marching_cubes(b, Context{}), Context{}, tolerance_mm);
  };
  const SurfaceDistance apart = scored(plate, other, 3);
  CHECK(apart.hd95_mm == Approx(4.5));
  // The flat part of a face is 25 x 25 mm; round it the plates slope to the middle of their rim.
  const double rim = 4 * 25 * 2 * std::hypot(0.5, 0.75);
  CHECK(apart.surface_dice == Approx(625 / (2 * 625 + rim)).margin(0.002));
  CHECK(apart.mean_mm == Approx((3 + 4.5) / 2).margin(0.002));
  CHECK(scored(plate, other, 4.5).surface_dice == 1);
  CHECK(scored(plate, other, 2.9).surface_dice == 0);
  // A box in one that is 2 voxels = 2, 2, 3 mm larger on all sides. From the flat parts of its
  // faces across z it is 3 mm, from the others 2 mm. The figures are those of a search through all
  // pairs of triangles in numpy, on the surfaces of scikit-image.
  const auto inner = box(grid, {6, 6, 4}, {24, 24, 8}), outer = box(grid, {4, 4, 2}, {26, 26, 10});
  const SurfaceDistance nested = scored(inner, outer, 2);
  CHECK(nested.hd95_mm == Approx(3.501).margin(0.01));
  CHECK(nested.p95_mm == Approx(3.432).margin(0.01));
  CHECK(nested.mean_mm == Approx(2.715).margin(0.005));
  CHECK(nested.surface_dice == Approx(0.2061).margin(0.002));
  CHECK(scored(inner, outer, 3).surface_dice == Approx(0.7965).margin(0.005));
}

TEST_CASE("shifted boxes, by hand") {
  // Boxes of 30 x 24 x 10 mm, shifted along x by 2 voxels of 1.5 mm = 3 mm.
  const Grid grid = grid_of({40, 30, 30}, {1.5, 2, 1});
  const auto a = box(grid, {5, 5, 5}, {25, 17, 15}), b = box(grid, {7, 5, 5}, {27, 17, 15});
  const SurfaceDistance d = surface_distance(a, b, Context{});
  CHECK(d.max_mm <= 3 + 1e-12);
  CHECK(d.max_mm > 2.9);
  CHECK(d.median_mm == Approx(0).margin(1e-9));
  CHECK(d.p95_mm == Approx(3).margin(0.1));
  // Per box: the outer end face (24 x 10 mm) is 3 mm away; the inner one lies in the other box, at
  // min(3, distance to its own rim), integral of (24 - 2r)(10 - 2r) over r in 0..3 = 450; 3 mm of
  // the sides (68 mm round) stick out, at 1.5 mm on average; 2 x 240 + 68 x 30 mm^2 in all.
  CHECK(d.mean_mm == Approx((240 * 3 + 450 + 68 * 3 * 1.5) / (480 + 68 * 30)).epsilon(0.02));
}

TEST_CASE("distances are invariant under turning and mirroring the grid") {
  Grid grid = grid_of({30, 28, 26}, {1, 1.3, 2});
  const auto shapes = [&](const Grid& g) {
    const auto a = box(g, {5, 6, 7}, {20, 18, 17}), b = box(g, {7, 5, 8}, {22, 19, 19});
    return surface_distance(a, b, Context{});
  };
  const SurfaceDistance plain = shapes(grid);
  const double c = std::cos(0.3), s = std::sin(0.3);
  grid.direction = {{{c, -s, 0}, {s, c, 0}, {0, 0, -1}}};
  grid.origin_mm = {100, -50, 7};
  const SurfaceDistance turned = shapes(grid);
  CHECK(turned.mean_mm == Approx(plain.mean_mm));
  CHECK(turned.p95_mm == Approx(plain.p95_mm));
  CHECK(turned.max_mm == Approx(plain.max_mm));
}

Mesh moved(Mesh mesh, const Vec3d& by_mm) {
  for (Vec3d& v : mesh.vertices_mm) v += by_mm;
  return mesh;
}

TEST_CASE("mesh distance of spheres that are apart by a shift") {
  // |d cos| for cos uniform in -1..1, as long as d is small against the radius.
  const MeshDistance d = mesh_distance(sphere(20), moved(sphere(20), {0, 4, 0}), Context{});
  CHECK(d.mssd_mm == Approx(2).margin(0.01));
  CHECK(d.rms_mm == Approx(4 / std::sqrt(3)).margin(0.01));
  CHECK(d.hd95_mm == Approx(3.8).margin(0.05));
  CHECK(d.hd_mm == Approx(4).margin(0.01));
}

TEST_CASE("Dice of voxelised spheres against the lens that they share") {
  const auto ball = mesh::voxelise(sphere(20), grid_about_origin(), Context{});
  const LabelVolume labels = mapped<int32_t>(ball, [](uint8_t inside) { return 7 * inside; });
  const auto dice = [&](const Mesh& mesh, const std::vector<int32_t>& wanted) {
    return score_mesh(mesh, labels, wanted, Context{}).scores.back().value;
  };
  // A ball of 1 mm voxels is off its volume by up to a third of a percent.
  CHECK(dice(moved(sphere(20), {4, 0, 0}), {7}) == Approx(0.8505).margin(0.004));
  CHECK(dice(sphere(22), {}) == Approx(0.858).margin(0.004));
}

TEST_CASE("mesh distance takes all of the area of large triangles, and their corners") {
  // Of 2 and 20 mm, 1 mm apart: points of the large square have the distance of an axis-aligned
  // square, those of the small one 1 mm. A vertex of no triangle does not count.
  const Mesh large = square(20, 0);
  Mesh small = moved(square(2, 1), {9, 9, 0});
  small.vertices_mm.push_back({500, 0, 0});
  std::vector<double> far;
  double sum = 0, squares = 0;
  for (int y = 0; y < 400; ++y)
    for (int x = 0; x < 400; ++x) {
      const double beside_x = std::max(0.0, std::abs((x + 0.5) / 20 - 10) - 1),
                   beside_y = std::max(0.0, std::abs((y + 0.5) / 20 - 10) - 1);
      far.push_back(std::sqrt(beside_x * beside_x + beside_y * beside_y + 1));
      sum += far.back();
      squares += far.back() * far.back();
    }
  std::sort(far.begin(), far.end());
  const auto n = static_cast<double>(far.size());
  const MeshDistance d = mesh_distance(large, small, Context{});
  CHECK(d.mssd_mm == Approx((sum / n + 1) / 2).margin(0.01));
  CHECK(d.rms_mm == Approx(std::sqrt((squares / n + 1) / 2)).margin(0.01));
  CHECK(d.hd95_mm == Approx(far[far.size() * 95 / 100]).margin(0.02));
  CHECK(d.hd_mm == Approx(std::sqrt(9 * 9 + 9 * 9 + 1)));
}

TEST_CASE("mesh distance does not depend on the order of the meshes or the number of threads") {
  Context three;
  three.threads = 3;
  const Mesh a = square(30, 1), b = moved(sphere(14.2), {3, 2, 1});
  const MeshDistance d = mesh_distance(a, b, Context{}), e = mesh_distance(b, a, three);
  CHECK(d.mssd_mm == e.mssd_mm);
  CHECK(d.rms_mm == e.rms_mm);
  CHECK(d.hd95_mm == e.hd95_mm);
  CHECK(d.hd_mm == e.hd_mm);
}

TEST_CASE("mesh distance of surfaces that are the same, empty, flat or out of proportion") {
  const Mesh a = square(20, 0);
  CHECK(mesh_distance(a, a, Context{}).hd_mm == 0);
  CHECK(mesh_distance({}, {}, Context{}).mssd_mm == 0);
  CHECK(std::isnan(mesh_distance(a, {}, Context{}).mssd_mm));
  CHECK(std::isnan(mesh_distance({}, a, Context{}).hd_mm));
  const Mesh line{{{0, 0, 2}, {20, 0, 2}}, {{0, 1, 1}}};
  CHECK(std::isnan(mesh_distance(line, a, Context{}).mssd_mm));
  CHECK(mesh_distance(line, a, Context{}).hd_mm == Approx(std::hypot(20, 2)));
}

TEST_CASE("mesh distance of surfaces of metres is as right and takes no more pieces") {
  // Boxes of 2 m and of a kilometre, 1 mm apart along x: of the surface of each, one face lies 1 mm
  // outside of the other box and one as far inside; what else sticks out is a strip of 1 mm at 0.5
  // mm on average.
  const auto cube = [](double edge_mm, double x_mm) {
    Mesh mesh;
    for (int i = 0; i < 8; ++i) {
      mesh.vertices_mm.push_back(
          {edge_mm * (i & 1) + x_mm, edge_mm * (i >> 1 & 1), edge_mm * (i >> 2)});
    }
    for (const auto& [a, b, c, d] : {std::array{0, 2, 6, 4},
                                     {1, 5, 7, 3},
                                     {0, 4, 5, 1},
                                     {2, 3, 7, 6},
                                     {0, 1, 3, 2},
                                     {4, 6, 7, 5}}) {
      mesh.triangles.push_back({a, b, c});
      mesh.triangles.push_back({a, c, d});
    }
    return mesh;
  };
  Context two;
  two.threads = 2;
  for (const double edge_mm : {2000.0, 1e6}) {
    const MeshDistance d = mesh_distance(cube(edge_mm, 0), cube(edge_mm, 1), two);
    const double strip = 4 * 0.5 / edge_mm;
    CHECK(d.mssd_mm == Approx((2 + strip) / 6).margin(0.002));
    CHECK(d.rms_mm == Approx(std::sqrt(2 / 6.0)).margin(0.002));
    CHECK(d.hd95_mm == Approx(1).margin(0.002));
    CHECK(d.hd_mm == Approx(1));
  }
  // Copies of a triangle, which compressed files hold by the million, are searched once.
  Mesh copies{{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {}};
  copies.triangles.assign(300000, {0, 1, 2});
  CHECK(mesh_distance(copies, moved(copies, {0, 0, 3}), two).mssd_mm == Approx(3));
}

TEST_CASE("score_labels scores labels and their union") {
  const Grid grid = grid_of({10, 10, 10});
  LabelVolume prediction(grid, 0), reference(grid, 0);
  for (int z = 2; z < 8; ++z)
    for (int y = 2; y < 8; ++y)
      for (int x = 2; x < 8; ++x) {
        prediction({x, y, z}) = x < 5 ? 1 : 2;
        reference({x, y, z}) = x < 4 ? 1 : 2;
      }
  const auto all = score_labels(prediction, reference, {}, Context{});
  REQUIRE(all.size() == 3);
  CHECK(all[0].structure == "1");
  CHECK(all[0].scores[0].value == Approx(2 * 72.0 / (108 + 72)));
  CHECK(all[2].structure == "union");
  CHECK(all[2].scores[0].value == 1);
  CHECK(std::string(all[2].scores[9].name) == "surface_max_mm");
  CHECK(std::string(all[2].scores.back().name) == "total_correct_fraction");
  CHECK(all[0].scores.back().value == 1 - 36 / 1000.0);
  LabelScoreConfig config;
  config.merge = true;
  config.surfaces = false;
  config.labels = {1};
  config.prediction_labels = {1, 2};
  const auto merged = score_labels(prediction, reference, config, Context{});
  REQUIRE(merged.size() == 1);
  CHECK(merged[0].scores.size() == 9);
  CHECK(merged[0].scores[0].value == Approx(2 * 72.0 / (216 + 72)));
  config.merge = false;
  CHECK_THROWS_AS(score_labels(prediction, reference, config, Context{}), UsageError);
}

TEST_CASE("labels are counted in one pass, and each scores to the bit as its whole masks do") {
  Grid grid = grid_of({31, 29, 23}, {0.7, 0.9, 1.3});
  grid.origin_mm = {-17.3, 4.1, 90.7};
  grid.direction = {{{0.8, -0.6, 0.1}, {0.6, 0.8, 0}, {0, 0, -0.99498743710662}}};
  LabelVolume prediction(grid, 0), reference(grid, 0);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const auto label_at = [](int x, int y, int z) {
      return x % 8 < 6 && y % 9 < 7 && z % 8 < 5 ? 1 + x / 8 + 4 * (y / 9 + 4 * (z / 8)) : 0;
    };
    const Vec3i at = grid.voxel(i);
    reference[i] = label_at(at.x, at.y, at.z);
    prediction[i] = label_at(at.x + 1, at.y, at.z + 2);
  }
  const LabelCounts counts = count_labels(prediction, reference);
  CHECK(counts.voxels == grid.voxels());
  const auto scored = score_labels(prediction, reference, {}, Context{});
  REQUIRE(scored.size() == counts.labels.size());  // 0 is counted, the union is scored
  for (size_t i = 0; i + 1 < scored.size(); ++i) {
    const LabelCount& one = counts.labels[i + 1];
    CHECK(scored[i].structure == std::to_string(one.label));
    const auto a = mask_of(prediction, {&one.label, 1}), b = mask_of(reference, {&one.label, 1});
    CHECK(scored[i].scores[0].value == overlap(a, b).dice);
    CHECK(scored[i].scores[3].value == overlap(a, b).reference_mm3);
    const double mean_mm = surface_distance(a, b, Context{}).mean_mm;
    CHECK((scored[i].scores[6].value == mean_mm || std::isnan(mean_mm)));
  }
}

TEST_CASE("the area under the curve counts the pairs in the right order, equal ones half") {
  const std::vector<double> there{0.9, 0.4}, absent{0.4, 0.1, 0.5}, none;
  CHECK(area_under_curve(there, absent) == Approx((3 + 1.5) / 6));
  CHECK(std::isnan(area_under_curve(there, none)));
}

TEST_CASE("summaries leave out what does not exist") {
  const double nan = std::nan("");
  const Summary s = summarise(std::vector<double>{4, nan, 1, 10});
  CHECK(s.count == 3);
  CHECK(s.mean == Approx(5));
  CHECK(s.sd == Approx(std::sqrt(21.0)));
  CHECK(s.median == 4);
  CHECK(summarise(std::vector<double>{1, 2}).median == 1.5);
  CHECK(std::isnan(summarise(std::vector<double>{3}).sd));
  CHECK(std::isnan(summarise(std::vector<double>{nan}).mean));
  CHECK(summarise(std::vector<double>{}).count == 0);

  const std::vector<CaseScores> cases{{"a", {{"1", {{"dice", 0.5}, {"assd_mm", nan}}}}},
                                      {"b", {{"1", {{"dice", 0.75}, {"assd_mm", 2}}}}}};
  CHECK(to_tsv(cases) == "id\tstructure\tdice\tassd_mm\na\t1\t0.5\tn/a\nb\t1\t0.75\t2\n");
  const auto rows = summarise(cases);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].summary.mean == Approx(0.625));
  CHECK(rows[1].summary.count == 1);
  CHECK(rows[0].worst == 0.5);
  CHECK(rows[0].worst_case == "a");
  CHECK(rows[1].worst_case == "b");
}

TEST_CASE("the worst case is the lowest share or the farthest from 0; pairs have both runs") {
  const auto scored = [](const std::string& id, double dice, double difference) {
    return CaseScores{id, {{"1", {{"dice", dice}, {"volume_difference_mm3", difference}}}}};
  };
  const std::vector<CaseScores> cases{scored("a", 0.9, 5), scored("b", 0.8, -7),
                                      scored("c", 0.8, std::nan("")), scored("d", 0.7, 1)};
  const auto rows = summarise(cases);
  CHECK(rows[0].worst_case == "d");
  CHECK(rows[1].worst == -7);
  CHECK(rows[1].worst_case == "b");
  const ScoreTable baseline{{"a", {{"1", {{"dice", 0.5}}}, {"2", {{"dice", 1}}}}},
                            {"b", {{"1", {{"dice", 0.6}, {"volume_difference_mm3", 3}}}}},
                            {"c", {{"2", {{"dice", 0}}}}},
                            {"e", {{"1", {{"dice", 0}}}}}};
  const auto pairs = paired_differences(cases, baseline);
  REQUIRE(pairs.size() == 2);
  const auto differences = summarise(pairs);
  REQUIRE(differences.size() == 2);
  CHECK(differences[0].summary.count == 2);
  CHECK(differences[0].summary.mean == Approx(0.3));
  CHECK(differences[0].summary.ci_low == Approx(0.2));  // a quarter of the resamples is b, b
  CHECK(differences[0].summary.ci_high == Approx(0.4));
  CHECK(differences[1].summary.count == 1);
  CHECK(differences[1].summary.mean == -10);
}
