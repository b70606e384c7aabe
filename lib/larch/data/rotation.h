// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/mat.h"

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

/// The inverse of a rotation.
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

/// The rotation matrix of a unit quaternion.
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

/// The unit quaternion of a rotation matrix, with w >= 0. It is computed from its largest
/// component, so that no difference of nearly equal numbers is divided by a small one. The caller
/// checks that the matrix is orthonormal with determinant 1.
Quaternion quaternion_of(const Mat3& rotation);

/// The angle of the rotation that leads from one unit quaternion to another, in radians from 0 to
/// pi: 2 acos(|a . b|), computed so that small angles keep their digits.
double angle_between(const Quaternion& a, const Quaternion& b);

/// The rotation vector (axis times angle in radians, of length at most pi) of a unit quaternion,
/// and back.
Vec3d rotation_vector(const Quaternion& q);
Quaternion from_rotation_vector(const Vec3d& vector);

}  // namespace larch
