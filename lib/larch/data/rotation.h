// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "larch/core/portable_math.h"
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

/// The angle of the rotation that leads from one unit quaternion to another, in radians from 0 to
/// pi: 2 acos(|a . b|), computed so that small angles keep their digits.
LARCH_HD double angle_between(const Quaternion& a, const Quaternion& b) {
  const Quaternion between = conjugate(a) * b;
  return 2 * atan2_of(norm(Vec3d{between.x, between.y, between.z}),
                      between.w < 0 ? -between.w : between.w);
}

/// The rotation vector (axis times angle in radians, of length at most pi) of a unit quaternion,
/// and back.
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

}  // namespace larch
