// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/data/rotation.h"

#include <cmath>

namespace larch {

Quaternion quaternion_of(const Mat3& rotation) {
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
  const double scale = 2 * std::sqrt(squares[largest]);
  const double* row = products[largest];
  Quaternion q{row[0] / scale, row[1] / scale, row[2] / scale, row[3] / scale};
  if (q.w < 0) q = {-q.w, -q.x, -q.y, -q.z};
  return q;
}

double angle_between(const Quaternion& a, const Quaternion& b) {
  const Quaternion between = conjugate(a) * b;
  return 2 * std::atan2(norm(Vec3d{between.x, between.y, between.z}), std::abs(between.w));
}

Vec3d rotation_vector(const Quaternion& q) {
  const Quaternion unit = canonical(q);
  const Vec3d axis{unit.x, unit.y, unit.z};
  const double sine = norm(axis);
  if (sine == 0) return {0, 0, 0};
  return axis * (2 * std::atan2(sine, unit.w) / sine);
}

Quaternion from_rotation_vector(const Vec3d& vector) {
  const double angle = norm(vector);
  // sin(angle / 2) / angle, whose limit at 0 is a half.
  const double share = angle > 0 ? std::sin(angle / 2) / angle : 0.5;
  return canonical({std::cos(angle / 2), vector.x * share, vector.y * share, vector.z * share});
}

}  // namespace larch
