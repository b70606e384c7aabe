// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "larch/levelset/segment.h"
#include "tests/unit/levelset/problems.h"

// Requests with known answers.
namespace larch::test {

/// A ball of intensity 100 below r = 19 that falls to 0 at r = 21, in noise of +- `noise`.
inline Volume<float> ball_image(const Grid& grid, double noise) {
  const Vec3d middle = middle_mm(grid);
  Volume<float> image = volume_of<float>(grid, [&](const Vec3d& at) {
    return 100 * std::clamp((21 - norm(at - middle)) / 2, 0.0, 1.0);
  });
  for (int64_t i = 0; i < image.voxels(); ++i) {
    image[i] += static_cast<float>(noise * (2 * hash_unit(3, 0, static_cast<uint64_t>(i)) - 1));
  }
  return image;
}

inline levelset::SegmentRequest ball_request(double noise) {
  levelset::SegmentRequest request;
  request.image = ball_image(levelset_grid({56, 56, 56}), noise);
  request.spheres = {{.centre = {27.5, 27.5, 27.5}, .radius = 6}};
  request.config.lower = 50;
  request.config.upper = 150;
  return request;
}

/// Two halves of a ball, 100 and 60, in 0.
inline levelset::SegmentRequest halves_request() {
  levelset::SegmentRequest request = ball_request(0);
  const Grid grid = request.image.grid();
  const Vec3d middle = middle_mm(grid);
  request.image = volume_of<float>(grid, [&](const Vec3d& at) {
    return norm(at - middle) > 20 ? 0 : at.x < 27.5 ? 100 : 60;
  });
  request.spheres = {{.centre = {18, 27.5, 27.5}, .radius = 4, .label = 4},
                     {.centre = {37, 27.5, 27.5}, .radius = 4, .label = 2}};
  request.config.lower.reset();
  request.config.upper.reset();
  return request;
}

inline bool same_labels(const levelset::SegmentResult& a, const levelset::SegmentResult& b) {
  return std::equal(a.labels.begin(), a.labels.end(), b.labels.begin(), b.labels.end());
}
inline bool same_phi(const levelset::SegmentResult& a, const levelset::SegmentResult& b) {
  return std::equal(a.by_label.begin(), a.by_label.end(), b.by_label.begin(), b.by_label.end(),
                    [](const levelset::LabelResult& x, const levelset::LabelResult& y) {
                      return same_bits(x.phi_mm, y.phi_mm);
                    });
}
inline bool warns(const std::vector<std::string>& warnings, const std::string& of) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
    return warning.find(of) != std::string::npos;
  });
}
inline int64_t voxels_of(const levelset::SegmentResult& result, int32_t label) {
  return std::count(result.labels.begin(), result.labels.end(), label);
}

}  // namespace larch::test
