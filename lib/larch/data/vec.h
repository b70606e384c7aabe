// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace larch
