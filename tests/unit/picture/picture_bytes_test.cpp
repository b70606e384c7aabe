// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Pictures of results stay the same bytes: hospitals compare them.
#include <catch2/catch.hpp>

#include "larch/picture/qc.h"
#include "tests/unit/picture/picture_digest.h"

namespace larch::picture {
namespace {

using test::digest_of;

struct Scene {
  Volume<float> image;
  LabelVolume labels, reference;
};

Scene made_scene(const Grid& grid) {
  Scene scene{Volume<float>(grid), LabelVolume(grid), LabelVolume(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    scene.image[i] = static_cast<float>((at.x * 7 + at.y * 13 + at.z * 29 + at.x * at.y) % 251);
    const auto inside = [&](Vec3i centre, int radius) {
      const Vec3i d = at - centre;
      return d.x * d.x + d.y * d.y + d.z * d.z * 4 <= radius * radius;
    };
    const Vec3i half{grid.size.x / 2, grid.size.y / 2, grid.size.z / 2};
    if (inside(half, 9)) scene.labels[i] = 1;
    if (inside(half + Vec3i{4, 3, 0}, 5)) scene.labels[i] = 12;
    if (inside(half + Vec3i{1, -2, 0}, 10)) scene.reference[i] = 1;
  }
  return scene;
}

Grid turned_grid() {
  Grid grid;
  grid.size = {40, 33, 27};
  grid.spacing_mm = {0.9, 1.25, 2.5};
  grid.origin_mm = {-10, 20, 5};
  grid.direction = {{{0.6, 0, -0.8}, {-0.8, 0, -0.6}, {0, 1, 0}}};
  return grid;
}

TEST_CASE("the picture of a result is the same bytes as ever") {
  const Scene scene = made_scene(turned_grid());
  QcOptions options;
  CHECK(digest_of(qc_picture(scene.image, scene.labels, options)) == "549a57b6ed3871da");
  options.reference = &scene.reference;
  options.min_width = 500;
  options.window_low = 0.1;
  options.window_high = 0.8;
  options.colours = {{1, "organ", {10, 200, 30}}, {12, "lesion", {0, 0, 0}}};
  CHECK(digest_of(qc_picture(scene.image, scene.labels, options)) == "518b38675dca6127");
  const LabelVolume none(scene.labels.grid());
  CHECK(digest_of(qc_picture(scene.image, none)) == "fd428372232e5204");
  Grid unknown = turned_grid();
  unknown.frame = WorldFrame::kUnknown;
  const Scene nowhere = made_scene(unknown);
  CHECK(digest_of(qc_picture(nowhere.image, nowhere.labels)) == "5d2b3e36e2de1fed");
  Grid flat;
  flat.size = {61, 47, 1};
  flat.spacing_mm = {0.5, 0.75, 1};
  const Scene slice = made_scene(flat);
  CHECK(digest_of(qc_picture(slice.image, slice.labels)) == "e10230bf4a9c18ee");
}

}  // namespace
}  // namespace larch::picture
