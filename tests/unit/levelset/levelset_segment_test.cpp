// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/levelset/segment.h"
#include "tests/unit/levelset/problems.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

/// A ball of intensity 100 below r = 19 that falls to 0 at r = 21, in noise of +- `noise`.
Volume<float> ball_image(const Grid& grid, double noise) {
  const Vec3d middle = middle_mm(grid);
  Volume<float> image = volume_of<float>(grid, [&](const Vec3d& at) {
    return 100 * std::clamp((21 - norm(at - middle)) / 2, 0.0, 1.0);
  });
  for (int64_t i = 0; i < image.voxels(); ++i) {
    image[i] += static_cast<float>(noise * (2 * hash_unit(3, 0, static_cast<uint64_t>(i)) - 1));
  }
  return image;
}

SegmentRequest ball_request(double noise) {
  SegmentRequest request;
  request.image = ball_image(levelset_grid({56, 56, 56}), noise);
  request.spheres = {{.centre = {27.5, 27.5, 27.5}, .radius = 6}};
  request.config.lower = 50;
  request.config.upper = 150;
  return request;
}

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
  CHECK(result.by_label[0].progress.stop == Stop::kAtRest);
  CHECK(result.by_label[0].progress.iterations < known.iterations);
  CHECK(ball_radius(result.by_label[0].phi_mm) == Approx(known.radius).margin(known.tolerance));
}

}  // namespace
