// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "folder.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {
namespace {

levelset::SegmentResult result_of(size_t steps) {
  levelset::SegmentResult result;
  result.labels = LabelVolume(Grid{{4, 4, 4}});
  levelset::LabelResult label;
  label.phi_mm = Volume<float>(result.labels.grid(), 3);
  label.voxels = static_cast<int64_t>(steps);
  result.progress.iterations = static_cast<int64_t>(steps);
  result.by_label.push_back(label);
  result.resolved.labels.emplace_back();
  // Every step one voxel comes in.
  result.history.emplace_back(steps, levelset::StepCount{1, 2, 1, 1});
  return result;
}

TEST_CASE("a long history is thinned out, to the last iteration, without losing a voxel") {
  for (const size_t steps : {size_t{1}, size_t{2000}, size_t{2001}, size_t{123456}}) {
    const auto report = segmentation_report(result_of(steps), {});
    const auto& rows = report["labels"][0]["history"];
    CHECK(rows["iteration"].size() <= 2001);
    CHECK(rows["iteration"].back() == steps);
    CHECK(rows["inside"].back() == steps);
    int64_t flipped = 0;
    for (const auto& row : rows["flipped"]) flipped += row.get<int64_t>();
    CHECK(flipped == static_cast<int64_t>(steps));
  }
  CHECK(segmentation_report(result_of(0), {})["labels"][0]["iterations"] == 0);
  CHECK_NOTHROW(segmentation_plot(result_of(0), "empty"));
}

TEST_CASE("a distance where nothing or all is inside is the diagonal of the image") {
  const Grid grid{{4, 4, 4}};
  CHECK(levelset::surface_distance_mm(Volume<float>(grid, 1), 3, 1)[0] == Approx(std::sqrt(48.0)));
  CHECK(levelset::surface_distance_mm(Volume<float>(grid, -1), 3, 1)[0] ==
        Approx(-std::sqrt(48.0)));
}

/// A ball that the border of the image cuts, its values those of a speed and not of a distance.
Volume<float> cut_ball(const Grid& grid, double radius) {
  Volume<float> surface(grid);
  for (int64_t i = 0; i < surface.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    const double r = norm(Vec3d{0.5 * at.x - 0.1, 0.5 * at.y - 7.2, 1.5 * at.z - 9.1});
    surface[i] = static_cast<float>(std::clamp(0.2 * (r - radius), -1.0, 1.0));
  }
  return surface;
}

TEST_CASE("mesh and distance are those of the surface between voxels, not of voxels") {
  Grid grid{{30, 30, 14}};
  grid.spacing_mm = {0.5, 0.5, 1.5};
  const Volume<float> surface = cut_ball(grid, 6);
  const Mesh mesh = levelset::surface_mesh(surface, 2);
  double off = 0;
  for (const Vec3d& v : mesh.vertices_mm) {
    if (v.x >= 0) off = std::max(off, std::abs(norm(v - Vec3d{0.1, 7.2, 9.1}) - 6));
  }
  CHECK(off < 0.03);  // linear places are up to 1.5^2 / 8 / 6 = 0.047 off
  const Volume<float> distance_mm = levelset::surface_distance_mm(surface, 1.5, 2);
  double near = 0, far = 0;
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    const double mm = norm(Vec3d{0.5 * at.x - 0.1, 0.5 * at.y - 7.2, 1.5 * at.z - 9.1}) - 6;
    if (mm < -4) continue;  // where the nearest place may lie beyond the border
    double& worst = std::abs(mm) < 1.5 ? near : far;
    worst = std::max(worst, std::abs(double{distance_mm[i]} - mm));
  }
  CHECK(near < 0.06);  // triangles lie within the ball
  CHECK(far < 0.15);
}

}  // namespace
}  // namespace larch::pipeline
