// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/data/pose.h"

#include <cmath>
#include <string>

#include "larch/core/error.h"

namespace larch {

bool is_rotation(const Quaternion& q) {
  return std::abs(std::sqrt(dot(q, q)) - 1) <= 1e-6;  // not so for one that is not finite
}

void check_pose(const Pose& pose, const char* what) {
  const Quaternion& q = pose.rotation;
  bool finite =
      std::isfinite(q.w) && std::isfinite(q.x) && std::isfinite(q.y) && std::isfinite(q.z);
  bool positive = true, near = true;
  for (int axis = 0; axis < 3; ++axis) {
    finite = finite && std::isfinite(pose.centre_mm[axis]) && std::isfinite(pose.edges_mm[axis]);
    positive = positive && pose.edges_mm[axis] > 0;
    near =
        near && std::abs(pose.centre_mm[axis]) <= kFarthestMm && pose.edges_mm[axis] <= kFarthestMm;
  }
  const std::string start = std::string(what) + ": ";
  if (!finite) throw InputError(start + "the pose has numbers that are not finite; repair it");
  if (!near) throw InputError(start + "the pose has lengths of more than 1e7 mm; repair it");
  if (!positive) throw InputError(start + "an edge of the box is not longer than 0; repair it");
  if (!is_rotation(q)) {
    throw InputError(start + "the quaternion of the pose is not of length 1; repair it");
  }
}

}  // namespace larch
