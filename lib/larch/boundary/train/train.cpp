// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/train/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "larch/boundary/train/samples.h"
#include "larch/core/error.h"
#include "larch/features/steerable/steerable.h"
#include "larch/mesh/sphere_template.h"
#include "larch/mesh/voxelise.h"
#include "larch/tree/train/column_trees.h"
#include "larch/voxels/samples.h"

namespace larch::boundary {
namespace {

constexpr double kElsewhere_mm = 1e9;

/// Tells where a refinement has led to.
struct Result {
  Measures measures;
  double off_mm;  ///< mean distance from the truth, or more where the volume is another
};

/// A training on its way.
struct Training {
  const std::vector<TrainingCase>& cases;
  const BoundaryConfig& config;
  const hdn::SharedConfig& shared;
  const pose::RelativeGaussian& errors;
  const Context& context;
  PartialTraining all;
  std::vector<std::vector<Pose>> poses{}, wrong_poses{};  ///< the first starts
  std::vector<Result> usual{}, astray{};                  ///< of the last level, by starts

  features::ResidentImages images_of(size_t c, int halvings) const {
    features::ResidentImages images{image::make_levels(cases[c].image.levels[0].view(),
                                                       halvings + features::kSteerableLevels - 1,
                                                       halvings, context, cases[c].image.extent),
                                    {}};
    images.views =
        features::steerable_images(images.levels, halvings, all.model.space.intensity.steps);
    return images;
  }
  std::vector<Stage> learn(const Places& places, int halvings, LevelReport& report) const;
  void predict(const std::vector<Stage>& stages, int level, LevelReport& report);
  Result go_on(const ResidentModel& own, const std::vector<image::LevelImage>& images, size_t c,
               const Pose& start, std::vector<Vec3d>& mesh) const;
  Confidence confidence() const;
  void run_level(int level);
};

/// Returns the classifier of all cases, then those that leave out a fold.
std::vector<Stage> Training::learn(const Places& places, int halvings, LevelReport& report) const {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<features::SteerableFeature> pool =
      features::steerable_pool(config.features, features::kVertexPoints);
  const features::FramesOfImages frames{places.frames, places.first,
                                        [&](size_t c) { return images_of(c, halvings); }};
  const int64_t bytes_left =
      voxels::bytes_beside_codes(places.frames.size(), pool.size(), shared.memory_bytes, context);
  const std::vector<learning::CodeMap> maps = features::range_frames(frames, pool, context);
  const features::FrameCodes codes = features::fill_frames(frames, pool, maps, context);
  report.seconds_features = seconds_since(start);
  tree::ColumnTask task{shared.tree, shared.validation, *codes.source, places.samples, maps};
  task.samples_at_once = voxels::samples_at_once(pool.size(), bytes_left, context.device);
  if (shared.classifier == voxels::ClassifierKind::kEnsemble) {
    task.trees = shared.ensemble.trees;
    task.feature_share = shared.ensemble.feature_share;
  }
  const auto folds = static_cast<size_t>(config.folds);
  std::vector<Stage> stages;
  for (size_t k = 0; k <= (folds > 1 ? folds : 0); ++k) {
    std::vector<uint32_t> times;
    for (const uint32_t c : places.case_of) {
      const bool is_left_out = k > 0 && hdn::fold_of(cases[c].image, config.folds) == k - 1;
      times.push_back(is_left_out ? 0 : 1);
    }
    tree::ColumnTrees grown = tree::grow_on_columns(task, times, context);
    Stage& stage = stages.emplace_back();
    stage.halvings = halvings;
    stage.range_voxels = places.range_voxels;
    stage.trees = std::move(grown.trees);
    for (const uint32_t column : grown.columns) stage.features.push_back(pool[column]);
    context.throw_if_stopped("stopped; continue with --resume");
  }
  report.seconds_trees = seconds_since(start) - report.seconds_features;
  return stages;
}

/// Refines a mesh of a case through the newest level; the first one begins with a pose.
Result Training::go_on(const ResidentModel& own, const std::vector<image::LevelImage>& images,
                       size_t c, const Pose& start, std::vector<Vec3d>& mesh) const {
  const int level = own.model.levels() - 1;
  const Start from = level == 0 ? Start{start, {}} : Start{{}, mesh};
  const Refined refined = refine(own, images, from, level, level, context);
  mesh = refined.vertices_mm;
  if (level + 1 < static_cast<int>(config.halvings.size())) return {};
  const Volume<float>& truth = cases[c].distance_mm;
  const auto inside = std::count_if(truth.begin(), truth.end(), [](float mm) { return mm < 0; });
  const Mesh surface{mesh, mesh::sphere_template().levels[static_cast<size_t>(level)].triangles};
  const double more_mm3 = mesh::signed_volume_mm3(surface) -
                          static_cast<double>(inside) * truth.grid().voxel_volume_mm3();
  return {measures_of(own.model, refined),
          std::max(mean_distance_mm(cases[c], mesh), std::abs(more_mm3) / mesh::area_mm2(surface))};
}

/// Right is what ends within one and a half times the median distance of usual starts, wrong what
/// ends beyond twice the median and half a voxel.
Confidence Training::confidence() const {
  std::vector<double> distances;
  for (const Result& one : usual) distances.push_back(one.off_mm);
  std::sort(distances.begin(), distances.end());
  const double median = distances[distances.size() / 2];
  const double voxel_mm = all.model.scale(all.model.levels() - 1).spacing_mm;
  std::vector<Measures> right, wrong;
  for (const auto* results : {&usual, &astray}) {
    for (const Result& one : *results) {
      if (one.off_mm <= 1.5 * median) right.push_back(one.measures);
      if (one.off_mm > 2 * median + voxel_mm / 2) wrong.push_back(one.measures);
    }
  }
  return learn_confidence(right, wrong);
}

/// Each case with the classifier that has not learned from it.
void Training::predict(const std::vector<Stage>& stages, int level, LevelReport& report) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ResidentModel> resident;
  for (size_t k = stages.size() > 1 ? 1 : 0; k < stages.size(); ++k) {
    Model model = all.model;
    model.stages.back() = stages[k];
    resident.push_back(make_resident(std::move(model), context.device));
  }
  const double voxel_mm = all.model.scale(level).spacing_mm;
  double meshes = 0, near = 0, tried = 0;
  usual.clear();
  astray.clear();
  for (size_t c = 0; c < cases.size(); ++c) {
    const ResidentModel& own =
        resident[resident.size() > 1 ? hdn::fold_of(cases[c].image, config.folds) : 0];
    const auto images =
        make_images({&own, 1}, cases[c].image.levels[0], cases[c].image.extent, context);
    for (size_t m = 0; m < all.meshes[c].size(); ++m) {
      std::vector<Vec3d>& mesh = all.meshes[c][m];
      for (const Vec3d& at : best_places(own, images, mesh, level, context)) {
        near += std::abs(distance_at(cases[c], at)) <= voxel_mm / 2 ? 1 : 0;
        tried += 1;
      }
      usual.push_back(go_on(own, images, c, level == 0 ? poses[c][m] : Pose{}, mesh));
      report.after_mm += mean_distance_mm(cases[c], mesh);
      meshes += 1;
    }
    for (size_t m = 0; m < all.astray[c].size(); ++m) {
      const Pose at = level == 0 ? wrong_poses[c][m] : Pose{};
      if (m != kInNoise) {
        astray.push_back(go_on(own, images, c, at, all.astray[c][m]));
        continue;
      }
      const Volume<int16_t> noise = noise_of(cases[c].image.levels[0], context.seed);
      astray.push_back(go_on(own, make_images({&own, 1}, noise, cases[c].image.extent, context), c,
                             at, all.astray[c][m]));
      astray.back().off_mm = kElsewhere_mm;
    }
    context.throw_if_stopped("stopped; continue with --resume");
  }
  report.recall = near / tried;
  report.after_mm /= meshes;
  report.seconds_refinement = seconds_since(start);
}

void Training::run_level(int level) {
  if (level == 0) {
    all.meshes = draw_starts(cases, all.model, errors, config.starts, poses, context);
    all.astray.resize(cases.size());
    // With one fold no case is held out that could tell right from wrong.
    if (config.folds > 1) {
      all.astray = draw_wrong_starts(cases, all.model, errors, wrong_poses, context);
    }
  }
  const int halvings = config.halvings[static_cast<size_t>(level)];
  const Places places = draw_places(cases, all.meshes, all.model, level, halvings, config, context);
  LevelReport report;
  report.range_voxels = places.range_voxels;
  report.before_mm = places.before_mm;
  report.positives = static_cast<size_t>(
      std::accumulate(places.samples.positive.begin(), places.samples.positive.end(), size_t{0}));
  report.negatives = places.frames.size() - report.positives;
  if (report.positives == 0 || report.negatives == 0) {
    throw InputError("the meshes of level " + std::to_string(level) +
                     (report.positives == 0 ? " never come near the boundary"
                                            : " lie on the boundary everywhere") +
                     ": check that the label maps fit the images and the voxel size fits the "
                     "structure");
  }
  const std::vector<Stage> stages = learn(places, halvings, report);
  all.model.stages.push_back(stages[0]);
  predict(stages, level, report);
  const bool is_last = level + 1 == static_cast<int>(config.halvings.size());
  if (is_last && config.folds > 1) all.model.confidence = confidence();
  all.report.push_back(report);
}

}  // namespace

