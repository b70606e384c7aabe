// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/appearance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "larch/core/parallel.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/pose/distance_map.h"

namespace larch::hdn {
namespace {

using pose::RelativePose;

constexpr int kSide = kAppearanceSide;
constexpr double kReach = 1.3;  ///< edges of the grid, in edges of the box
constexpr int kSteps = 6;
constexpr double kLeastSeen = 0.3;       ///< share of the weight that lies in the image
constexpr double kLeastVariance = 0.01;  ///< of an image, whose intensities are integers
constexpr double kVarianceFloor = 0.3;   ///< of a point, where the variance of all points is 1
constexpr int64_t kFewestCases = 10;
constexpr double kMostLeft = 0.95;  ///< of the squared errors, where an appearance pays
constexpr size_t kNoFold = SIZE_MAX;
constexpr size_t kLayer = size_t{kSide} * kSide;

/// The place of a point of the grid, in edges of the box from its centre.
Vec3d box_place(size_t point) {
  const auto p = static_cast<int>(point);
  const auto along = [](int index) { return ((index + 0.5) / kSide - 0.5) * kReach; };
  return {along(p % kSide), along(p / kSide % kSide), along(p / (kSide * kSide))};
}

double mean_edge(const Vec3d& edges) {
  return exp_of((log_of(edges.x) + log_of(edges.y) + log_of(edges.z)) / 3);
}

/// The image at a place, interpolated linearly; none outside of the image.
std::optional<double> value_at(const FinestImage& image, const Vec3d& at_mm) {
  const VolumeView<const int16_t>& voxels = image.voxels;
  Vec3i low;
  Vec3d up;
  for (int axis = 0; axis < 3; ++axis) {
    const double index = at_mm[axis] / image.spacing_mm, last = voxels.size[axis] - 1;
    if (!(index >= -0.5 && index <= last + 0.5)) return {};
    low[axis] = static_cast<int32_t>(std::clamp(index, 0.0, last));
    up[axis] = std::clamp(index - low[axis], 0.0, low[axis] < last ? 1.0 : 0.0);
  }
  if (!image.extent.holds(at_mm)) return {};
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3i bit{corner & 1, corner >> 1 & 1, corner >> 2};
    const double weight =
        (bit.x ? up.x : 1 - up.x) * (bit.y ? up.y : 1 - up.y) * (bit.z ? up.z : 1 - up.z);
    if (weight > 0) sum += weight * voxels(low + bit);
  }
  return sum;
}

/// How an image at a pose compares with the mean appearance.
struct Match {
  double seen = 0;                         ///< share of the weight that lies in the image
  double correlation = 0;                  ///< with these weights
  std::vector<double> matrix{}, wanted{};  ///< of the change of the appearance to the image
};

Match match_at(const Appearance& appearance, const FinestImage& image, const Pose& pose) {
  // Weighted sums of the products of 1, mean, image, and the derivatives of the mean.
  constexpr size_t kFirst = 3;
  const size_t parts = static_cast<size_t>(appearance.parts), numbers = kFirst + parts;
  double sums[kFirst + 9][kFirst + 9] = {}, all = 0;
  const Vec3d& edges = pose.edges_mm;
  for (size_t k = kLayer; k + kLayer < kAppearancePoints; ++k) {
    const double weight = appearance.weight[k];
    if (!(weight > 0)) continue;
    all += weight;
    const Vec3d u = box_place(k);
    const std::optional<double> value = value_at(image, world_from_box(pose, u));
    if (!value) continue;
    const float* mean = appearance.mean.data() + k;
    Vec3d shift, stretch;
    int stride = 1;
    for (int axis = 0; axis < 3; ++axis, stride *= kSide) {
      const double rise = (mean[stride] - mean[-stride]) * (kSide / (2 * kReach));
      shift[axis] = rise / edges[axis];
      stretch[axis] = rise * u[axis];
    }
    const Vec3d turn = cross(Vec3d{u.x * edges.x, u.y * edges.y, u.z * edges.z}, shift);
    const double z[kFirst + 9] = {1,      *mean,  *value, shift.x,   shift.y,   shift.z,
                                  turn.x, turn.y, turn.z, stretch.x, stretch.y, stretch.z};
    for (size_t i = 0; i < numbers; ++i) {
      for (size_t j = 0; j <= i; ++j) sums[i][j] += weight * z[i] * z[j];
    }
  }
  // Brightness and contrast say nothing, so that all is taken from the part perpendicular to both.
  const auto eliminate = [&](size_t p) {
    for (size_t i = p + 1; i < numbers; ++i) {
      for (size_t j = p + 1; j <= i; ++j) sums[i][j] -= sums[i][p] * sums[j][p] / sums[p][p];
    }
  };
  Match match;
  const double seen = sums[0][0];
  if (!(seen >= kLeastSeen * all)) return match;
  eliminate(0);
  const double of_mean = sums[1][1], of_image = sums[2][2], of_both = sums[2][1];
  if (!(of_image > kLeastVariance * seen && of_mean > 0)) return match;
  eliminate(1);
  match.seen = seen / all;
  match.correlation = of_both / std::sqrt(of_mean * of_image);
  const double contrast = std::sqrt(of_mean / of_image) / std::max(match.correlation, 0.1);
  for (size_t i = kFirst; i < numbers; ++i) {
    match.matrix.insert(match.matrix.end(), sums[i] + kFirst, sums[i] + numbers);
    match.wanted.push_back(sums[i][2] * contrast);
  }
  return match;
}

/// A step of Levenberg's: the image is met by the inverse of the change of the appearance.
RelativePose step_of(Match match, double damping) {
  const size_t parts = match.wanted.size();
  for (size_t i = 0; i < parts; ++i) match.matrix[i * (parts + 1)] *= 1 + damping;
  factorise(match.matrix, parts);
  solve(match.matrix, match.wanted);
  RelativePose step{};
  for (size_t i = 0; i < parts; ++i) step[i] = -match.wanted[i];
  return step;
}

/// Tells whether a fit may change a pose of these edges by so much.
bool is_near(const RelativePose& change, const Vec3d& edges_mm) {
  bool is_near = norm(Vec3d{change[0], change[1], change[2]}) <= mean_edge(edges_mm) / 4 &&
                 norm(Vec3d{change[3], change[4], change[5]}) <= 0.44;  // 25 degrees
  for (size_t k = 6; k < 9; ++k) is_near = is_near && std::abs(change[k]) <= 0.3;
  return is_near;
}

/// The change to the pose near the found one at which the image correlates most.
RelativePose best_change(const Appearance& appearance, const FinestImage& image,
                         const Pose& found) {
  RelativePose change{};
  Match here = match_at(appearance, image, found);
  double damping = 1e-3;
  for (int step = 0; step < kSteps && here.seen > 0; ++step) {
    RelativePose next = step_of(here, damping);
    Match there;
    if (is_near(next, found.edges_mm)) {
      const Pose at = pose::pose_from_relative(found, change);
      next = pose::relative_pose(found, pose::pose_from_relative(at, next));
      const bool is_allowed = is_near(next, found.edges_mm);
      if (is_allowed) there = match_at(appearance, image, pose::pose_from_relative(found, next));
    }
    const bool is_better = there.seen > 0 && there.correlation > here.correlation;
    damping = is_better ? std::max(damping * 0.2, 1e-3) : std::max(damping * 10, 0.1);
    if (!is_better) continue;
    change = next;
    here = std::move(there);
  }
  return change;
}

Pose moved(const Pose& pose, const RelativePose& change) {
  return change == RelativePose{} ? pose : pose::pose_from_relative(pose, change);
}

/// Tells of each point whether it lies in the mean shape, or at most `margin` of the mean edge of
/// that outside; none at the border does.
std::vector<bool> points_near(const Volume<float>& distance_mm, double margin) {
  constexpr double kFar = 1e9;
  Vec3d low{kFar, kFar, kFar}, high = low * -1.0;
  for (int64_t i = 0; i < distance_mm.voxels(); ++i) {
    if (!(distance_mm[i] < 0)) continue;
    const Grid& grid = distance_mm.grid();
    const Vec3d at = world_from_index(grid, grid.voxel(i).cast<double>());
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], at[axis] + distance_mm[i]);
      high[axis] = std::max(high[axis], at[axis] - distance_mm[i]);
    }
  }
  const Pose box{(low + high) / 2, {}, high - low};
  std::vector<bool> near;
  for (size_t k = 0; k < kAppearancePoints; ++k) {
    const Vec3d u = box_place(k);
    // Half the box is the radius of the ellipsoid.
    double outside = norm(u) - 0.5;
    if (low.x < high.x) {
      outside =
          pose::sample_distance(distance_mm, world_from_box(box, u)).mm / mean_edge(box.edges_mm);
    }
    const double most = std::max({std::abs(u.x), std::abs(u.y), std::abs(u.z)});
    near.push_back(outside <= margin && most < kReach * (0.5 - 1.0 / kSide));
  }
  return near;
}

