// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/phantom/poses.h"

namespace {

using namespace larch;
using namespace larch::phantom;

PosesConfig family() {
  PosesConfig config;
  config.structures = 4;
  config.distractors = 1;
  config.size = {144, 120, 128};
  return config;
}

}  // namespace

TEST_CASE("the labels of an object fill its box as an ellipsoid does") {
  const PosesConfig config = family();
  const PosesCase c = make_poses(config, 3, 0, 2);
  const std::vector<PlacedObject> objects = place_objects(config, 3, 0);
  REQUIRE(objects.size() == 7);
  for (int k = 0; k < config.structures; ++k) {
    const PlacedObject& object = objects[static_cast<size_t>(k)];
    CHECK(object.label == k + 1);
    Vec3d low{1, 1, 1}, high{-1, -1, -1};
    double count = 0;
    for (int64_t i = 0; i < c.labels.voxels(); ++i) {
      if (c.labels[i] != object.label) continue;
      const Grid& grid = c.labels.grid();
      const Vec3d box =
          box_from_world(object.pose, world_from_index(grid, grid.voxel(i).cast<double>()));
      count += 1;
      for (int axis = 0; axis < 3; ++axis) {
        low[axis] = std::min(low[axis], box[axis]);
        high[axis] = std::max(high[axis], box[axis]);
      }
    }
    const Vec3d& edges = object.pose.edges_mm;
    CHECK(count == Approx(3.14159265 / 6 * edges.x * edges.y * edges.z).epsilon(0.02));
    for (int axis = 0; axis < 3; ++axis) {
      CHECK(std::fabs(low[axis] + 0.5) * edges[axis] < 1);
      CHECK(std::fabs(high[axis] - 0.5) * edges[axis] < 1);
    }
  }
}

TEST_CASE("objects after the first lie where they belong, distractors in nobody's box") {
  const PosesConfig config = family();
  Vec3d sum;
  int shared = 0;  // places of a box that lie in another
  for (int number = 0; number < 40; ++number) {
    const std::vector<PlacedObject> objects = place_objects(config, 0, number);
    sum += relative(objects[0].pose, objects[1].pose).centre_mm;
    for (const PlacedObject& a : objects) {
      // Distractors differ by their place alone, so that nothing else can tell them.
      if (a.label == 0) CHECK(angle_between(a.pose.rotation, {}) < 0.53);  // 30 degrees
      for (const PlacedObject& b : objects) {
        if (&a == &b) continue;
        for (int place = 0; place < 125; ++place) {
          const int row = place / 5, plane = row / 5;
          const Vec3d box{place % 5 * 0.25 - 0.5, row % 5 * 0.25 - 0.5, plane * 0.25 - 0.5};
          const Vec3d in_b = box_from_world(b.pose, world_from_box(a.pose, box));
          const double most = std::max({std::fabs(in_b.x), std::fabs(in_b.y), std::fabs(in_b.z)});
          shared += most <= 0.5;
        }
      }
    }
  }
  CHECK(shared == 0);
  CHECK(norm(sum / 40.0 - Vec3d{22, 16, 24}) < 1.5);
}

TEST_CASE("the noise of objects in poses is as strong as it is said to be") {
  PosesConfig config;
  config.snr = 4;
  const PosesCase c = make_poses(config, 0, 0, 2);
  double count = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < c.image.voxels(); ++i) {
    const Vec3i at = c.image.grid().voxel(i);
    if (at.z > 8) break;  // no object is there
    count += 1;
    sum += c.image[i];
    squares += static_cast<double>(c.image[i]) * c.image[i];
  }
  const double mean = sum / count;
  CHECK(mean == Approx(1000).epsilon(0.02));
  CHECK(std::sqrt(squares / count - mean * mean) == Approx(250).epsilon(0.05));
}