pose::RelativeGaussian errors_of(const BoundaryConfig& config) {
  constexpr double kDegree = 3.141592653589793 / 180;
  pose::RelativeGaussian errors;
  for (size_t i = 0; i < 9; ++i) {
    const double sd = i < 3   ? config.error_mm
                      : i < 6 ? config.error_deg * kDegree
                              : config.error_scale;
    errors.covariance[10 * i] = sd * sd;
  }
  errors.count = 1;
  return errors;
}

double mean_distance_mm(const TrainingCase& c, const std::vector<Vec3d>& vertices_mm) {
  double sum = 0;
  for (const Vec3d& at : vertices_mm) sum += std::abs(distance_at(c, at));
  return sum / static_cast<double>(vertices_mm.size());
}

Model train_boundary(const std::vector<TrainingCase>& cases, const Model& start,
                     const BoundaryConfig& config, const hdn::SharedConfig& shared,
                     const pose::RelativeGaussian& errors, const TrainHooks& hooks,
                     std::vector<LevelReport>& report, const Context& context) {
  if (cases.size() < 2) throw InputError("a boundary is learned from at least two cases");
  Training training{cases, config, shared, errors, context, {start, {}, {}, {}}};
  if (hooks.resume != nullptr) training.all = *hooks.resume;
  const auto levels = static_cast<int>(config.halvings.size());
  for (int level = training.all.model.levels(); level < levels; ++level) {
    context.progress(static_cast<double>(level) / levels,
                     "level " + std::to_string(level + 1) + " of " + std::to_string(levels));
    training.run_level(level);
    if (hooks.after_step) hooks.after_step(training.all);
    context.throw_if_stopped("stopped after level " + std::to_string(level + 1) +
                             "; continue with --resume");
  }
  Model& model = training.all.model;
  for (size_t l = 0; l < training.all.report.size(); ++l) {
    const LevelReport& r = training.all.report[l];
    const std::string name = "level " + std::to_string(l);
    model.info.validation.emplace_back(name + " recall", r.recall);
    model.info.validation.emplace_back(name + " distance mm", r.after_mm);
  }
  model.info.seed = context.seed;
  for (const TrainingCase& c : cases) model.info.case_digests.push_back(c.image.digest);
  check_model(model);
  report = std::move(training.all.report);
  return std::move(model);
}

}  // namespace larch::boundary
