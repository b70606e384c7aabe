// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <catch2/catch.hpp>

#include "tests/unit/levelset/requests.h"

// What must make no difference: units of intensities and of lengths, the side of the border.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

/// A ball of 0 to 1000 in whole numbers, with noise, on voxels of three lengths times `unit_mm`,
/// with all terms on.
SegmentRequest noisy_request(double unit_mm) {
  const Grid grid = levelset_grid({30, 26, 22}, {1 * unit_mm, 1.25 * unit_mm, 1.5 * unit_mm});
  SegmentRequest request;
  const Vec3d middle = middle_mm(grid);
  request.image = volume_of<float>(grid, [&](const Vec3d& at) {
    return std::floor(1000 * std::clamp((11 - norm(at - middle) / unit_mm) / 2, 0.0, 1.0));
  });
  for (int64_t i = 0; i < request.image.voxels(); ++i) {
    const double noise = 600 * hash_unit(3, 0, static_cast<uint64_t>(i)) - 300;
    request.image[i] += static_cast<float>(std::floor(noise));
  }
  request.spheres = {{.centre = middle, .radius = 4 * unit_mm}};
  LevelsetConfig& config = request.config;
  config.lower = 500;
  config.upper = 1500;
  config.edge_scale_mm = unit_mm;
  config.edge_contrast = 200 / unit_mm;
  config.advection_weight = 0.3;
  config.max_distance_mm = 9 * unit_mm;
  config.max_iterations = 120;
  return request;
}

TEST_CASE("units of lengths make no difference, bit for bit") {
  const double factor = GENERATE(1.0 / 1024, 1.0 / 8, 64.0);
  const SegmentResult one = segment(noisy_request(1), {});
  const SegmentResult other = segment(noisy_request(factor), {});
  REQUIRE(one.by_label[0].voxels > 500);
  CHECK(same_labels(one, other));
  CHECK(one.resolved.time_step == other.resolved.time_step);
  for (int64_t i = 0; i < one.labels.voxels(); ++i) {
    const double scaled = static_cast<double>(other.by_label[0].phi_mm[i]) / factor;
    REQUIRE(scaled == static_cast<double>(one.by_label[0].phi_mm[i]));
  }
  CHECK(other.by_label[0].volume_ml ==
        Approx(one.by_label[0].volume_ml * factor * factor * factor));
}

TEST_CASE("units of intensities make no difference, bit for bit") {
  const SegmentResult one = segment(noisy_request(1), {});
  const auto with = [](double factor, double offset) {
    SegmentRequest request = noisy_request(1);
    const auto of = [=](double value) { return value * factor + offset; };
    for (float& value : request.image) value = static_cast<float>(of(static_cast<double>(value)));
    request.config.lower = of(500);
    request.config.upper = of(1500);
    request.config.edge_contrast *= factor;
    return request;
  };
  SECTION("from the largest to the least floats") {
    const double factor = GENERATE(0x1p100, 0x1p-120, 0x1p-140);  // the last are not normal
    SegmentRequest request = with(factor, 0);
    if (factor < 0x1p-130) request.config.advection_weight = 0;
    SegmentRequest same = noisy_request(1);
    same.config.advection_weight = request.config.advection_weight;
    CHECK(same_phi(segment(same, {}), segment(request, {})));
  }
  SECTION("from the least of 16 bits") {
    CHECK(same_labels(one, segment(with(1, -32768), {})));
  }
}

TEST_CASE("a structure touches the border on either side") {
  SegmentRequest request = ball_request(0);
  const Grid grid = request.image.grid();
  const int axis = GENERATE(0, 1, 2);
  const double at_border = GENERATE(0.0, 55.0);
  CAPTURE(axis, at_border);
  Vec3d centre{27.5, 27.5, 27.5};
  centre[axis] = at_border;
  request.image =
      volume_of<float>(grid, [&](const Vec3d& at) { return norm(at - centre) < 9 ? 100 : 0; });
  request.spheres[0].centre = centre;
  const SegmentResult result = segment(request, {});
  CHECK(result.by_label[0].voxels > 900);
  CHECK(result.by_label[0].touches_border);
}

}  // namespace
