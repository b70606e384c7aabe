// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "tests/unit/levelset/requests.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;
using Catch::Contains;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("a ball comes to rest where curvature and data balance, in noise too") {
  // Radius r: (1 - a) (20 - r) = 2 a / r.
  struct Known {
    double a, radius, tolerance;
    int64_t iterations;
  };
  const auto known = GENERATE(Known{0.1, 19.989, 0.05, 400}, Known{0.3, 19.957, 0.05, 400},
                              Known{0.5, 19.900, 0.10, 600});
  const auto noise = GENERATE(0.0, 20.0);
  SegmentRequest request = ball_request(noise);
  request.config.curvature_weight = known.a;
  request.config.unchanged_labels = 0;
  const SegmentResult result = segment(request, {});
  CAPTURE(known.a, noise);
  REQUIRE(result.by_label.size() == 1);
  CHECK(result.progress.stop == Stop::kAtRest);
  CHECK(result.progress.iterations < known.iterations);
  CHECK(ball_radius(result.by_label[0].phi_mm) == Approx(known.radius).margin(known.tolerance));
}

TEST_CASE("windows that contradict themselves or the seeds, and a mask of nothing, are refused") {
  SegmentRequest request = ball_request(0);
  SECTION("windows of labels") {
    request.windows = {{1, 20, 10}};
    CHECK_THROWS_WITH(segment(request, {}), Contains("label 1"));
    request.windows = {{1, 20, 30}, {1, 40, 50}};
    CHECK_THROWS_WITH(segment(request, {}), Contains("2 windows of label 1"));
  }
  SECTION("one end on the wrong side of the seeds") {
    request.config.upper.reset();
    request.config.lower = 130;
    CHECK_THROWS_WITH(segment(request, {}), Contains("median intensity of the seeds, 100"));
  }
  SECTION("another grid") {
    request.mask = Volume<uint8_t>(levelset_grid({56, 56, 55}), 1);
    CHECK_THROWS_WITH(segment(request, {}), Contains("the mask") && Contains("56x56x55"));
    request.mask = {};
    request.speed = Volume<float>(levelset_grid({56, 56, 55}));
    CHECK_THROWS_AS(segment(request, {}), InputError);
  }
  SECTION("nothing left by the mask") {
    request.mask = Volume<uint8_t>(request.image.grid());
    CHECK_THROWS_AS(segment(request, {}), InputError);
  }
}

TEST_CASE("one end of the window is given, the other mirrored at the seeds") {
  SegmentRequest request = ball_request(0);
  request.config.upper.reset();
  const SegmentResult result = segment(request, {});
  REQUIRE(result.resolved.labels[0].window);
  CHECK(result.resolved.labels[0].window->lower == 50);
  CHECK(result.resolved.labels[0].window->upper == Approx(150));
  CHECK(result.resolved.labels[0].seed_mean == Approx(100));
  CHECK(result.resolved.labels[0].seed_fraction == 1);
  CHECK(result.warnings.empty());
}

TEST_CASE("a ball that curvature makes vanish is said") {
  SegmentRequest request = ball_request(0);
  request.config.curvature_weight = 0.6;
  request.spheres[0].radius = 2;
  CHECK(warns(segment(request, {}).warnings, "vanishes"));
  request.config.curvature_weight = 0.1;
  request.spheres[0].radius = 1.5;
  CHECK(warns(segment(request, {}).warnings, "below two"));
}

TEST_CASE("slices that are far apart are said to hold slow fronts back") {
  SegmentRequest request;
  request.config.lower = 50;
  request.config.upper = 150;
  request.spheres = {{.centre = {5, 5, 20}, .radius = 4}};
  request.image = Volume<float>(levelset_grid({11, 11, 9}, {1, 1, 5}), 100);
  CHECK(warns(segment(request, {}).warnings, "5 times as long along z"));
  request.image = Volume<float>(levelset_grid({11, 11, 9}, {1, 1, 2}), 100);
  request.spheres[0].centre.z = 8;
  CHECK_FALSE(warns(segment(request, {}).warnings, "as long along"));
}

