// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/pose.h"
#include "larch/pose/mean_rotation.h"

// From the candidates of a stage to one pose, and to the places around which finer stages search:
// the mode of the candidates and the mean of those near it, again without them for the next.
namespace larch::pose {

/// A pose and how sure the last detector was.
struct Candidate {
  Pose pose;
  float probability = 0;
  float score = 0;  ///< that candidates are ordered by: the probability, or with a prior
};

constexpr int kMaximumCandidates = 512;  ///< of a structure, kept by a stage
constexpr int kMaximumClusters = 8;

/// The mean of candidates that agree.
struct Cluster {
  Pose pose;
  double confidence = 0;                 ///< mean probability of the members
  double weight = 0;                     ///< their sum
  double spread_mm = 0, spread_rad = 0;  ///< root of the weighted mean square distance
  int32_t members = 0;
};

/// A distance of two poses that still counts as near.
struct Nearness {
  double radius_mm = 1;
  double cosine = 0;  ///< of half the angle: |a . b| of near rotations is at least so much
};
/// The rule by which candidates agree. With mean_of_first > 0 the first cluster is the plain mean
/// of so many candidates, as far as they are near the mode by `mean`.
struct ClusterRule {
  Nearness agree;
  int32_t mean_of_first = 0;
  Nearness mean{};
};

LARCH_HD bool is_near(const Pose& a, const Pose& b, const Nearness& limit) {
  const Vec3d d = a.centre_mm - b.centre_mm;
  if (dot(d, d) > limit.radius_mm * limit.radius_mm) return false;
  const double cosine = dot(a.rotation, b.rotation);
  return cosine >= limit.cosine || -cosine >= limit.cosine;
}

/// Returns the sum of the probabilities of the candidates that are left and agree with candidate i.
LARCH_HD double density(const Candidate* candidates, const uint8_t* taken, int32_t count,
                        const ClusterRule& rule, int32_t i) {
  double sum = 0;
  for (int32_t j = 0; j < count; ++j) {
    if (taken[j] == 0 && is_near(candidates[i].pose, candidates[j].pose, rule.agree)) {
      sum += static_cast<double>(candidates[j].probability);
    }
  }
  return sum;
}

/// Tells whether a cluster is a plain mean, in which all members weigh the same.
LARCH_HD bool is_plain(const ClusterRule& rule, int32_t cluster) {
  return rule.mean_of_first > 0 && cluster == 0;
}
/// Tells whether candidate i, which is in no cluster yet, joins the one around candidate `mode`.
LARCH_HD bool joins(const Candidate* candidates, const uint8_t* taken, const ClusterRule& rule,
                    int32_t cluster, int32_t mode, int32_t i) {
  const bool plain = is_plain(rule, cluster);
  if (taken[i] != 0 || (plain && i >= rule.mean_of_first && i != mode)) return false;
  return is_near(candidates[mode].pose, candidates[i].pose, plain ? rule.mean : rule.agree);
}

constexpr int kClusterSums = 19;

/// Returns the number k of the sums over the members (those of `mark`) that a cluster is made of: 0
/// the weights, 1 the count, 2 the probabilities; each times the weight of the member, 3 to 5 the
/// centre, 6 to 8 the logarithms of the edges, 9 to 18 the products of two components of the
/// quaternion. Weights are probabilities, or 1 if `plain`.
LARCH_HD double cluster_sum(const Candidate* candidates, const uint8_t* taken, uint8_t mark,
                            int32_t count, bool plain, int k) {
  constexpr double kMinimum = 1e-9;
  constexpr int kRow[10] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3},
                kColumn[10] = {0, 1, 2, 3, 1, 2, 3, 2, 3, 3};
  double sum = 0;
  for (int32_t j = 0; j < count; ++j) {
    if (taken[j] != mark) continue;
    const Candidate& c = candidates[j];
    const auto p = static_cast<double>(c.probability);
    const double w = plain ? 1 : p > kMinimum ? p : kMinimum;
    const Quaternion& q = c.pose.rotation;
    const double parts[4] = {q.w, q.x, q.y, q.z};
    sum += k == 0   ? w
           : k == 1 ? 1
           : k == 2 ? p
           : k < 6  ? w * c.pose.centre_mm[k - 3]
           : k < 9  ? w * log_of(c.pose.edges_mm[k - 6])
                    : w * (parts[kRow[k - 9]] * parts[kColumn[k - 9]]);
  }
  return sum;
}

/// Returns the cluster from its sums, without the spreads.
LARCH_HD Cluster cluster_of(const double* sums) {
  Cluster cluster;
  RotationSum turns;
  for (int row = 0, k = 9; row < 4; ++row)
    for (int column = row; column < 4; ++column, ++k) {
      turns.of[row][column] = turns.of[column][row] = sums[k];
    }
  cluster.pose.rotation = mean_rotation(turns);
  for (int axis = 0; axis < 3; ++axis) {
    cluster.pose.centre_mm[axis] = sums[3 + axis] / sums[0];
    cluster.pose.edges_mm[axis] = exp_of(sums[6 + axis] / sums[0]);
  }
  cluster.confidence = sums[2] / sums[1];
  cluster.weight = sums[2];
  cluster.members = static_cast<int32_t>(sums[1]);
  return cluster;
}

/// The spreads of the members about the mean.
LARCH_HD void measure_spread(const Candidate* candidates, const uint8_t* taken, uint8_t mark,
                             int32_t count, Cluster& cluster) {
  double mm = 0, square = 0;
  for (int32_t j = 0; j < count; ++j) {
    if (taken[j] != mark) continue;
    const Vec3d d = candidates[j].pose.centre_mm - cluster.pose.centre_mm;
    const double angle = angle_between(candidates[j].pose.rotation, cluster.pose.rotation);
    mm += dot(d, d);
    square += angle * angle;
  }
  cluster.spread_mm = sqrt(mm / cluster.members);
  cluster.spread_rad = sqrt(square / cluster.members);
}

}  // namespace larch::pose
