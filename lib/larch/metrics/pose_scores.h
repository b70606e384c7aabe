// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "larch/data/pose.h"
#include "larch/metrics/scores.h"

namespace larch::metrics {

/// The errors of a detected pose. NaN where nothing was detected, but for the last
/// two, which then are 0 and 1.
struct PoseScores {
  double centre_error_mm;
  /// The axial line of a box leads from face to face through its centre, along the axis a that is
  /// the longest edge of the true box. The greater of the distances of the two ends.
  double line_error_mm;
  double rotation_error_deg;  ///< the angle of the rotation between both, 0 to 180
  double scale_error;         ///< the mean over the axes of |edge / true edge - 1|
  double box_iou;             ///< intersection over union of the boxes
  /// 1 if the centre error is above 10 mm or above half of the smallest true edge, or if nothing
  /// was detected; else 0.
  double failure;
};

/// Compares a detected pose (null: nothing was detected) with the true one. The structure looks the
/// same after each rotation of `symmetries` in its box frame, the identity aside, whose axes lie
/// along those of the box: truth * S with its edges along their new axes is as true. The rotation
/// and the scale are compared with the one of these poses that is turned the least against the
/// detected one, the line with the one whose line is nearest.
PoseScores score_pose(const Pose* detected, const Pose& truth,
                      std::span<const Quaternion> symmetries = {});

/// Volume of the intersection of two boxes over that of their union, 0 to 1: exact but for
/// rounding.
double box_iou(const Pose& a, const Pose& b);

/// The scores by their names.
StructureScores named_scores(const std::string& structure, const PoseScores& scores);

}  // namespace larch::metrics
