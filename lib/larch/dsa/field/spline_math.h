// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/field/spline.h"

// A cubic B-spline between its nodes, in whole numbers: each sum of four is rounded once.
namespace larch::dsa {

/// Fraction bits of the weights of four neighbouring nodes, and of coefficients beside those of
/// vectors.
constexpr int kSplineWeightBits = 20, kSplineMoreBits = 8;

LARCH_HD int64_t rounded_shift(int64_t value, int bits) {
  return (value + (int64_t{1} << (bits - 1))) >> bits;
}

/// Returns the sum of four nodes, `stride` apart.
LARCH_HD Vec3l weighted_nodes(const NodeWeights& weights, const Vec3l* first, int64_t stride) {
  Vec3l sum{};
  for (int k = 0; k < 4; ++k) sum += first[k * stride] * static_cast<int64_t>(weights.w[k]);
  for (int c = 0; c < 3; ++c) sum[c] = rounded_shift(sum[c], kSplineWeightBits);
  return sum;
}

/// Returns the spline of a row of pixels at node i along x; `of_frame`: coefficients.
LARCH_HD Vec3l spline_node(const SplineJob& job, const Vec3l* of_frame, int32_t i, int32_t y) {
  const NodeWeights& wy = job.weights[1][y];
  return weighted_nodes(wy, of_frame + static_cast<int64_t>(wy.first) * job.nodes[0] + i,
                        job.nodes[0]);
}

/// Vectors, Q16, from what weighted_nodes makes of a row's nodes.
LARCH_HD Vec3i spline_vector(const Vec3l& sum) {
  Vec3i vector;
  for (int c = 0; c < 3; ++c) {
    vector[c] = static_cast<int32_t>(rounded_shift(sum[c], kSplineMoreBits));
  }
  return vector;
}

/// Returns the Jacobian of x + d(x) by differences to the next pixels; `vectors`: of one frame.
LARCH_HD double jacobian_at(const Vec3i& size, const Vec3i* vectors, int32_t x, int32_t y) {
  const int64_t strides[2] = {1, size.x};
  const int64_t here = y * strides[1] + x;
  Vec3d columns[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int axis = 0; axis < 2; ++axis) {
    if (size[axis] == 1) continue;
    const Vec3i d = vectors[here + strides[axis]] - vectors[here];
    columns[axis] += d.cast<double>() / static_cast<double>(1 << kVectorBits);
  }
  return dot(columns[0], cross(columns[1], columns[2]));
}

/// Returns the least Jacobian of the pixels of a column, whose next pixels exist.
LARCH_HD double least_jacobian_of_column(const Vec3i& size, const Vec3i* vectors, int32_t x) {
  double least = 1e300;
  for (int32_t y = 0; y < (size.y > 1 ? size.y - 1 : 1); ++y) {
    const double jacobian = jacobian_at(size, vectors, x, y);
    least = jacobian < least ? jacobian : least;
  }
  return least;
}

}  // namespace larch::dsa
