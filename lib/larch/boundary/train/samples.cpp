// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/train/samples.h"

#include <algorithm>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/learning/lowest_hash.h"
#include "larch/mesh/sphere_template.h"
#include "larch/pose/distance_map.h"

namespace larch::boundary {
namespace {

constexpr uint64_t kErrorStream = 0x6572726f, kPositiveStream = 0x706f7362,
                   kNegativeStream = 0x6e656762, kWrongStream = 0x77726f6e,
                   kNoiseStream = 0x6e6f6973;
constexpr double kMinimumRange = 4, kMaximumRange = 12;

/// A mesh as a level begins with it.
struct Begun {
  std::vector<Vec3d> vertices, normals;
  std::vector<features::SteerableFrame> frames;
};

/// Returns the parts of a level's view that do not need a classifier.
LevelView bare_view(const Model& model, int level, int halvings) {
  const auto& of = mesh::sphere_template().levels[static_cast<size_t>(level)];
  LevelView view;
  view.rings = of.rings.data();
  view.parents = of.parents.empty() ? nullptr : of.parents[0].data();
  view.first = level > 0 ? mesh::kTemplateVertices[level - 1] : 0;
  view.count = mesh::kTemplateVertices[level];
  view.shape.mean = model.shape.mean_mm.data();
  view.scale = image::level_scale(model.space.spacing_mm.x, halvings);
  return view;
}

Begun begin(const LevelView& view, const std::vector<Vec3d>& mesh) {
  MeshBuffers buffers(Device::cpu());
  buffers.vectors.upload(mesh);
  begin_level(OneThread{}, view, buffers.state);
  const MeshState& s = buffers.state;
  return {{s.x, s.x + view.count},
          {s.normals, s.normals + view.count},
          {s.frames, s.frames + view.count}};
}

/// The places of one case.
struct Drawn {
  std::vector<features::SteerableFrame> frames;
  std::vector<uint64_t> numbers;
  std::vector<uint8_t> positive;
};
Drawn draw_case(const TrainingCase& truth, const std::vector<Begun>& meshes, const LevelView& view,
                double range, uint64_t c, const BoundaryConfig& config, uint64_t seed) {
  std::vector<std::pair<uint64_t, uint64_t>> on, off;
  const auto count = static_cast<uint64_t>(view.count);
  for (uint64_t m = 0; m < meshes.size(); ++m) {
    for (uint64_t v = 0; v < count; ++v) {
      for (int j = 0; j < kDisplacements; ++j) {
        const double t = displacement(range, j) * view.scale.spacing_mm;
        const Vec3d at = meshes[m].vertices[v] + meshes[m].normals[v] * t;
        if (!truth.image.extent.holds(at)) continue;
        const double voxels = std::abs(distance_at(truth, at)) / view.scale.spacing_mm;
        const uint64_t number = (m * count + v) * kDisplacements + static_cast<uint64_t>(j);
        const uint64_t id = c << 40 | number;
        if (voxels <= 0.5) on.emplace_back(hash64(seed, kPositiveStream, id), number);
        if (voxels >= 2) off.emplace_back(hash64(seed, kNegativeStream, id), number);
      }
    }
  }
  Drawn drawn;
  const auto add = [&](std::vector<std::pair<uint64_t, uint64_t>> from, int most, bool positive) {
    for (const uint64_t number : learning::lowest_of(std::move(from), static_cast<size_t>(most))) {
      const uint64_t vertex = number / kDisplacements;
      const auto j = static_cast<int>(number % kDisplacements);
      drawn.frames.push_back(
          features::moved_along_normal(meshes[vertex / count].frames[vertex % count],
                                       static_cast<float>(displacement(range, j))));
      drawn.numbers.push_back(number);
      drawn.positive.push_back(positive ? 1 : 0);
    }
  };
  add(std::move(on), config.positives_per_volume, true);
  add(std::move(off), config.negatives_per_volume, false);
  return drawn;
}

/// Draws poses with errors.
struct ErrorSource {
  const pose::RelativeGaussian& errors;
  uint64_t seed;
  std::vector<double> factor;

