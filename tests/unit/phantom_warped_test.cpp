// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/phantom/warped.h"

namespace {

using namespace larch;
using namespace larch::phantom;

/// Labels 1 and 2 are two boxes; the image is a ramp, with stripes of 8 voxels.
struct Input {
  Volume<float> image;
  LabelVolume labels;
};
Input make_input() {
  Grid grid;
  grid.size = {40, 36, 30};
  grid.spacing_mm = {1, 1.25, 1.5};
  grid.origin_mm = {-30, 20, 100};
  grid.direction = {{{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}};
  Input input{Volume<float>(grid), LabelVolume(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    input.image[i] = static_cast<float>(50 * (at.x / 8 % 2) + at.y + 0.37 * at.z);
    const bool inner = at.y > 8 && at.y < 25 && at.z > 9 && at.z < 20;
    if (inner && at.x > 9 && at.x < 31) input.labels[i] = at.x < 17 ? 1 : 2;
  }
  return input;
}

WarpedConfig still() {
  WarpedConfig config;
  config.rotation_deg = config.shift_mm = config.gain = config.bias = config.feather = 0;
  config.scale = {1, 1};
  return config;
}

}  // namespace

TEST_CASE("a copy without any change is the input, voxel by voxel, also within a larger canvas") {
  const Input input = make_input();
  WarpedConfig config = still();
  const WarpedCase same = make_warped(input.image, input.labels, config, 0, 0, 2);
  REQUIRE(describe_difference(same.image.grid(), input.image.grid(), 1e-9).empty());
  config.canvas = {50, 40, 34};
  const WarpedCase larger = make_warped(input.image, input.labels, config, 0, 0, 2);
  int64_t other = 0, labelled = 0;
  for (int64_t i = 0; i < input.image.voxels(); ++i) {
    const Vec3i at = input.image.grid().voxel(i) + Vec3i{5, 2, 2};
    other += same.image[i] != input.image[i] || same.labels[i] != input.labels[i];
    other += larger.image(at) != input.image[i] || larger.labels(at) != input.labels[i];
    labelled += input.labels[i] != 0;
  }
  CHECK(other == 0);
  for (const int32_t label : larger.labels) labelled -= label != 0;
  CHECK(labelled == 0);
}

TEST_CASE("displacements pull, and are as strong as they are said to be") {
  const Input input = make_input();
  WarpedConfig config = still();
  config.field_mm = 2;
  config.field_sigma_mm = 5;
  double squares = 0;
  constexpr int kPlaces = 20000;
  for (int i = 0; i < kPlaces; ++i) {
    const Vec3d at{i * 3.7, i % 100 * 1.9, i % 77 * 2.3};
    squares += displacement_mm(config, 0, 9, at).y * displacement_mm(config, 0, 9, at).y;
  }
  CHECK(std::sqrt(squares / kPlaces) == Approx(2).epsilon(0.05));
  const WarpedCase copy = make_warped(input.image, input.labels, config, 0, 0, 2);
  const Grid& grid = input.image.grid();
  int64_t same = 0, count = 0;
  for (int64_t i = 0; i < copy.labels.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    const Vec3d mm{at.x * grid.spacing_mm.x, at.y * grid.spacing_mm.y, at.z * grid.spacing_mm.z};
    const Vec3d from =
        index_from_world(grid, world_from_index(grid, at.cast<double>()) +
                                   displacement_mm(config, 0, copy.field_stream, mm));
    const Vec3i voxel{static_cast<int>(std::lround(from.x)), static_cast<int>(std::lround(from.y)),
                      static_cast<int>(std::lround(from.z))};
    if (!grid.contains(voxel)) continue;
    count += 1;
    same += input.labels(voxel) == copy.labels[i];
  }
  CHECK(same == count);
  CHECK(count > copy.labels.voxels() / 2);
}

TEST_CASE("beyond the input a copy has noise of the image's mean and standard deviation") {
  const Input input = make_input();
  const auto moments = [](const auto& volume, const auto& counts) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < volume.voxels(); ++i) {
      if (!counts(i)) continue;
      count += 1;
      sum += volume[i];
      squares += static_cast<double>(volume[i]) * volume[i];
    }
    return Vec3d{sum / count, std::sqrt(squares / count - sum / count * sum / count), count};
  };
  WarpedConfig config = still();
  config.canvas = {80, 80, 80};
  const WarpedCase copy = make_warped(input.image, input.labels, config, 0, 0, 2);
  const Vec3d of_input = moments(input.image, [](int64_t) { return true; });
  const Vec3d of_fill =
      moments(copy.image, [&](int64_t i) { return copy.image.grid().voxel(i).z < 24; });
  CHECK(of_fill.x == Approx(of_input.x).margin(0.2 * of_input.y));
  CHECK(of_fill.y == Approx(of_input.y).epsilon(0.1));
}