/// The mean of cases, each of mean 0 and variance 1, without those of a fold. Points at which cases
/// differ weigh less.
Appearance mean_of(const std::vector<FinestImage>& images, const pose::CorrectionCases& cases,
                   const std::vector<bool>& near, size_t without) {
  std::vector<double> count(kAppearancePoints), sum(count), squares(count);
  double used = 0;
  for (size_t c = 0; c < images.size(); ++c) {
    if (cases.fold_of[c] == without) continue;
    std::vector<std::optional<double>> values;
    double n = 0, mean = 0, square = 0;
    for (size_t k = 0; k < kAppearancePoints; ++k) {
      values.push_back(value_at(images[c], world_from_box(cases.truth[c], box_place(k))));
      if (!values[k]) continue;
      n += 1;
      mean += (*values[k] - mean) / n;
      square += (*values[k] * *values[k] - square) / n;
    }
    const double variance = square - mean * mean;
    if (!(variance > kLeastVariance)) continue;
    used += 1;
    for (size_t k = 0; k < kAppearancePoints; ++k) {
      if (!values[k]) continue;
      const double value = (*values[k] - mean) / std::sqrt(variance);
      count[k] += 1;
      sum[k] += value;
      squares[k] += value * value;
    }
  }
  Appearance out;
  for (size_t k = 0; k < kAppearancePoints; ++k) {
    const double n = std::max(count[k], 1.0), mean = sum[k] / n;
    const double weight = 1 / (std::max(squares[k] / n - mean * mean, 0.0) + kVarianceFloor);
    out.mean.push_back(static_cast<float>(mean));
    out.weight.push_back(near[k] && count[k] > used / 2 ? static_cast<float>(weight) : 0);
  }
  return out;
}

