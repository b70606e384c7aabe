// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/rotation.h"

namespace larch {

/// The place, the rotation and the size of a structure: an oriented box (the similarity with
/// one scale for each axis of marginal space learning; Zheng, Barbu, Georgescu, Scheuering,
/// Comaniciu, IEEE TMI 27(11), 2008).
///
/// World coordinates are LPS mm. The box frame has its origin at the centre and its axes along the
/// edges, in mm; column c of rotation_matrix(rotation) is the world direction of box axis c. Box
/// coordinates divide that by the edges: the faces of the box lie at -0.5 and 0.5. Distances of
/// orientations are those of quaternions (angle_between), never differences of Euler angles.
struct Pose {
  Vec3d centre_mm{0, 0, 0};
  Quaternion rotation{};    ///< of length 1, canonical(): made so by whoever makes a pose
  Vec3d edges_mm{1, 1, 1};  ///< full lengths of the box along its own axes, positive

  LARCH_HD friend bool operator==(const Pose& a, const Pose& b) {
    return a.centre_mm == b.centre_mm && a.rotation == b.rotation && a.edges_mm == b.edges_mm;
  }
};

/// World position (LPS mm) of a point in the box frame (mm from the centre), and back.
LARCH_HD Vec3d world_from_box_mm(const Pose& pose, const Vec3d& box_mm) {
  return pose.centre_mm + rotate(pose.rotation, box_mm);
}
LARCH_HD Vec3d box_mm_from_world(const Pose& pose, const Vec3d& world_mm) {
  return rotate(conjugate(pose.rotation), world_mm - pose.centre_mm);
}

/// World position (LPS mm) of a point in box coordinates (-0.5 to 0.5 inside), and back.
LARCH_HD Vec3d world_from_box(const Pose& pose, const Vec3d& box) {
  return world_from_box_mm(
      pose, {box.x * pose.edges_mm.x, box.y * pose.edges_mm.y, box.z * pose.edges_mm.z});
}
LARCH_HD Vec3d box_from_world(const Pose& pose, const Vec3d& world_mm) {
  const Vec3d mm = box_mm_from_world(pose, world_mm);
  return {mm.x / pose.edges_mm.x, mm.y / pose.edges_mm.y, mm.z / pose.edges_mm.z};
}

/// Corner 0 to 7 of the box (bit 0, 1, 2: the upper face along x, y, z) in world coordinates.
LARCH_HD Vec3d corner(const Pose& pose, int number) {
  return world_from_box(
      pose, {number & 1 ? 0.5 : -0.5, number & 2 ? 0.5 : -0.5, number & 4 ? 0.5 : -0.5});
}

/// The axis of the longest edge, the lowest of several.
LARCH_HD int longest_axis(const Vec3d& edges_mm) {
  const int xy = edges_mm.y > edges_mm.x ? 1 : 0;
  return edges_mm.z > edges_mm[xy] ? 2 : xy;
}

/// The point at `box` (-0.5 and 0.5: the faces) on the line through the centre along one axis of
/// the box, in world coordinates.
LARCH_HD Vec3d axis_end(const Pose& pose, int axis, double box) {
  return world_from_box(pose, {axis == 0 ? box : 0, axis == 1 ? box : 0, axis == 2 ? box : 0});
}

/// A pose that is given in the box frame of `parent` (mm; its size is not scaled by the parent's),
/// in world coordinates: centre c_p + R_p c, rotation q_p q, edges as they are. relative() is its
/// inverse.
LARCH_HD Pose compose(const Pose& parent, const Pose& child) {
  return {world_from_box_mm(parent, child.centre_mm), canonical(parent.rotation * child.rotation),
          child.edges_mm};
}
LARCH_HD Pose relative(const Pose& parent, const Pose& child) {
  return {box_mm_from_world(parent, child.centre_mm),
          canonical(conjugate(parent.rotation) * child.rotation), child.edges_mm};
}

/// Returns the same box with its axes renamed by a rotation S that permutes them: axis k is the old
/// axis S e_k, and takes its edge along.
LARCH_HD Pose with_axes_renamed(const Pose& pose, const Quaternion& permutation) {
  Pose out{pose.centre_mm, canonical(pose.rotation * permutation), {}};
  const Mat3 axes = rotation_matrix(permutation);
  for (int axis = 0; axis < 3; ++axis) {
    const Vec3d along = axes.column(axis);
    out.edges_mm[axis] = pose.edges_mm[longest_axis({fabs(along.x), fabs(along.y), fabs(along.z)})];
  }
  return out;
}

/// A detected centre farther than this from the true box's is a failure: 10 mm, or half of its
/// smallest edge.
LARCH_HD double failure_distance_mm(const Vec3d& true_edges_mm) {
  double most = 10;
  for (int axis = 0; axis < 3; ++axis) {
    if (true_edges_mm[axis] / 2 < most) most = true_edges_mm[axis] / 2;
  }
  return most;
}

/// Tells whether the quaternion is of length 1 within 1e-6.
bool is_rotation(const Quaternion& q);

/// Throws InputError, whose message starts with `what`, unless all numbers are finite and within
/// kFarthestMm, the edges positive and the quaternion that of a rotation.
void check_pose(const Pose& pose, const char* what);

}  // namespace larch
