// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/appearance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "larch/core/parallel.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/image/preprocess.h"
#include "larch/pose/distance_map.h"
#include "larch/pose/truth.h"

namespace larch::hdn {
namespace {

using pose::RelativePose;

constexpr int kSide = kAppearanceSide;
constexpr double kReach = 1.3;  ///< edges of the grid, in edges of the box
constexpr double kUnit = 1024;  ///< of the mean, where the variance of a case is 1
constexpr int kSteps = 8;
constexpr double kDamping = 0.05;
constexpr double kMinimumGain = 0.05;  ///< share of the squared errors that goes, where a fit pays
constexpr double kMinimumSeen = 0.3;   ///< share of the weight that lies in the image
constexpr int64_t kFewestCases = 10;
constexpr double kMinimumVariance = 0.01;  ///< of an image, whose intensities are integers
constexpr size_t kNoFold = SIZE_MAX;
constexpr size_t kLayer = size_t{kSide} * kSide;

/// Returns the place of a point of the grid, in edges of the box from its centre.
Vec3d box_place(size_t point) {
  const auto p = static_cast<int>(point);
  const auto along = [](int index) { return ((index + 0.5) / kSide - 0.5) * kReach; };
  return {along(p % kSide), along(p / kSide % kSide), along(p / (kSide * kSide))};
}

/// Returns the image at a place, interpolated linearly; NAN outside of the image.
double value_at(const FinestImage& image, const Vec3d& at_mm) {
  const Grid& grid = image.voxels->grid();
  const Vec3d index = at_mm / grid.spacing_mm.x;
  const bool is_inside = image.extent.holds(at_mm) && grid.holds(index);
  return is_inside ? image::value_at(*image.voxels, index) : NAN;
}

/// How an image at a pose compares with the mean appearance.
struct Match {
  double correlation = -2;  ///< with the weights; -2: little is seen
  RelativePose change{};    ///< of the pose, to where the image looks more like the mean
};

Match match_at(const Appearance& appearance, const FinestImage& image, const Pose& pose) {
  // Least squares: the image is a number, a number times the mean, and numbers times what the mean
  // changes by with each part of the pose. Brightness and contrast are the first two.
  constexpr size_t kParts = 9, kNumbers = kParts + 2;
  std::vector<double> matrix(kNumbers * kNumbers), wanted(kNumbers);
  double squares = 0, all = 0;
  for (size_t k = kLayer; k + kLayer < kAppearancePoints; ++k) {
    const double weight = appearance.weight[k];
    if (weight == 0) continue;
    all += weight;
    const Vec3d u = box_place(k);
    const double value = value_at(image, world_from_box(pose, u));
    if (std::isnan(value)) continue;
    const int32_t* mean = appearance.mean.data() + k;
    Vec3d shift, stretch;
    int stride = 1;
    for (int axis = 0; axis < 3; ++axis, stride *= kSide) {
      const double rise = (mean[stride] - mean[-stride]) * (kSide / (2 * kReach * kUnit));
      shift[axis] = rise / pose.edges_mm[axis];
      stretch[axis] = rise * u[axis];
    }
    const Vec3d& e = pose.edges_mm;
    const Vec3d turn = cross(Vec3d{u.x * e.x, u.y * e.y, u.z * e.z}, shift);
    const double z[kNumbers] = {1,      *mean / kUnit, shift.x,   shift.y,   shift.z,  turn.x,
                                turn.y, turn.z,        stretch.x, stretch.y, stretch.z};
    for (size_t i = 0; i < kNumbers; ++i) {
      for (size_t j = 0; j <= i; ++j) matrix[i * kNumbers + j] += weight * z[i] * z[j];
      wanted[i] += weight * z[i] * value;
    }
    squares += weight * value * value;
  }
  const double seen = matrix[0],
               of_mean = matrix[kNumbers + 1] - matrix[kNumbers] * matrix[kNumbers] / seen,
               of_image = squares - wanted[0] * wanted[0] / seen,
               of_both = wanted[1] - wanted[0] * matrix[kNumbers] / seen;
  if (!(seen >= kMinimumSeen * all && of_image > kMinimumVariance * seen && of_mean > 0)) return {};
  Match match{of_both / std::sqrt(of_image * of_mean)};
  for (size_t i = 2; i < kNumbers; ++i) matrix[i * (kNumbers + 1)] *= 1 + kDamping;
  factorise(matrix, kNumbers);
  solve(matrix, wanted);
  if (!(wanted[1] > 0)) return match;
  // The image is met by the inverse of the change of the mean.
  for (size_t i = 0; i < kParts; ++i) match.change[i] = -wanted[2 + i] / wanted[1];
  return match;
}

/// Tells whether a fit may change a pose of these edges by so much.
bool is_near(const RelativePose& change, const Vec3d& edges_mm) {
  bool is_near = norm(Vec3d{change[0], change[1], change[2]}) <= norm(edges_mm) / 7 &&
                 norm(Vec3d{change[3], change[4], change[5]}) <= 0.44;  // 25 degrees
  for (size_t k = 6; k < 9; ++k) is_near = is_near && std::abs(change[k]) <= 0.3;
  return is_near;
}

/// Returns the change to the pose near the found one at which the image correlates most.
RelativePose best_change(const Appearance& appearance, const FinestImage& image,
                         const Pose& found) {
  RelativePose best{}, next{};
  double highest = -1;
  for (int step = 0; step <= kSteps && is_near(next, found.edges_mm); ++step) {
    const Pose at = pose::pose_from_relative(found, next);
    const Match match = match_at(appearance, image, at);
    if (!(match.correlation > highest)) break;
    highest = match.correlation;
    best = next;
    next = pose::relative_pose(found, pose::pose_from_relative(at, match.change));
  }
  return best;
}

Pose moved(const Pose& found, const RelativePose& change, const RelativePose& gains) {
  RelativePose part;
  for (size_t k = 0; k < part.size(); ++k) part[k] = gains[k] * change[k];
  return part == RelativePose{} ? found : pose::pose_from_relative(found, part);
}

/// Returns how far each point of the grid lies outside of the mean shape, in diagonals of its box;
/// points at the border of the grid lie at infinity.
std::vector<double> outside_of(const Volume<float>& distance_mm) {
  const bool is_ball = distance_mm.empty();
  const Pose box =
      is_ball
          ? Pose{{}, {}, {1, 1, 1}}
          : pose::fit_pose(mapped<uint8_t>(distance_mm, [](float d) { return d < 0; }), distance_mm)
                .pose;
  std::vector<double> outside;
  for (size_t k = 0; k < kAppearancePoints; ++k) {
    const Vec3d u = box_place(k);
    const double distance =
        is_ball ? norm(u) - 0.5 : pose::sample_distance(distance_mm, world_from_box(box, u)).mm;
    const double most = std::max({std::abs(u.x), std::abs(u.y), std::abs(u.z)});
    const bool is_at_border = most >= kReach * (0.5 - 1.0 / kSide);
    outside.push_back(is_at_border ? INFINITY : distance / norm(box.edges_mm));
  }
  return outside;
}

/// The image in a box, of mean 0 and variance 1; NAN outside of the image.
std::vector<double> look_at(const FinestImage& image, const Pose& pose) {
  std::vector<double> look;
  double n = 0, sum = 0, squares = 0;
  for (size_t k = 0; k < kAppearancePoints; ++k) {
    const double value = value_at(image, world_from_box(pose, box_place(k)));
    look.push_back(value);
    if (std::isnan(value)) continue;
    n += 1;
    sum += value;
    squares += value * value;
  }
  const double mean = sum / n, variance = squares / n - mean * mean;
  for (double& value : look) {
    value = variance > kMinimumVariance ? (value - mean) / std::sqrt(variance) : NAN;
  }
  return look;
}

/// Returns the mean of all cases but those of a fold. Points at which cases differ weigh less, and
/// points farther outside than `margin` weigh nothing.
Appearance mean_of(const std::vector<std::vector<double>>& looks,
                   const std::vector<double>& outside, double margin,
                   const std::vector<size_t>& fold_of, size_t without) {
  Appearance out;
  for (size_t k = 0; k < kAppearancePoints; ++k) {
    double n = 0, sum = 0, squares = 0, used = 0;
    for (size_t c = 0; c < looks.size(); ++c) {
      if (fold_of[c] == without) continue;
      used += 1;
      if (std::isnan(looks[c][k])) continue;
      n += 1;
      sum += looks[c][k];
      squares += looks[c][k] * looks[c][k];
    }
    const bool is_known = n > used / 2;
    const double mean = is_known ? sum / n : 0, variance = is_known ? squares / n - mean * mean : 0;
    out.mean.push_back(static_cast<int32_t>(std::lround(mean * kUnit)));
    const bool counts = outside[k] <= margin && is_known;
    out.weight.push_back(counts ? static_cast<int32_t>(std::lround(1000 / (variance + 0.3))) : 0);
  }
  return out;
}

}  // namespace

Pose refined_pose(const Appearance& appearance, const FinestImage& image, const Pose& found) {
  if (!appearance.exists()) return found;
  return moved(found, best_change(appearance, image, found), appearance.gains);
}

Appearance learn_appearance(const std::vector<FinestImage>& images,
                            const pose::CorrectionCases& cases,
                            const Volume<float>& mean_distance_mm, std::vector<Pose>& poses,
                            const Context& context) {
  const std::set<size_t> folds(cases.fold_of.begin(), cases.fold_of.end());
  const auto count = static_cast<int64_t>(images.size());
  if (count < kFewestCases || folds.size() < 2) return {};
  std::vector<std::vector<double>> looks(images.size());
  for (size_t c = 0; c < looks.size(); ++c) looks[c] = look_at(images[c], cases.truth[c]);
  const std::vector<double> outside = outside_of(mean_distance_mm);
  Appearance learned;
  std::vector<RelativePose> changes(images.size()), best(images.size());
  double least = -6 * kMinimumGain;
  for (const double margin : {0.0, 0.05}) {
    std::map<size_t, Appearance> without;
    for (const size_t fold : folds) {
      without[fold] = mean_of(looks, outside, margin, cases.fold_of, fold);
    }
    parallel_for_each(context.threads, count, 1, [&](size_t c) {
      changes[c] = best_change(without.at(cases.fold_of[c]), images[c], poses[c]);
    });
    RelativePose squares{}, products{}, errors{}, gains{};
    for (size_t c = 0; c < changes.size(); ++c) {
      const RelativePose needed = pose::relative_pose(poses[c], cases.truth[c]);
      for (size_t k = 0; k < 9 && is_near(needed, poses[c].edges_mm); ++k) {
        squares[k] += changes[c][k] * changes[c][k];
        products[k] += changes[c][k] * needed[k];
        errors[k] += needed[k] * needed[k];
      }
    }
    double left = 0;  // of the squared errors of centre and rotation
    for (size_t k = 0; k < 9; ++k) {
      const double gain = std::clamp(products[k] / std::max(squares[k], 1e-12), 0.0, 1.0);
      gains[k] = gain;
      if (k < 6) left -= gain * (2 * products[k] - gain * squares[k]) / std::max(errors[k], 1e-12);
    }
    if (left >= least) continue;
    least = left;
    learned = mean_of(looks, outside, margin, cases.fold_of, kNoFold);
    learned.gains = gains;
    best = changes;
  }
  for (size_t c = 0; c < poses.size(); ++c) poses[c] = moved(poses[c], best[c], learned.gains);
  return learned;
}

}  // namespace larch::hdn