TEST_CASE("in one slice the curvature of a ball is 1 / r") {
  SegmentRequest request;
  request.image = Volume<float>(levelset_grid({30, 30, 1}), 100);
  request.spheres = {{.centre = {15, 15, 0}, .radius = 2}};
  request.config.lower = 50;
  request.config.upper = 150;
  request.config.curvature_weight = 0.6;  // 0.6 / 2 < 0.4 < 2 * 0.6 / 2
  const SegmentResult grown = segment(request, {});
  CHECK_FALSE(warns(grown.warnings, "vanishes"));
  CHECK(grown.by_label[0].voxels == 900);
  request.spheres[0].radius = 1.4;
  CHECK(warns(segment(request, {}).warnings, "vanishes"));
}

TEST_CASE("images of few voxels are segmented") {
  const auto size = GENERATE(Vec3i{7, 1, 1}, Vec3i{1, 1, 7}, Vec3i{7, 7, 7}, Vec3i{1, 1, 1});
  SegmentRequest request;
  request.image = Volume<float>(levelset_grid(size), 100);
  if (request.image.voxels() > 1) request.image[0] = 0;
  request.spheres = {{.centre = {(size.x - 1) / 2.0, (size.y - 1) / 2.0, (size.z - 1) / 2.0},
                      .radius = 2,
                      .is_index = true}};
  request.config.lower = 50;
  request.config.upper = 150;
  request.config.curvature_weight = 0;
  const SegmentResult result = segment(request, {});
  CAPTURE(size.x, size.y, size.z);
  CHECK(result.progress.stop == Stop::kAtRest);
  CHECK(result.by_label[0].voxels >= request.image.voxels() - 1);
}

TEST_CASE("the structure stays within a distance of where it began, and below a volume") {
  SegmentRequest request = ball_request(0);
  SECTION("distance from a ball") {
    request.config.max_distance_mm = 4;  // a radius of 10
    const SegmentResult result = segment(request, {});
    for (int64_t i = 0; i < result.labels.voxels(); ++i) {
      const Vec3d at = result.labels.grid().voxel(i).cast<double>();
      if (norm(at - Vec3d{27.5, 27.5, 27.5}) > 10) REQUIRE(result.labels[i] == 0);
    }
    CHECK(ball_radius(result.by_label[0].phi_mm) == Approx(10).margin(0.5));
  }
  SECTION("distance from labels") {
    request.spheres.clear();
    request.initial_labels = LabelVolume(request.image.grid());
    request.initial_labels({27, 27, 27}) = request.initial_labels({28, 27, 27}) = 1;
    request.initial_labels({27, 28, 27}) = request.initial_labels({28, 28, 27}) = 1;
    request.initial_labels({27, 27, 28}) = request.initial_labels({28, 27, 28}) = 1;
    request.initial_labels({27, 28, 28}) = request.initial_labels({28, 28, 28}) = 1;
    request.config.max_distance_mm = 5;
    request.config.curvature_weight = 0.01;
    const SegmentResult result = segment(request, {});
    CHECK(result.labels({33, 27, 27}) == 1);
    CHECK(result.labels({34, 27, 27}) == 0);
  }
  SECTION("volume") {
    request.config.max_volume_ml = 8;
    const SegmentResult result = segment(request, {});
    CHECK(result.resolved.most_voxels == 8000);
    CHECK(result.progress.stop == Stop::kVolume);
    CHECK(result.by_label[0].voxels > 8000);
    CHECK(result.by_label[0].voxels < 11000);
  }
}

TEST_CASE("several labels grow into their own structures and never overlap") {
  SegmentRequest request = halves_request();
  SECTION("each by its own window") {
    const SegmentResult result = segment(request, {});
    REQUIRE(result.by_label.size() == 2);
    CHECK(result.by_label[0].label == 2);
    CHECK(result.by_label[1].label == 4);
    int64_t wrong = 0;
    for (int64_t i = 0; i < result.labels.voxels(); ++i) {
      const float intensity = request.image[i];
      wrong += result.labels[i] != (intensity == 100 ? 4 : intensity == 60 ? 2 : 0);
    }
    CHECK(wrong < 500);  // the rim, of 33000 voxels
  }
  SECTION("by a window that is given for one of them") {
    request.windows = {{2, 40, 80}, {7, 10, 20}};
    const SegmentResult result = segment(request, {});
    CHECK(warns(result.warnings, "window of label 7"));
    CHECK_FALSE(warns(result.warnings, "window of label 2"));
    CHECK_FALSE(result.resolved.labels[0].window->is_automatic);
    CHECK(result.resolved.labels[1].window->is_automatic);
  }
}

