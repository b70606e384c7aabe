// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "larch/data/pose.h"

namespace larch::pose {

/// A pose as seen from another one: the centre in the other's frame (mm), the rotation vector of
/// R_other^T R (radians), and ln(edges / edges of the other).
using RelativePose = std::array<double, 9>;

LARCH_HD RelativePose relative_pose(const Pose& parent, const Pose& child) {
  const Vec3d centre = box_mm_from_world(parent, child.centre_mm);
  const Vec3d turn = rotation_vector(conjugate(parent.rotation) * child.rotation);
  RelativePose r{};
  for (int axis = 0; axis < 3; ++axis) {
    r[axis] = centre[axis];
    r[3 + axis] = turn[axis];
    r[6 + axis] = log_of(child.edges_mm[axis] / parent.edges_mm[axis]);
  }
  return r;
}

/// Returns its inverse: the pose that is seen so from `parent`.
LARCH_HD Pose pose_from_relative(const Pose& parent, const RelativePose& r) {
  Pose pose;
  pose.centre_mm = world_from_box_mm(parent, {r[0], r[1], r[2]});
  pose.rotation = canonical(parent.rotation * from_rotation_vector({r[3], r[4], r[5]}));
  for (int axis = 0; axis < 3; ++axis) {
    pose.edges_mm[axis] = parent.edges_mm[axis] * exp_of(r[6 + axis]);
  }
  return pose;
}

/// A Gaussian of relative poses: the transition kernel of the hierarchical detection network
/// (Sofka, Zhang, Zhou, Comaniciu, CVPR 2010), or the errors of a detector, which are the poses
/// that it finds as seen from the true ones.
struct RelativeGaussian {
  RelativePose mean{};
  std::array<double, 81> covariance{};  ///< row-major
  int count = 0;                        ///< of pairs that it was learned from; 0: not learned

  friend bool operator==(const RelativeGaussian&, const RelativeGaussian&) = default;
};

/// The least standard deviations of centre, rotation and scale that are believed: the steps of the
/// detectors.
struct RelativeFloor {
  double centre_mm = 0, rotation = 0, log_scale = 0;
};

/// Returns the mean and covariance of n relative poses: S = (1 - a) S_emp + a diag(S_emp) +
/// diag(floor^2) with a = min(1, 9 / (n - 1)), so that few pairs give no false correlations. None:
/// a Gaussian that was not learned.
RelativeGaussian fit_gaussian(std::span<const RelativePose> poses, const RelativeFloor& floor);

/// The part of a Gaussian that concerns the centre, for evaluation.
struct CentreGaussian {
  Mat3 precision{};        ///< inverse of the covariance, of the parent's frame
  double log_density = 0;  ///< at the mean
  double reach_mm = 0;     ///< centres within Mahalanobis^2 `limit` are no farther from the mean
};
/// `limit`: square of the Mahalanobis distance.
CentreGaussian centre_gaussian(const RelativeGaussian& gaussian, double limit);

/// Square of the Mahalanobis distance of a centre (mm from the mean, in the parent's frame).
LARCH_HD double mahalanobis_square(const CentreGaussian& g, const Vec3d& from_mean_mm) {
  return dot(from_mean_mm, g.precision * from_mean_mm);
}

}  // namespace larch::pose
