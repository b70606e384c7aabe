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

TEST_CASE("data speeds are the same on both devices", "[levelset::make_data_speed]") {
  std::vector<Vec3i> sizes = {{37, 29, 21}, {45, 33, 1}, {7, 5, 3}};
  if (!small_tests()) sizes.push_back({128, 130, 70});
  for (const Vec3i& size : sizes) {
    for (const SpeedParts& parts : all_speed_parts(size)) {
      CAPTURE(size.x, parts.rule.is_given, parts.pinned.empty());
      CHECK(speeds_by_brick(parts, cpu_context()) == speeds_by_brick(parts, cuda_context()));
    }
  }
}

/// A bright structure in noise, in which a ball grows by a window.
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
    CHECK(static_cast<int>(a.progress.stop) == static_cast<int>(b.progress.stop));
    const auto &h = a.history[f], &k = b.history[f];
    REQUIRE(h.size() == k.size());
    for (size_t s = 0; s < h.size(); ++s) REQUIRE(h[s].changed == k[s].changed);
  }
}

void check_segment(const SegmentRequest& request) {
  const SegmentResult a = segment(request, cpu_context());
  REQUIRE(a.by_label[0].voxels > 0);
  check_same(a, segment(request, cuda_context()));
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

TEST_CASE("segmentations are the same on both devices") {
  SegmentRequest request = noisy_request();
  SECTION("of a window") {}
  SECTION("with voxels of other lengths") {
    Grid grid = request.image.grid();
    grid.spacing_mm = {0.5, 1, 1.5};
    request.image.set_geometry(grid);
    request.spheres[0].is_index = true;
    request.spheres[0].centre = (request.image.size() - Vec3i{1, 1, 1}).cast<double>() * 0.5;
  }
  SECTION("in a mask, with edges and two labels") {
    add_mask(request);
    request.config.max_distance_mm = 5;
    request.config.advection_weight = 0.3;
    request.spheres.push_back(request.spheres[0]);
    request.spheres[0].centre.x -= 4, request.spheres[1].centre.x += 4;
    request.spheres[1].label = 2;
    request.windows = {{2, 50, 130}};
  }
  SECTION("of a speed image") {
    add_given(request);
    add_mask(request);
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
  check_segment(request);
}

}  // namespace
}  // namespace larch::levelset
