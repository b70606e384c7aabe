// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "larch/boundary/refine.h"
#include "larch/core/portable_math.h"
#include "larch/mesh/sphere_template.h"
#include "larch/tree/check.h"
#include "larch/voxels/model.h"

namespace larch::boundary {
namespace {

constexpr size_t kMinimumRight = 10, kMinimumWrong = 5;
constexpr double kMaximumDeviations = 10;  ///< that one measure counts for
constexpr double kShareOfGap = 0.05;       ///< between right and wrong: the least deviation

/// Returns minus the sum of the deviations that are worse than usual.
double score_of(const Confidence& confidence, const Measures& measures) {
  double sum = 0;
  for (size_t k = 0; k < kMeasures; ++k) {
    const double off = (measures[k] - confidence.usual[k]) / confidence.deviations[k];
    sum += std::clamp(off, 0.0, kMaximumDeviations);
  }
  return -sum;
}

double mean_of(std::span<const Measures> all, size_t k) {
  double sum = 0;
  for (const Measures& one : all) sum += one[k];
  return sum / static_cast<double>(all.size());
}

/// Takes the measures of the shape, from the third on.
void measure_shape(const Model& model, const std::vector<Vec3d>& x, Measures& out) {
  const auto count = static_cast<int>(x.size());
  const auto [modes, deviations] = shape::flat_modes(model.shape, model.modes());
  const std::vector<Vec3d> duals = shape::duals_of(model.shape, model.modes(), model.levels() - 1);
  shape::ShapeView view{model.shape.mean_mm.data(),
                        modes.data(),
                        duals.data(),
                        deviations.data(),
                        model.modes(),
                        static_cast<int>(model.shape.mean_mm.size()),
                        count};
  view.clamp = 1e6;
  shape::ShapeFit fit;
  std::vector<Vec3d> scratch(x.size());
  const shape::Similarity at = shape::project(OneThread{}, view, x.data(), scratch.data(), fit);
  for (int k = 0; k < model.modes(); ++k) {
    const double b = fit.coefficients[k] / deviations[static_cast<size_t>(k)];
    out[2] += b * b / model.modes();
  }
  out[2] = std::sqrt(out[2]);
  const Mat3 turn = rotation_matrix(at.rotation);
  for (int v = 0; v < count; ++v) {
    const Vec3d off = x[static_cast<size_t>(v)] -
                      shape::placed(at, turn, shape::shape_at(view, fit.coefficients, v));
    out[3] += dot(off, off) / count;
  }
  out[3] = std::sqrt(out[3]);
  out[4] = std::abs(log_of(std::max(at.scale, 1e-6)));
}

}  // namespace

Measures measures_of(const Model& model, const Refined& refined) {
  constexpr double kMinimum = 1e-4;
  const std::vector<float>& p = refined.probability;
  const auto outside = static_cast<size_t>(std::count(p.begin(), p.end(), 0.0F));
  const bool is_cut = outside > 0 && 2 * outside < p.size();
  const auto count = static_cast<double>(is_cut ? p.size() - outside : p.size());
  Measures out{};
  for (const float one : p) {
    if (is_cut && one == 0) continue;
    out[0] -= log_of(std::max(static_cast<double>(one), kMinimum)) / count;
    out[1] += one < kFound ? 1 / count : 0;
  }
  measure_shape(model, refined.vertices_mm, out);
  return out;
}

double Confidence::operator()(const Measures& measures) const {
  return calibration.probability(score_of(*this, measures));
}

Confidence learn_confidence(std::span<const Measures> right, std::span<const Measures> wrong) {
  Confidence out;
  if (right.size() < kMinimumRight || wrong.size() < kMinimumWrong) return out;
  for (size_t k = 0; k < kMeasures; ++k) {
    const double mean = mean_of(right, k);
    double square = 0;
    for (const Measures& one : right) {
      square += (one[k] - mean) * (one[k] - mean) / static_cast<double>(right.size());
    }
    out.usual.push_back(mean);
    out.deviations.push_back(std::sqrt(square) + kShareOfGap * std::abs(mean_of(wrong, k) - mean) +
                             1e-9);
  }
  std::vector<double> scores, wrong_scores;
  for (const Measures& one : right) scores.push_back(score_of(out, one));
  for (const Measures& one : wrong) wrong_scores.push_back(score_of(out, one));
  out.calibration = learning::calibrate(scores, wrong_scores);
  return out;
}

bool is_valid(const Confidence& confidence) {
  const auto& [usual, deviations, calibration] = confidence;
  bool is_good = (usual.empty() || usual.size() == kMeasures) &&
                 deviations.size() == usual.size() && learning::is_valid(calibration);
  for (const double mean : usual) is_good = is_good && std::isfinite(mean);
  for (const double deviation : deviations) {
    is_good = is_good && std::isfinite(deviation) && deviation > 0;
  }
  return is_good;
}

namespace {

using tree::refuse_model;

void check_stage(const Stage& stage, const std::string& where) {
  if (stage.halvings < 0 || stage.halvings > 4) refuse_model(where + " has no such resolution");
  if (!(stage.range_voxels >= 1 && stage.range_voxels <= 64)) {
    refuse_model(where + " searches too far, or not at all");
  }
  for (const features::SteerableFeature& f : stage.features) {
    if (f.type >= features::SteerableType::kCount || f.level >= features::kSteerableLevels ||
        f.point >= features::kVertexPoints) {
      refuse_model(where + " has a steerable feature out of range");
    }
  }
  tree::check_ensemble(stage.trees, stage.features.size());
}

void check_refine(const RefineConfig& r) {
  bool is_good = r.search_modes >= 1 && r.search_modes <= 3 && r.modes >= 0 && r.iterations >= 1 &&
                 r.iterations <= 20 && !r.lambda.empty() && !r.project.empty() && r.fairing >= 0 &&
                 r.fairing <= 10;
  for (const double v : r.lambda) is_good = is_good && v >= 0 && v <= 100;
  for (const double v : r.project) is_good = is_good && v >= 0 && v <= 1;
  if (!is_good) refuse_model("its rules of refinement are out of range");
}

}  // namespace

int Model::modes() const {
  return std::min(static_cast<int>(shape.modes.size()), refine.modes);
}

void check_model(const Model& model) {
  const Vec3d& mm = model.space.spacing_mm;
  if (!(mm.x >= 0.01 && mm.x <= 1000 && mm.x == mm.y && mm.x == mm.z)) {
    refuse_model("its voxels are no cubes of 0.01 to 1000 mm");
  }
  voxels::check_images(model.space, std::vector<image::ChannelSpec>(1));
  if (model.structure.empty() || model.structure.size() > 200) {
    refuse_model("its structure has no name, or a long one");
  }
  if (model.levels() > mesh::kTemplateLevels) refuse_model("it has too many levels");
  check_refine(model.refine);
  if (!is_valid(model.confidence)) refuse_model("its confidence is damaged");
  shape::check_shape(model.shape);
  for (size_t i = 0; i < model.stages.size(); ++i) {
    check_stage(model.stages[i], "level " + std::to_string(i));
  }
}

void check_model(const Models& models) {
  if (models.structures.empty()) refuse_model("it has no structure");
  std::set<std::string> names;
  for (const Model& model : models.structures) {
    check_model(model);
    if (!names.insert(model.structure).second) refuse_model("two of its structures have one name");
  }
}

}  // namespace larch::boundary
