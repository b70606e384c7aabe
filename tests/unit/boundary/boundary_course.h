// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "larch/boundary/refine.h"
#include "larch/boundary/train/train.h"
#include "larch/core/portable_math.h"
#include "larch/mesh/sphere_template.h"
#include "larch/pose/distance_map.h"
#include "larch/shape/shape_model.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// A bright ellipsoid in noise, in a cube of 40 voxels of 1 mm.
struct Body {
  Pose pose;
  double noise = 60;
  double cap = 0;  ///< share of the height, at the end along z, where the contrast is a quarter

  Vec3d semi_axes() const { return pose.edges_mm * 0.5; }
  /// Roughly the signed distance of a place, mm.
  double distance(const Vec3d& at) const {
    const Vec3d m = box_mm_from_world(pose, at), s = semi_axes();
    const double r = norm(Vec3d{m.x / s.x, m.y / s.y, m.z / s.z});
    const double slope = norm(Vec3d{m.x / s.x / s.x, m.y / s.y / s.y, m.z / s.z / s.z}) / r;
    return r > 0 ? (r - 1) / slope : -s.z;
  }
  std::vector<Vec3d> vertices() const {
    std::vector<Vec3d> places;
    const Vec3d s = semi_axes();
    for (const Vec3d& u : mesh::sphere_template().unit) {
      const Vec3d m{s.x * u.x, s.y * u.y, s.z * u.z};
      places.push_back(pose.centre_mm + rotate(pose.rotation, m));
    }
    return places;
  }
  double mean_distance(const std::vector<Vec3d>& places) const {
    double sum = 0;
    for (const Vec3d& at : places) sum += std::abs(distance(at));
    return sum / static_cast<double>(places.size());
  }
};

/// Body number n of those that differ: semi-axes of about 12, 11 and 10 mm.
inline Body body(uint64_t n) {
  const auto drawn = [&](uint64_t k) { return 2 * hash_unit(6, k, n) - 1; };
  Body out;
  out.pose.centre_mm = {19.5 + drawn(0), 19.5 + drawn(1), 19.5 + drawn(2)};
  out.pose.rotation = from_rotation_vector(Vec3d{drawn(3), drawn(4), drawn(5)} * 0.1);
  out.pose.edges_mm = {24 + 2 * drawn(6), 22 + 2 * drawn(7), 20 + 2 * drawn(8)};
  return out;
}

inline Volume<int16_t> image_of(const Body& body, uint64_t seed) {
  Volume<int16_t> image(grid_of({40, 40, 40}));
  for (int64_t i = 0; i < image.voxels(); ++i) {
    const Vec3d at = world_from_index(image.grid(), image.grid().voxel(i).cast<double>());
    const bool in_cap =
        box_mm_from_world(body.pose, at).z > (0.5 - body.cap) * body.pose.edges_mm.z;
    // The border is as sharp as a voxel is wide.
    const double inside = std::clamp(0.5 - body.distance(at), 0.0, 1.0);
    const double contrast = in_cap && body.cap > 0 ? 100 : 400;
    const double value =
        300 + contrast * inside + body.noise * draw_normal(seed, 9, static_cast<uint64_t>(i));
    image[i] = static_cast<int16_t>(std::clamp(std::nearbyint(value), -511.0, 1534.0));
  }
  return image;
}

/// A small training, of two levels.
struct BoundaryCourse {
  std::vector<boundary::TrainingCase> cases;
  boundary::Model start;
  boundary::BoundaryConfig config;
  voxels::TrainConfig shared;

  explicit BoundaryCourse(uint64_t count) {
    std::vector<std::vector<Vec3d>> vertices;
    std::vector<Pose> poses;
    for (uint64_t n = 0; n < count; ++n) {
      const Body one = body(n);
      vertices.push_back(one.vertices());
      poses.push_back(one.pose);
      const std::optional<Pose> truth = one.pose;
      boundary::TrainingCase& c = cases.emplace_back();
      const Volume<int16_t> image = image_of(one, n);
      c.image = hdn::make_training_case(std::to_string(n), image, image.grid(), {&truth, 1}, 0,
                                        context_of());
      c.distance_mm = Volume<float>(c.image.grid);
      for (int64_t i = 0; i < c.distance_mm.voxels(); ++i) {
        c.distance_mm[i] = static_cast<float>(
            one.distance(world_from_index(c.image.grid, c.image.grid.voxel(i).cast<double>())));
      }
    }
    std::sort(cases.begin(), cases.end(),
              [](const auto& a, const auto& b) { return a.image.digest < b.image.digest; });
    for (size_t c = 0; c < cases.size(); ++c) cases[c].image.group = c;
    start.space.spacing_mm = {1, 1, 1};
    start.structure = "organ";
    start.labels = {1};
    start.refine.search_modes = 1;
    start.shape = shape::make_shape_model(vertices, poses, context_of());
    config.structures = {"organ"};
    config.halvings = {0, 0};
    config.refine = start.refine;
    config.folds = 2;
    config.starts = 1;
    config.positives_per_volume = 60;
    config.negatives_per_volume = 120;
    shared.tree.depth = 2;
    shared.tree.rounds = {10};
    shared.tree.prior = tree::PriorKind::kHalf;
    shared.tree.min_samples = 20;
    shared.tree.min_class_samples = 5;
  }

  boundary::Model train(int threads = 2, const boundary::TrainHooks& hooks = {}) {
    report.clear();
    return boundary::train_boundary(cases, start, config, shared, boundary::errors_of(config),
                                    hooks, report, context_of(threads));
  }
  std::vector<boundary::LevelReport> report;
};

}  // namespace larch::fixtures
