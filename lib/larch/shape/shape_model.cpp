// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/shape/shape_model.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/shape/correspondence.h"

namespace larch::shape {
namespace {

using Points = std::vector<Vec3d>;

constexpr int kRounds = 5;  ///< of mean and alignment; more change nothing
constexpr size_t kMaximumLeftOut = 60;
constexpr uint64_t kDrawn = 100, kStream = 0x73686170;  ///< shapes for the specificity

double size_of(const Points& points, const Vec3d& centre) {
  double sum = 0;
  for (const Vec3d& p : points) sum += dot(p - centre, p - centre);
  return std::sqrt(sum);
}
Vec3d centroid_of(const Points& points) {
  Vec3d sum{};
  for (const Vec3d& p : points) sum += p;
  return sum / static_cast<double>(points.size());
}
Points mean_of(const std::vector<Points>& all) {
  Points mean(all[0].size());
  for (const Points& points : all)
    for (size_t v = 0; v < mean.size(); ++v) mean[v] += points[v];
  for (Vec3d& p : mean) p = p / static_cast<double>(all.size());
  return mean;
}
void resize(Points& points, double size) {
  const Vec3d centre = centroid_of(points);
  const double factor = size / size_of(points, centre);
  for (Vec3d& p : points) p = (p - centre) * factor;
}
double inner(const Points& a, const Points& b) {
  double sum = 0;
  for (size_t v = 0; v < a.size(); ++v) sum += dot(a[v], b[v]);
  return sum;
}
double mean_distance(const Points& a, const Points& b) {
  double sum = 0;
  for (size_t v = 0; v < a.size(); ++v) sum += norm(a[v] - b[v]);
  return sum / static_cast<double>(a.size());
}

/// Brings `points` onto `to`; returns the rotation.
Quaternion align(const Points& to, Points& points) {
  ShapeFit fit;
  const Similarity at =
      fit_similarity(OneThread{}, static_cast<int>(to.size()), points.data(), to.data(), fit);
  const Mat3 turn = rotation_matrix(at.rotation);
  for (Vec3d& p : points) p = placed(at, turn, p);
  return at.rotation;
}

/// The cases, in the frames of their boxes, aligned with their mean, which is returned.
Points align_all(std::vector<Points>& cases) {
  double log_size = 0;
  for (Points& points : cases) {
    log_size += log_of(size_of(points, centroid_of(points))) / static_cast<double>(cases.size());
  }
  const double size = exp_of(log_size);
  const std::vector<Points> start = cases;
  Points mean = cases[0];
  resize(mean, size);
  for (int round = 0; round < kRounds; ++round) {
    pose::RotationSum turns;
    for (size_t i = 0; i < cases.size(); ++i) {
      cases[i] = start[i];
      turns.add(align(mean, cases[i]), 1);
    }
    const Mat3 back = rotation_matrix(conjugate(pose::mean_rotation(turns)));
    mean = mean_of(cases);
    for (Vec3d& p : mean) p = back * p;
    resize(mean, size);
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i] = start[i];
    align(mean, cases[i]);
  }
  return mean;
}

/// Returns the Gram matrix of residuals.
std::vector<double> gram_of(const std::vector<Points>& residuals, const Context& context) {
  const size_t n = residuals.size();
  std::vector<double> gram(n * n);
  parallel_for(context.threads, static_cast<int64_t>(n), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      for (size_t j = 0; j < n; ++j) gram[i * n + j] = inner(residuals[i], residuals[j]);
  });
  return gram;
}

/// Returns the mean squared distance per vertex of a case from the span of the first modes of all
/// others: from the Gram matrix alone, without one row and column.
double left_out_square(const std::vector<double>& gram, size_t n, size_t out, size_t vertices) {
  std::vector<double> rest;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      if (i != out && j != out) rest.push_back(gram[i * n + j]);
  const Eigen eigen = symmetric_eigen(rest, n - 1);
  double square = gram[out * n + out];
  for (size_t k = 0; k < std::min<size_t>(kMaximumModes, n - 2); ++k) {
    if (eigen.values[k] <= 1e-9 * eigen.values[0]) break;
    double along = 0;
    for (size_t i = 0, row = 0; i < n; ++i) {
      if (i != out) along += eigen.vectors[k][row++] * gram[out * n + i];
    }
    square -= along * along / eigen.values[k];
  }
  return std::max(square, 0.0) / static_cast<double>(vertices);
}

void measure_quality(const std::vector<Points>& aligned, const std::vector<double>& gram,
                     const Eigen& eigen, const Context& context, ShapeModel& model) {
  const size_t n = aligned.size();
  ShapeQuality& quality = model.quality;
  double all = 0, first = 0;
  for (const double value : eigen.values) all += std::max(value, 0.0);
  for (const double value : eigen.values) {
    if (first >= 0.95 * all) break;
    first += value;
    ++quality.modes_95;
  }
  double kept = 0;
  for (size_t k = 0; k < model.modes.size(); ++k) kept += eigen.values[k];
  quality.share = all > 0 ? kept / all : 1;
  const size_t left_out = std::min(n, kMaximumLeftOut);
  std::vector<double> apart(left_out), specific(kDrawn);
  parallel_for_each(context.threads, static_cast<int64_t>(left_out), 1, [&](size_t i) {
    apart[i] = std::sqrt(left_out_square(gram, n, i * n / left_out, model.mean_mm.size()));
  });
  for (const double d : apart) quality.generalisation_mm += d / static_cast<double>(left_out);
  parallel_for(context.threads, kDrawn, 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i) {
      Points drawn = model.mean_mm;
      for (size_t k = 0; k < model.modes.size(); ++k) {
        const double b = std::sqrt(model.variances_mm2[k]) * draw_normal(i, kStream, k);
        for (size_t v = 0; v < drawn.size(); ++v) drawn[v] += b * model.modes[k][v];
      }
      double least = 1e300;
      for (const Points& one : aligned) least = std::min(least, mean_distance(drawn, one));
      specific[i] = least;
    }
  });
  for (const double d : specific) quality.specificity_mm += d / kDrawn;
}

