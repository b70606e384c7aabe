// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/random_math.h"
#include "larch/data/vec.h"

namespace larch::phantom {

/// Uniform in [-1, 1).
inline double hash_signed(uint64_t seed, uint64_t stream, uint64_t index) {
  return 2 * hash_unit(seed, stream, index) - 1;
}

/// About normal, mean 0, standard deviation 1: the sum of four uniform numbers of 16 bits. Needs
/// no logarithm, so it is the same on every machine.
inline double hash_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t bits = hash64(seed, stream, index);
  double sum = -2 + 4 * 0.5 / 65536;
  for (int k = 0; k < 4; ++k) sum += static_cast<double>(bits >> 16 * k & 0xffff) / 65536;
  return sum * 1.7320508075688772;  // sqrt(12 / 4)
}

/// Returns the index of the draws at a point of a lattice.
inline uint64_t lattice_point(int64_t x, int64_t y, int64_t z) {
  return static_cast<uint64_t>(x) * 0x9e3779b97f4a7c15ULL +
         static_cast<uint64_t>(y) * 0xc2b2ae3d27d4eb4fULL +
         static_cast<uint64_t>(z) * 0x165667b19e3779f9ULL;
}

/// Value noise: random values in [-1, 1) on a lattice with unit cells, smoothly interpolated.
/// Standard deviation about 0.37.
inline double value_noise(uint64_t seed, uint64_t stream, const Vec3d& at) {
  const Vec3d low{std::floor(at.x), std::floor(at.y), std::floor(at.z)};
  double weight[3][2];
  for (int axis = 0; axis < 3; ++axis) {
    const double t = at[axis] - low[axis];
    weight[axis][1] = t * t * (3 - 2 * t);
    weight[axis][0] = 1 - weight[axis][1];
  }
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const int64_t x = static_cast<int64_t>(low.x) + (corner & 1);
    const int64_t y = static_cast<int64_t>(low.y) + (corner >> 1 & 1);
    const int64_t z = static_cast<int64_t>(low.z) + (corner >> 2 & 1);
    sum += weight[0][corner & 1] * weight[1][corner >> 1 & 1] * weight[2][corner >> 2 & 1] *
           hash_signed(seed, stream, lattice_point(x, y, z));
  }
  return sum;
}

/// Returns a cubic B-spline over independent normal numbers at the points of a lattice with unit
/// cells: smooth noise of mean 0 and, over all places, standard deviation 1.
inline double spline_noise(uint64_t seed, uint64_t stream, const Vec3d& at) {
  constexpr double kDeviation = 0.33190;  // sqrt((151 / 315)^3)
  double weight[3][4];
  int64_t low[3];
  for (int axis = 0; axis < 3; ++axis) {
    const double floor = std::floor(at[axis]), t = at[axis] - floor, s = 1 - t;
    low[axis] = static_cast<int64_t>(floor) - 1;
    weight[axis][0] = s * s * s / 6;
    weight[axis][1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    weight[axis][2] = (3 * s * s * s - 6 * s * s + 4) / 6;
    weight[axis][3] = t * t * t / 6;
  }
  double sum = 0;
  for (int k = 0; k < 64; ++k) {
    const int x = k & 3, y = k >> 2 & 3, z = k >> 4;
    sum += weight[0][x] * weight[1][y] * weight[2][z] *
           hash_normal(seed, stream, lattice_point(low[0] + x, low[1] + y, low[2] + z));
  }
  return sum / kDeviation;
}

}  // namespace larch::phantom