/// What a fit makes of a held-out case.
struct HeldOut {
  RelativePose needed{}, change{}, part{};  ///< part: of the change, as the other folds have it
  size_t fold = 0;
  bool is_near = false;  ///< what is needed is in reach of a fit
};

/// The share of the changes that leaves the least squared errors in all folds but one.
double gain_of(const std::vector<HeldOut>& cases, size_t k, size_t without) {
  double square = 1e-12, product = 0;
  for (const HeldOut& c : cases) {
    if (!c.is_near || c.fold == without) continue;
    square += c.change[k] * c.change[k];
    product += c.change[k] * c.needed[k];
  }
  return std::clamp(product / square, 0.0, 1.0);
}

/// Takes the parts of the changes. Returns the share of the squared errors that is left then, in
/// the mean of the numbers of place and rotation.
double share_left(std::vector<HeldOut>& cases) {
  double share = 0;
  for (size_t k = 0; k < 9; ++k) {
    std::map<size_t, double> gain;
    double before = 1e-12, after = 1e-12;
    for (HeldOut& c : cases) {
      if (gain.count(c.fold) == 0) gain[c.fold] = gain_of(cases, k, c.fold);
      c.part[k] = gain[c.fold] * c.change[k];
      if (!c.is_near) continue;
      before += c.needed[k] * c.needed[k];
      after += (c.needed[k] - c.part[k]) * (c.needed[k] - c.part[k]);
    }
    if (k < 6) share += after / before / 6;
  }
  return share;
}

}  // namespace

Pose refined_pose(const Appearance& appearance, const FinestImage& image, const Pose& found) {
  if (!appearance.exists()) return found;
  RelativePose change = best_change(appearance, image, found);
  for (size_t k = 0; k < 9; ++k) change[k] *= appearance.gains[k];
  return moved(found, change);
}

Appearance learn_appearance(const std::vector<FinestImage>& images,
                            const pose::CorrectionCases& cases,
                            const Volume<float>& mean_distance_mm, std::vector<Pose>& poses,
                            const Context& context) {
  const std::vector<Pose> found = poses;
  const std::set<size_t> folds(cases.fold_of.begin(), cases.fold_of.end());
  std::vector<HeldOut> all(found.size());
  for (size_t c = 0; c < all.size(); ++c) {
    all[c].needed = pose::relative_pose(found[c], cases.truth[c]);
    all[c].fold = cases.fold_of[c];
    all[c].is_near = is_near(all[c].needed, found[c].edges_mm);
  }
  Appearance best;
  const auto near = std::count_if(all.begin(), all.end(), [](auto& c) { return c.is_near; });
  if (near < kFewestCases || folds.size() < 2) return best;
  double least = kMostLeft;
  for (const double margin : {0.0, 0.1}) {
    const std::vector<bool> points = points_near(mean_distance_mm, margin);
    std::map<size_t, Appearance> without;
    for (const size_t fold : folds) without[fold] = mean_of(images, cases, points, fold);
    for (const int32_t parts : {6, 9}) {
      for (auto& [fold, appearance] : without) appearance.parts = parts;
      parallel_for(context.threads, static_cast<int64_t>(all.size()), 1,
                   [&](int64_t begin, int64_t end) {
                     for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                       all[c].change = best_change(without.at(all[c].fold), images[c], found[c]);
                     }
                   });
      const double left = share_left(all);
      if (left >= least) continue;
      least = left;
      best = mean_of(images, cases, points, kNoFold);
      best.parts = parts;
      for (size_t k = 0; k < 9; ++k) best.gains[k] = gain_of(all, k, kNoFold);
      for (size_t c = 0; c < all.size(); ++c) poses[c] = moved(found[c], all[c].part);
    }
  }
  return best;
}

}  // namespace larch::hdn