  ErrorSource(const pose::RelativeGaussian& e, uint64_t s)
      : errors(e), seed(s), factor(e.covariance.begin(), e.covariance.end()) {
    factorise(factor, 9, /*least=*/0);  // a deviation of 0 stays one
  }
  /// Returns a pose with an error of so many deviations.
  Pose moved(const Pose& truth, size_t c, uint64_t stream, double times) const {
    pose::RelativePose error = errors.mean;
    for (size_t i = 0; i < 9; ++i)
      for (size_t j = 0; j <= i; ++j)
        error[i] += times * factor[9 * i + j] * draw_normal(seed, stream, 9 * c + j);
    return pose::pose_from_relative(truth, error);
  }
};

Meshes placed_means(const Model& model, const std::vector<std::vector<Pose>>& poses) {
  Meshes meshes(poses.size());
  for (size_t c = 0; c < poses.size(); ++c)
    for (const Pose& pose : poses[c])
      meshes[c].push_back(shape::placed_mean(model.shape, pose, mesh::kTemplateVertices[0]));
  return meshes;
}

}  // namespace

double distance_at(const TrainingCase& c, const Vec3d& at_mm) {
  const Grid& grid = c.image.grid;
  return pose::sample_distance(c.distance_mm, grid.origin_mm + grid.direction * at_mm).mm;
}

Meshes draw_starts(const std::vector<TrainingCase>& cases, const Model& model,
                   const pose::RelativeGaussian& errors, int starts,
                   std::vector<std::vector<Pose>>& poses, const Context& context) {
  const ErrorSource source(errors, context.seed);
  poses.assign(cases.size(), {});
  for (size_t c = 0; c < cases.size(); ++c) {
    for (int k = 0; k < starts; ++k) {
      poses[c].push_back(
          source.moved(*cases[c].image.truth[0], c, kErrorStream + static_cast<uint64_t>(k), 1));
    }
  }
  return placed_means(model, poses);
}

Meshes draw_wrong_starts(const std::vector<TrainingCase>& cases, const Model& model,
                         const pose::RelativeGaussian& errors,
                         std::vector<std::vector<Pose>>& poses, const Context& context) {
  const ErrorSource source(errors, context.seed);
  poses.assign(cases.size(), {});
  for (size_t c = 0; c < cases.size(); ++c) {
    const Pose truth = *cases[c].image.truth[0];
    const Grid& grid = cases[c].image.grid;
    poses[c].push_back(source.moved(truth, c, kWrongStream, 4));
    poses[c].push_back(source.moved(truth, c, kWrongStream + 1, 1));
    poses[c].push_back(*cases[(c + 1) % cases.size()].image.truth[0]);
    poses[c].push_back(source.moved(truth, c, kWrongStream + 3, 1));
    for (int axis = 0; axis < 3; ++axis) {
      const double most = grid.spacing_mm[axis] * (grid.size[axis] - 1);
      poses[c][1].centre_mm[axis] =
          most * hash_unit(context.seed, kWrongStream + 2, 3 * c + static_cast<uint64_t>(axis));
      double& other = poses[c][2].centre_mm[axis];
      other = std::clamp(other, 0.0, most);
    }
  }
  return placed_means(model, poses);
}

Volume<int16_t> noise_of(const Volume<int16_t>& image, uint64_t seed) {
  Volume<int16_t> noise(image.grid());
  const auto count = static_cast<uint32_t>(image.voxels());
  for (int64_t i = 0; i < noise.voxels(); ++i) {
    noise[i] = image[hash_below(seed, kNoiseStream, static_cast<uint64_t>(i), count)];
  }
  return noise;
}

Places draw_places(const std::vector<TrainingCase>& cases, const Meshes& meshes, const Model& model,
                   int level, int halvings, const BoundaryConfig& config, const Context& context) {
  const LevelView view = bare_view(model, level, halvings);
  std::vector<std::vector<Begun>> begun(cases.size());
  const auto for_cases = [&](const auto& body) {
    parallel_for_each(context.threads, static_cast<int64_t>(cases.size()), 1,
                      [&](int64_t c) { body(static_cast<size_t>(c)); });
  };
  for_cases([&](size_t c) {
    for (const auto& mesh : meshes[c]) begun[c].push_back(begin(view, mesh));
  });
  std::vector<double> distances;
  for (size_t c = 0; c < cases.size(); ++c)
    for (const Begun& mesh : begun[c])
      for (const Vec3d& at : mesh.vertices)
        distances.push_back(std::abs(distance_at(cases[c], at)));
  Places places;
  for (const double mm : distances) places.before_mm += mm / static_cast<double>(distances.size());
  std::sort(distances.begin(), distances.end());
  const double wanted = distances[(distances.size() - 1) * 95 / 100] / view.scale.spacing_mm;
  places.range_voxels = std::clamp(wanted, kMinimumRange, kMaximumRange);
  std::vector<Drawn> drawn(cases.size());
  for_cases([&](size_t c) {
    drawn[c] = draw_case(cases[c], begun[c], view, places.range_voxels, c, config, context.seed);
  });
  for (size_t c = 0; c < cases.size(); ++c) {
    places.first.push_back(places.frames.size());
    for (size_t k = 0; k < drawn[c].frames.size(); ++k) {
      places.frames.push_back(drawn[c].frames[k]);
      places.case_of.push_back(static_cast<uint32_t>(c));
      places.samples.add(static_cast<uint64_t>(c) << 40 | drawn[c].numbers[k],
                         drawn[c].positive[k] != 0, uint64_t{1} << 32);
    }
  }
  places.first.push_back(places.frames.size());
  return places;
}

}  // namespace larch::boundary
