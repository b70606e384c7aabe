// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/cuda_context.h"
#include "tests/unit/levelset/requests.h"
#include "tests/unit/levelset/speeds.h"

namespace larch::levelset {
namespace {

using namespace larch::test;

Context cpu_context() {
  Context context;
  context.threads = 4;
  return context;
}

TEST_CASE("sums of regions are the same on both devices", "[levelset::region_sums]") {
  std::vector<Vec3i> sizes = {{37, 29, 21}, {45, 33, 1}, {7, 5, 3}, {1, 1, 9}, {170, 9, 10}};
  if (!small_tests()) {
    sizes.push_back({256, 256, 70});
    sizes.push_back({9, 300, 5});
  }
  for (const Vec3i& size : sizes) {
    for (const double part : {0.0, 0.0004, 0.02}) {
      const RegionImages images = region_images(size, scattered(size, part), size.x % 2 != 0);
      for (const Vec3i& reach : {Vec3i{}, Vec3i{1, 1, 1}, Vec3i{33, 3, 2}, Vec3i{200, 200, 200}}) {
        CAPTURE(size.x, size.y, size.z, part, reach.x);
        const RegionSums a = region_sums_of(images, reach, cpu_context());
        const RegionSums b = region_sums_of(images, reach, cuda_context());
        for (int side = 0; side < 2; ++side) {
          CHECK(a.steps[side] == b.steps[side]);
          CHECK(a.voxels[side] == b.voxels[side]);
        }
      }
    }
  }
}

TEST_CASE("data speeds are the same on both devices", "[levelset::make_data_speed]") {
  std::vector<Vec3i> sizes = {{37, 29, 21}, {45, 33, 1}, {7, 5, 3}};
  if (!small_tests()) sizes.push_back({128, 130, 70});
  for (const Vec3i& size : sizes) {
    for (const SpeedParts& parts : all_speed_parts(size)) {
      CAPTURE(size.x, parts.rule.is_given, parts.rule.region_weight, parts.pinned.empty(),
              parts.edge_stop.empty());
      CHECK(speeds_by_brick(parts, cpu_context()) == speeds_by_brick(parts, cuda_context()));
    }
  }
}

/// A bright structure in noise, in which a ball grows by a window and means of regions, whose means
/// are taken anew every few steps.
SegmentRequest noisy_request(const Vec3i& size) {
  SegmentRequest request;
  const Grid grid = levelset_grid(size);
  const Vec3d middle = middle_mm(grid);
  const double radius = small_tests() ? 6 : 14;
  request.image = volume_of<float>(grid, [&](const Vec3d& at) {
    return norm(at - middle) < radius ? 100 : norm(at - middle) < radius + 2 ? 55 : 30;
  });
  for (int64_t i = 0; i < request.image.voxels(); ++i) {
    request.image[i] += static_cast<float>(20 * hash_unit(3, 0, static_cast<uint64_t>(i)) - 10);
  }
  request.spheres = {{.centre = middle, .radius = 2.4}};
  request.config.lower = 60;
  request.config.upper = 140;
  request.config.region_weight = 0.4;
  request.config.region_every = small_tests() ? 3 : 7;
  request.config.max_iterations = small_tests() ? 10 : 150;
  return request;
}
SegmentRequest noisy_request() {
  return noisy_request(small_tests() ? Vec3i{19, 18, 17} : Vec3i{45, 42, 37});
}

void check_same(const SegmentResult& a, const SegmentResult& b) {
  CHECK(same_labels(a, b));
  REQUIRE(same_phi(a, b));
  CHECK(a.warnings == b.warnings);
  CHECK(a.resolved.voxels_not_a_number == b.resolved.voxels_not_a_number);
  for (size_t f = 0; f < a.by_label.size(); ++f) {
    CHECK(a.resolved.labels[f].seed_voxels == b.resolved.labels[f].seed_voxels);
    CHECK(a.resolved.labels[f].seed_fraction == b.resolved.labels[f].seed_fraction);
    CHECK(static_cast<int>(a.by_label[f].progress.stop) ==
          static_cast<int>(b.by_label[f].progress.stop));
    const auto &h = a.history[f], &k = b.history[f];
    REQUIRE(h.size() == k.size());
    for (size_t s = 0; s < h.size(); ++s) {
      REQUIRE(h[s].changed == k[s].changed);
      REQUIRE(h[s].squares == k[s].squares);
    }
  }
}

/// Means of the fields of a run on its way, which show that they were taken anew.
std::vector<double> means_of_run(const SegmentRequest& request, int64_t steps,
                                 const Context& context) {
  SegmentRun run = start_segmentation(request, context);
  std::vector<double> means;
  for (int part = 0; part < 2; ++part) {
    for (const SegmentField& field : run.fields) {
      means.push_back(field.means.inside);
      means.push_back(field.means.outside);
    }
    if (part == 0) advance(run, steps, context);
  }
  return means;
}

void check_segment(const SegmentRequest& request) {
  const SegmentResult a = segment(request, cpu_context());
  REQUIRE(a.by_label[0].voxels > 0);
  check_same(a, segment(request, cuda_context()));
  const int64_t steps = request.config.region_every + 1;
  const std::vector<double> means = means_of_run(request, steps, cpu_context());
  CHECK(means == means_of_run(request, steps, cuda_context()));
  if (request.config.region_weight > 0) {
    const size_t half = means.size() / 2;
    CHECK_FALSE(std::equal(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(half),
                           means.begin() + static_cast<std::ptrdiff_t>(half)));
  }
}

void add_mask(SegmentRequest& request) {
  request.mask = Volume<uint8_t>(request.image.grid(), 1);
  for (int64_t i = 0; i < request.mask.voxels(); ++i) request.mask[i] = i % 23 == 5 ? 0 : 1;
}
void add_given(SegmentRequest& request) {
  const Vec3d middle = middle_mm(request.image.grid());
  // Held below, since it is divided by its largest number, and an image of any size shall grow.
  request.speed = volume_of<float>(request.image.grid(), [&](const Vec3d& at) {
    return std::max(3 - 0.4 * norm(at - middle), -3.0);
  });
  request.speed[5] = std::numeric_limits<float>::quiet_NaN();
}

TEST_CASE("segmentations with means of regions are the same on both devices") {
  SegmentRequest request = noisy_request();
  SECTION("near the surface") {}
  SECTION("of all voxels, alone") {
    request.config.region_weight = 1;
    request.config.region_band_mm = 0;
  }
  SECTION("in a wide band, with voxels of other lengths") {
    Grid grid = request.image.grid();
    grid.spacing_mm = {0.5, 1, 1.5};
    request.image.set_geometry(grid);
    request.spheres[0].is_index = true;
    request.spheres[0].centre = (request.image.size() - Vec3i{1, 1, 1}).cast<double>() * 0.5;
    request.config.region_band_mm = 3.2;
  }
  SECTION("in a mask") {
    add_mask(request);
    request.config.max_distance_mm = 5;
  }
  SECTION("beside a speed image") {
    add_given(request);
    add_mask(request);
  }
  SECTION("with edges") {
    request.config.edge_stop = true;
    request.config.advection_weight = 0.3;
  }
  SECTION("from arrival times") {
    request.arrival_mm = 2;
  }
  SECTION("with intensities that are no number") {
    for (int64_t i = 3; i < request.image.voxels(); i += 41) {
      request.image[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
    }
  }
  SECTION("of an image of one slice") {
    request = noisy_request({small_tests() ? 21 : 61, small_tests() ? 19 : 50, 1});
  }
  SECTION("with lists of voxels") {
    request.config.tracker = Tracker::kBuffers;
  }
  SECTION("of two labels") {
    request.spheres.push_back(request.spheres[0]);
    request.spheres[0].centre.x -= 4, request.spheres[1].centre.x += 4;
    request.spheres[1].label = 2;
    request.windows = {{2, 50, 130}};
  }
  check_segment(request);
}

TEST_CASE("segmentations without means have the same speeds on both devices") {
  SegmentRequest request = noisy_request();
  request.config.region_weight = 0;
  SECTION("of a window") {}
  SECTION("in a mask, with edges and two labels") {
    add_mask(request);
    request.config.edge_stop = true;
    request.spheres.push_back({.centre = {3, 3, 3}, .radius = 2.4, .label = 2});
  }
  SECTION("of a speed image") {
    add_given(request);
    add_mask(request);
  }
  SECTION("from arrival times") {
    request.arrival_mm = 2;
  }
  check_segment(request);
}

TEST_CASE("runs with means of regions that are moved together have the bits that each has alone") {
  SegmentRequest first = noisy_request();
  SegmentRequest second = noisy_request({small_tests() ? 20 : 50, small_tests() ? 13 : 33, 12});
  add_mask(second);
  const Context context = cuda_context();
  std::vector<SegmentRun> runs;
  for (const SegmentRequest* request : {&first, &second}) {
    runs.push_back(start_segmentation(*request, context));
  }
  SegmentRun* const both[] = {&runs[0], &runs[1]};
  advance(both, 4, context);
  while (!is_done(runs[0]) || !is_done(runs[1])) advance(both, 1000, context);
  for (SegmentRun& run : runs) {
    const SegmentResult alone = segment(*run.request, cpu_context());
    const SegmentResult together = finish_segmentation(std::move(run), context);
    CHECK(same_phi(alone, together));
  }
}

}  // namespace
}  // namespace larch::levelset