TEST_CASE(
    "a surface from a file of phi, from labels or from arrival times ends where a ball does") {
  SegmentRequest request = ball_request(0);
  const SegmentResult ball = segment(request, {});
  const Grid grid = request.image.grid();
  SECTION("phi") {
    request.spheres.clear();
    request.initial_phi = {{1, sphere(grid, {27.5, 27.5, 27.5}, 12)}};
    request.initial_level_mm = 3;
  }
  SECTION("labels, from outside") {
    request.spheres.clear();
    request.initial_labels = volume_of<int32_t>(grid, [](const Vec3d& at) {
      return norm(at - Vec3d{27.5, 27.5, 27.5}) < 24 ? 1 : 0;
    });
  }
  SECTION("arrival times") {
    request.arrival_mm = 10;
    request.config.max_iterations = 0;
    CHECK(ball_radius(segment(request, {}).by_label[0].phi_mm) == Approx(16).margin(0.6));
    request.config.max_iterations = 10000;
  }
  const SegmentResult result = segment(request, {});
  CHECK(ball_radius(result.by_label[0].phi_mm) ==
        Approx(ball_radius(ball.by_label[0].phi_mm)).margin(0.03));
}

TEST_CASE("files have mm: an anisotropic image of another unit") {
  const Grid grid = levelset_grid({60, 60, 24}, {0.5, 0.5, 1.25});
  SegmentRequest request;
  const Vec3d middle = middle_mm(grid);
  request.image = volume_of<float>(grid, [&](const Vec3d& at) {
    return 100 * std::clamp((11 - norm(at - middle)) / 2, 0.0, 1.0);
  });
  request.spheres = {{.centre = middle, .radius = 4}};
  request.config.lower = 50;
  request.config.upper = 150;
  const SegmentResult result = segment(request, {});
  const LabelResult& label = result.by_label[0];
  CHECK(result.resolved.unit_mm == 0.5);
  CHECK(*std::max_element(label.phi_mm.begin(), label.phi_mm.end()) == 1.5F);
  CHECK(label.volume_ml == Approx(4.0 / 3 * M_PI * 1000 / 1000).margin(0.12));

  request.config.max_volume_ml = 1;
  const SegmentResult limited = segment(request, {});
  CHECK(limited.resolved.most_voxels == 3200);
  CHECK(limited.progress.stop == Stop::kVolume);
  // The first surface is the distance in mm, held within three times 0.5 mm.
  request.config.max_iterations = 0;
  const Volume<float> first = segment(request, {}).by_label[0].phi_mm;
  for (int64_t i = 0; i < first.voxels(); ++i) {
    const Vec3d at = grid.voxel(i).cast<double>();
    const double mm = norm(Vec3d{0.5 * at.x, 0.5 * at.y, 1.25 * at.z} - middle) - 4;
    if (std::abs(mm) < 1.46) REQUIRE(static_cast<double>(first[i]) == Approx(mm).margin(1e-5));
  }
}

TEST_CASE("edges attract a surface that a window leaves beside them") {
  // A blurred step: its edge is at r = 14, the window ends at 13.
  SegmentRequest request = ball_request(0);
  const Vec3d middle = middle_mm(request.image.grid());
  request.image = volume_of<float>(request.image.grid(), [&](const Vec3d& at) {
    return 50 - 50 * std::tanh((norm(at - middle) - 14) / 2);
  });
  request.config.lower = 50 - 50 * std::tanh(-0.5);
  request.config.upper = 200 - *request.config.lower;
  request.config.edge_scale_mm = 0;
  request.config.edge_contrast = 12;
  const SegmentResult window = segment(request, {});
  request.config.advection_weight = 3;
  const SegmentResult edges = segment(request, {});
  CHECK(ball_radius(window.by_label[0].phi_mm) == Approx(13).margin(0.1));
  CHECK(ball_radius(edges.by_label[0].phi_mm) > 13.25);
  CHECK(ball_radius(edges.by_label[0].phi_mm) < 14.1);
  CHECK(edges.resolved.edge_contrast == 12);
  CHECK(edges.resolved.bounds.advection > 0);
}

