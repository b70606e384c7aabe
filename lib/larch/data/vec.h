// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "larch/core/host_device.h"

namespace larch {

/// No place in the world lies farther from its origin along an axis, in images, meshes and models.
constexpr double kFarthestMm = 1e7;

/// Three components in x, y, z order; x is the fastest axis of a volume.
template <class T>
struct Vec3 {
  T x{}, y{}, z{};

  LARCH_HD T& operator[](int axis) { return axis == 0 ? x : axis == 1 ? y : z; }
  LARCH_HD const T& operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
  template <class U>
  LARCH_HD Vec3<U> cast() const {
    return {static_cast<U>(x), static_cast<U>(y), static_cast<U>(z)};
  }
  LARCH_HD friend bool operator==(const Vec3& a, const Vec3& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
  }
  LARCH_HD friend bool operator!=(const Vec3& a, const Vec3& b) { return !(a == b); }
  LARCH_HD friend Vec3 operator+(const Vec3& a, const Vec3& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
  }
  LARCH_HD friend Vec3 operator-(const Vec3& a, const Vec3& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
  }
  LARCH_HD friend Vec3 operator*(const Vec3& a, T s) { return {a.x * s, a.y * s, a.z * s}; }
  LARCH_HD friend Vec3 operator*(T s, const Vec3& a) { return a * s; }
  LARCH_HD friend Vec3 operator/(const Vec3& a, T s) { return {a.x / s, a.y / s, a.z / s}; }
  LARCH_HD Vec3& operator+=(const Vec3& b) { return *this = *this + b; }
  LARCH_HD Vec3& operator-=(const Vec3& b) { return *this = *this - b; }
};

using Vec3i = Vec3<int32_t>;
using Vec3l = Vec3<int64_t>;
using Vec3f = Vec3<float>;
using Vec3d = Vec3<double>;

template <class T>
LARCH_HD T dot(const Vec3<T>& a, const Vec3<T>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
LARCH_HD Vec3<T> cross(const Vec3<T>& a, const Vec3<T>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
LARCH_HD double norm(const Vec3d& a) {
  return sqrt(dot(a, a));
}
LARCH_HD float norm(const Vec3f& a) {
  return sqrtf(dot(a, a));
}

/// Returns the voxel that lies at place i of a volume in memory.
template <class Index>
LARCH_HD Vec3i voxel_of(Index i, const Vec3i& size) {
  const Index row = i / size.x;
  return {static_cast<int32_t>(i % size.x), static_cast<int32_t>(row % size.y),
          static_cast<int32_t>(row / size.y)};
}

/// Returns along each axis how many parts of a size cover a whole.
inline Vec3i parts_in(const Vec3i& whole, const Vec3i& part) {
  const Vec3i last = whole + part - Vec3i{1, 1, 1};
  return {last.x / part.x, last.y / part.y, last.z / part.z};
}

/// Widens a box to hold a place.
template <class T>
void widen(Vec3<T>& low, Vec3<T>& high, const Vec3<T>& at) {
  low = {std::min(low.x, at.x), std::min(low.y, at.y), std::min(low.z, at.z)};
  high = {std::max(high.x, at.x), std::max(high.y, at.y), std::max(high.z, at.z)};
}

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
