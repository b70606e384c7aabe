// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "larch/core/portable_math.h"
#include "larch/data/vec.h"

namespace larch {

/// w + x i + y j + z k. A rotation is a quaternion of length 1; q and -q are the same rotation, and
/// canonical() gives the one of the two that is stored.
struct Quaternion {
  double w = 1, x = 0, y = 0, z = 0;

  LARCH_HD friend bool operator==(const Quaternion& a, const Quaternion& b) {
    return a.w == b.w && a.x == b.x && a.y == b.y && a.z == b.z;
  }
  LARCH_HD friend bool operator!=(const Quaternion& a, const Quaternion& b) { return !(a == b); }
  /// Hamilton's product: the rotation b, followed by the rotation a.
  LARCH_HD friend Quaternion operator*(const Quaternion& a, const Quaternion& b) {
    return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
            a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
  }
};

LARCH_HD double dot(const Quaternion& a, const Quaternion& b) {
  return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z;
}

/// Returns the inverse of a rotation.
LARCH_HD Quaternion conjugate(const Quaternion& q) {
  return {q.w, -q.x, -q.y, -q.z};
}

/// Of length 1, with w >= 0; where w is 0, the first of x, y, z that is not 0 is positive. The
/// caller checks that the length is finite and not 0.
LARCH_HD Quaternion canonical(const Quaternion& q) {
  const double first = q.w != 0 ? q.w : q.x != 0 ? q.x : q.y != 0 ? q.y : q.z;
  const double length = first < 0 ? -sqrt(dot(q, q)) : sqrt(dot(q, q));
  // Adding 0 makes 0 of -0, so that equal rotations have equal bytes.
  return {q.w / length + 0.0, q.x / length + 0.0, q.y / length + 0.0, q.z / length + 0.0};
}

/// Returns the rotation matrix of a unit quaternion.
LARCH_HD Mat3 rotation_matrix(const Quaternion& q) {
  const double a = q.w, b = q.x, c = q.y, d = q.z;
  return {{{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
           {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
           {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}}};
}

/// v turned by the rotation of a unit quaternion.
LARCH_HD Vec3d rotate(const Quaternion& q, const Vec3d& v) {
  return rotation_matrix(q) * v;
}

/// Returns the unit quaternion of a rotation matrix, with w >= 0. It is computed from its largest
/// component, so that no difference of nearly equal numbers is divided by a small one. The caller
/// checks that the matrix is orthonormal with determinant 1.
LARCH_HD Quaternion quaternion_of(const Mat3& rotation) {
  const auto& m = rotation.m;
  const double squares[4] = {1 + m[0][0] + m[1][1] + m[2][2], 1 + m[0][0] - m[1][1] - m[2][2],
                             1 - m[0][0] + m[1][1] - m[2][2], 1 - m[0][0] - m[1][1] + m[2][2]};
  int largest = 0;
  for (int i = 1; i < 4; ++i)
    if (squares[i] > squares[largest]) largest = i;
  // Products of pairs of components, times four; products[i][i] is their square.
  const double wx = m[2][1] - m[1][2], wy = m[0][2] - m[2][0], wz = m[1][0] - m[0][1];
  const double xy = m[1][0] + m[0][1], xz = m[0][2] + m[2][0], yz = m[2][1] + m[1][2];
  const double products[4][4] = {{squares[0], wx, wy, wz},
                                 {wx, squares[1], xy, xz},
                                 {wy, xy, squares[2], yz},
                                 {wz, xz, yz, squares[3]}};
  const double scale = 2 * sqrt(squares[largest]);
  const double* row = products[largest];
  Quaternion q{row[0] / scale, row[1] / scale, row[2] / scale, row[3] / scale};
  if (q.w < 0) q = {-q.w, -q.x, -q.y, -q.z};
  return q;
}

/// Returns the angle of the rotation that leads from one unit quaternion to another, in radians
/// from 0 to pi: 2 acos(|a . b|), computed so that small angles keep their digits.
LARCH_HD double angle_between(const Quaternion& a, const Quaternion& b) {
  const Quaternion between = conjugate(a) * b;
  return 2 * atan2_of(norm(Vec3d{between.x, between.y, between.z}),
                      between.w < 0 ? -between.w : between.w);
}

/// Returns the rotation vector (axis times angle in radians, of length at most pi) of a unit
/// quaternion, and back.
LARCH_HD Vec3d rotation_vector(const Quaternion& q) {
  const Quaternion unit = canonical(q);
  const Vec3d axis{unit.x, unit.y, unit.z};
  const double sine = norm(axis);
  if (sine == 0) return {0, 0, 0};
  return axis * (2 * atan2_of(sine, unit.w) / sine);
}
LARCH_HD Quaternion from_rotation_vector(const Vec3d& vector) {
  constexpr double kTurnsOfHalf = 0.079577471545947668;  // 1 / (4 pi)
  const double angle = norm(vector);
  // sin(angle / 2) / angle, whose limit at 0 is a half.
  const double share = angle > 0 ? sine_of_turns(angle * kTurnsOfHalf) / angle : 0.5;
  return canonical({cosine_of_turns(angle * kTurnsOfHalf), vector.x * share, vector.y * share,
                    vector.z * share});
}

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

/// Returns the axis of the longest edge, the lowest of several.
LARCH_HD int longest_axis(const Vec3d& edges_mm) {
  const int xy = edges_mm.y > edges_mm.x ? 1 : 0;
  return edges_mm.z > edges_mm[xy] ? 2 : xy;
}

/// Returns the point at `box` (-0.5 and 0.5: the faces) on the line through the centre along one
/// axis of the box, in world coordinates.
LARCH_HD Vec3d axis_end(const Pose& pose, int axis, double box) {
  return world_from_box(pose, {axis == 0 ? box : 0, axis == 1 ? box : 0, axis == 2 ? box : 0});
}

/// Returns a pose that is given in the box frame of `parent` (mm; its size is not scaled by the
/// parent's), in world coordinates: centre c_p + R_p c, rotation q_p q, edges as they are.
/// relative() is its inverse.
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
