// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/vec.h"

namespace larch {

/// A 3x3 matrix of doubles, row-major: m[row][column].
struct Mat3 {
  double m[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

  LARCH_HD Vec3d column(int c) const { return {m[0][c], m[1][c], m[2][c]}; }
  LARCH_HD friend Vec3d operator*(const Mat3& a, const Vec3d& v) {
    return {a.m[0][0] * v.x + a.m[0][1] * v.y + a.m[0][2] * v.z,
            a.m[1][0] * v.x + a.m[1][1] * v.y + a.m[1][2] * v.z,
            a.m[2][0] * v.x + a.m[2][1] * v.y + a.m[2][2] * v.z};
  }
  LARCH_HD friend Mat3 operator*(const Mat3& a, const Mat3& b) {
    Mat3 r;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        r.m[i][j] = a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j] + a.m[i][2] * b.m[2][j];
    return r;
  }
  LARCH_HD friend bool operator==(const Mat3& a, const Mat3& b) {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        if (a.m[i][j] != b.m[i][j]) return false;
    return true;
  }
};

LARCH_HD double determinant(const Mat3& a) {
  return dot(a.column(0), cross(a.column(1), a.column(2)));
}

/// Inverse by cofactors; the caller checks that the determinant is not zero.
LARCH_HD Mat3 inverse(const Mat3& a) {
  const Vec3d c0 = a.column(0), c1 = a.column(1), c2 = a.column(2);
  const double d = determinant(a);
  const Vec3d r0 = cross(c1, c2) / d, r1 = cross(c2, c0) / d, r2 = cross(c0, c1) / d;
  return {{{r0.x, r0.y, r0.z}, {r1.x, r1.y, r1.z}, {r2.x, r2.y, r2.z}}};
}

}  // namespace larch
