// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Boxes that overlap: one label map, and whole in layers.
#include <algorithm>

#include <catch2/catch.hpp>

#include "larch/poses.h"

using namespace larch;

TEST_CASE("Boxes are whole in layers, of which there are as many as overlapping boxes need") {
  Grid grid;
  grid.size = {20, 6, 6};
  FoundPoses found;
  for (const double x : {4.0, 7.0, 15.0, 0.0}) {
    found.poses.push_back({"a", "found", 0.9, {{x, 2.5, 2.5}, {}, {6, 4, 4}}, x > 0});
  }
  found.parents.assign(4, -1);
  const auto count = [](const LabelVolume& labels, int value) {
    return std::count(labels.begin(), labels.end(), value);
  };
  const LabelVolume flat = label_boxes(found, grid, 1);
  const std::vector<LabelVolume> layers = layered_boxes(found, grid, 2);
  REQUIRE(layers.size() == 2);
  CHECK(count(layers[0], 1) == count(layers[1], 2));
  CHECK(count(layers[0], 3) == count(flat, 3));
  CHECK(count(flat, 1) + count(flat, 2) < 2 * count(layers[1], 2));
  for (int64_t i = 0; i < flat.voxels(); ++i) {
    CHECK((flat[i] != 0) == (layers[0][i] + layers[1][i] != 0));
  }
  CHECK(layered_boxes({}, grid, 1).size() == 1);
}