void add_modes(const std::vector<Points>& aligned, const Context& context, ShapeModel& model) {
  const size_t n = aligned.size();
  const Points centre = mean_of(aligned);
  std::vector<Points> residuals = aligned;
  for (Points& one : residuals)
    for (size_t v = 0; v < one.size(); ++v) one[v] -= centre[v];
  const std::vector<double> gram = gram_of(residuals, context);
  const Eigen eigen = symmetric_eigen(gram, n);
  for (size_t k = 0; k < std::min<size_t>(kMaximumModes, n - 1); ++k) {
    if (eigen.values[k] <= 1e-9 * eigen.values[0]) break;
    Points mode(centre.size());
    for (size_t i = 0; i < n; ++i)
      for (size_t v = 0; v < mode.size(); ++v) mode[v] += eigen.vectors[k][i] * residuals[i][v];
    const double length = std::sqrt(inner(mode, mode));
    for (Vec3d& p : mode) p = p / length;
    model.modes.push_back(std::move(mode));
    model.variances_mm2.push_back(eigen.values[k] / static_cast<double>(n - 1));
  }
  measure_quality(aligned, gram, eigen, context, model);
}

}  // namespace

ShapeModel make_shape_model(std::span<const std::vector<Vec3d>> cases_mm,
                            std::span<const Pose> poses, const Context& context) {
  std::vector<Points> cases(cases_mm.begin(), cases_mm.end());
  for (size_t i = 0; i < cases.size(); ++i)
    for (Vec3d& p : cases[i]) p = box_mm_from_world(poses[i], p);
  ShapeModel model;
  model.mean_mm = align_all(cases);
  // The box of the mean is smaller than the mean box of the cases, so that it is placed too large:
  // from there the boundary of thin ends is found, which a mean of the right size does not reach.
  const Pose box = box_of_points(model.mean_mm);
  model.edges_mm = box.edges_mm;
  for (Points& points : cases)
    for (Vec3d& p : points) p -= box.centre_mm;
  for (Vec3d& p : model.mean_mm) p -= box.centre_mm;
  model.quality.cases = static_cast<int>(cases.size());
  if (cases.size() >= kMinimumCases) add_modes(cases, context, model);
  return model;
}

FlatModes flat_modes(const ShapeModel& model, int modes) {
  FlatModes flat;
  for (size_t k = 0; k < static_cast<size_t>(modes); ++k) {
    flat.modes.insert(flat.modes.end(), model.modes[k].begin(), model.modes[k].end());
    flat.deviations.push_back(std::sqrt(model.variances_mm2[k]));
  }
  return flat;
}

std::vector<Vec3d> duals_of(const ShapeModel& model, int modes, int level) {
  const auto n = static_cast<size_t>(modes);
  const auto count = static_cast<size_t>(mesh::kTemplateVertices[level]);
  std::vector<double> gram(n * n, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j)
      for (size_t v = 0; v < count; ++v)
        gram[i * n + j] += dot(model.modes[i][v], model.modes[j][v]);
  factorise(gram, n);
  std::vector<Vec3d> duals(n * count);
  std::vector<double> column(n);
  for (size_t v = 0; v < count; ++v) {
    for (int axis = 0; axis < 3; ++axis) {
      for (size_t k = 0; k < n; ++k) column[k] = model.modes[k][v][axis];
      solve(gram, column);
      for (size_t k = 0; k < n; ++k) duals[k * count + v][axis] = column[k];
    }
  }
  return duals;
}

void check_shape(const ShapeModel& model) {
  const auto is_near = [](const Points& points) {
    return points.size() == static_cast<size_t>(mesh::kMaximumTemplateVertices) &&
           std::all_of(points.begin(), points.end(), [](const Vec3d& p) {
             return std::abs(p.x) <= kFarthestMm && std::abs(p.y) <= kFarthestMm &&
                    std::abs(p.z) <= kFarthestMm;
           });
  };
  check_pose({{}, {}, model.edges_mm}, "the mean shape");
  bool is_good = is_near(model.mean_mm) && model.modes.size() <= kMaximumModes &&
                 model.modes.size() == model.variances_mm2.size();
  for (const Points& mode : model.modes) is_good = is_good && is_near(mode);
  for (const double variance : model.variances_mm2) {
    is_good = is_good && variance > 0 && variance <= kFarthestMm * kFarthestMm;
  }
  if (!is_good) throw InputError("the shape model is damaged");
}

Mat3 turn_of(const Pose& pose, const Vec3d& mean_edges_mm) {
  Mat3 turn = rotation_matrix(pose.rotation);
  for (auto& row : turn.m)
    for (int axis = 0; axis < 3; ++axis) row[axis] *= pose.edges_mm[axis] / mean_edges_mm[axis];
  return turn;
}

std::vector<Vec3d> placed_mean(const ShapeModel& model, const Pose& pose, int count) {
  const Mat3 turn = turn_of(pose, model.edges_mm);
  std::vector<Vec3d> placed;
  placed.reserve(static_cast<size_t>(count));
  for (int v = 0; v < count; ++v) {
    placed.push_back(pose.centre_mm + turn * model.mean_mm[static_cast<size_t>(v)]);
  }
  return placed;
}

}  // namespace larch::shape