TEST_CASE("a speed image replaces the window, divided by its largest value above 1") {
  SegmentRequest request = ball_request(0);
  request.speed = volume_of<float>(request.image.grid(), [](const Vec3d& at) {
    return 40 - 2 * norm(at - Vec3d{27.5, 27.5, 27.5});
  });
  const SegmentResult result = segment(request, {});
  CHECK_FALSE(result.resolved.labels[0].window);
  CHECK(result.resolved.speed_scale > 40);
  CHECK(warns(result.warnings, "speed image"));
  CHECK(ball_radius(result.by_label[0].phi_mm) == Approx(20).margin(0.5));
  for (float& value : request.speed) value /= 128;
  const SegmentResult small = segment(request, {});
  CHECK(small.resolved.speed_scale == 1);
  CHECK(small.resolved.bounds.data < 1);
  CHECK_FALSE(warns(small.warnings, "speed image"));
  // A voxel without a speed moves inwards at 1, which the time step has to bear.
  request.speed[7] = kNan;
  CHECK(segment(request, {}).resolved.bounds.data == 1);
  // The bound is that of the speeds as they are stored: 0.6 of a step is 1.
  request.speed = Volume<float>(request.image.grid(), 0.6F / kSpeedOne);
  request.config.max_iterations = 0;
  const SegmentResult least = segment(request, {});
  CHECK(least.resolved.bounds.data == 1.0 / kSpeedOne);
  CHECK(warns(least.warnings, "speed image reaches only"));
}

/// Mean and standard deviation of the distances between the middle and the places between two
/// neighbours at which a surface is 0.
std::pair<double, double> radii_of(const Volume<float>& surface, const Vec3d& middle) {
  double sum = 0, squares = 0, count = 0;
  const Grid& grid = surface.grid();
  for (int axis = 0; axis < 3; ++axis) {
    for (int64_t i = 0; i < surface.voxels(); ++i) {
      Vec3i next = grid.voxel(i);
      if (++next[axis] == grid.size[axis]) continue;
      const double a = surface[i], b = surface(next);
      if ((a < 0) == (b < 0)) continue;
      Vec3d at = grid.voxel(i).cast<double>();
      at[axis] += a / (a - b);
      const Vec3d h = grid.spacing_mm;
      const double r = norm(Vec3d{at.x * h.x, at.y * h.y, at.z * h.z} - middle);
      sum += r, squares += r * r, ++count;
    }
  }
  return {sum / count, std::sqrt(squares / count - sum * sum / count / count)};
}

TEST_CASE("at rest the surface lies between voxels, by the speeds on both sides") {
  const Vec3d spacing = GENERATE(Vec3d{1, 1, 1}, Vec3d{0.8, 0.8, 1.6});
  const Grid grid = levelset_grid({50, 50, spacing.z > 1 ? 26 : 42}, spacing);
  const Vec3d middle = middle_mm(grid) + Vec3d{0.13, 0.27, 0.41};
  SegmentRequest request;
  request.image = volume_of<float>(grid, [&](const Vec3d& at) {
    return 100 * std::clamp((17 - norm(at - middle)) / 4, 0.0, 1.0);
  });
  request.spheres = {{.centre = middle, .radius = 8}};
  request.config.lower = 50;
  request.config.upper = 150;
  CHECK(segment(request, {}).by_label[0].surface.empty());
  request.wants_surface = true;
  Context two;
  two.threads = 2;
  const SegmentResult result = segment(request, two);
  const LabelResult& label = result.by_label[0];
  CHECK(same_bits(segment(request, {}).by_label[0].surface, label.surface));
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    REQUIRE((label.surface[i] < 0) == (label.phi_mm[i] < 0));
  }
  // (1 - a) D = 2 a / r, in units of the smallest spacing, with D = (15 - r) / 2.
  const auto [mean, spread] = radii_of(label.surface, middle);
  CHECK(mean == Approx(15 - 2 * 0.03 / 0.97 * 2 * spacing.x / 15).margin(0.012));
  CHECK(spread < 0.01);
  CHECK(radii_of(label.phi_mm, middle).second > 0.05);  // what phi itself says

  // A mask holds the surface half way to the voxels that it takes.
  request.mask = volume_of<uint8_t>(grid, [&](const Vec3d& at) { return at.x < middle.x + 5; });
  const Volume<float> held = segment(request, {}).by_label[0].surface;
  const Vec3i from = {static_cast<int32_t>(middle.x / spacing.x), 24, grid.size.z / 2};
  CHECK(std::fmod(crossing_mm(held, from, 0) / spacing.x, 1) == Approx(0.5));
  // What has not moved lies where its phi does.
  request.config.max_iterations = 0;
  request.mask = {};
  CHECK(radii_of(segment(request, {}).by_label[0].surface, middle).first == Approx(8).margin(0.02));
}

}  // namespace
