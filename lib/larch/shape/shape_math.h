// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/team_math.h"
#include "larch/pose/mean_rotation.h"

namespace larch::shape {

constexpr int kMaximumModes = 30;

/// x = centre + scale R y.
struct Similarity {
  Vec3d centre{};
  Quaternion rotation{};
  double scale = 1;
};

LARCH_HD Vec3d placed(const Similarity& at, const Mat3& turn, const Vec3d& y) {
  return at.centre + turn * y * at.scale;
}

/// Numbers of a fit, which all threads share.
struct ShapeFit {
  double sums[16]{};
  Similarity found;
  double coefficients[kMaximumModes]{};
};

/// fit_similarity from the centroids of y and x and ten sums about them: of y_a x_b by rows, and of
/// the squares of y.
LARCH_HD Similarity similarity_of_sums(const Vec3d& from, const Vec3d& to, const double* s) {
  const double xx = s[0], xy = s[1], xz = s[2], yx = s[3], yy = s[4], yz = s[5], zx = s[6],
               zy = s[7], zz = s[8];
  const pose::RotationSum horn{{{xx + yy + zz, yz - zy, zx - xz, xy - yx},
                                {yz - zy, xx - yy - zz, xy + yx, zx + xz},
                                {zx - xz, xy + yx, yy - xx - zz, yz + zy},
                                {xy - yx, zx + xz, yz + zy, zz - xx - yy}}};
  Similarity out;
  out.rotation = pose::mean_rotation(horn);
  const Mat3 turn = rotation_matrix(out.rotation);
  double along = 0;  // sum of b . R a
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) along += turn.m[b][a] * s[3 * a + b];
  out.scale = s[9] > 0 && along > 0 ? along / s[9] : 1;
  out.centre = to - turn * from * out.scale;
  return out;
}

/// Returns the similarity that takes points y nearest to points x (Horn, "Closed-form solution of
/// absolute orientation using unit quaternions", J. Opt. Soc. Am. A 4(4), 1987; the scale is that
/// of least squares of x).
template <class Team>
LARCH_HD Similarity fit_similarity(const Team& team, int count, const Vec3d* y, const Vec3d* x,
                                   ShapeFit& fit) {
  const double n = count;
  double* sums = fit.sums;
  team.sums(
      6, count, [&](int k, int i) { return k < 3 ? y[i][k] : x[i][k - 3]; }, sums);
  const Vec3d from{sums[0] / n, sums[1] / n, sums[2] / n},
      to{sums[3] / n, sums[4] / n, sums[5] / n};
  team.sums(
      10, count,
      [&](int k, int i) {
        const Vec3d a = y[i] - from, b = x[i] - to;
        return k == 9 ? dot(a, a) : a[k / 3] * b[k % 3];
      },
      sums + 6);
  team.each(1, [&](int) { fit.found = similarity_of_sums(from, to, sums + 6); });
  return fit.found;
}

/// A statistical shape model at one level, on one device. Mode k of vertex v is
/// modes[k * stride + v].
struct ShapeView {
  const Vec3d* mean = nullptr;
  const Vec3d* modes = nullptr;
  const Vec3d* duals = nullptr;  ///< rows of the least-squares inverse of the modes; [k][vertex]
  const double* deviations = nullptr;
  int modes_count = 0, stride = 0, count = 0;
  double clamp = 3;  ///< coefficients reach so many deviations
};

/// Returns the shape with these coefficients at a vertex, in the frame of the model.
LARCH_HD Vec3d shape_at(const ShapeView& shape, const double* coefficients, int v) {
  Vec3d at = shape.mean[v];
  for (int k = 0; k < shape.modes_count; ++k)
    at += coefficients[k] * shape.modes[k * shape.stride + v];
  return at;
}

/// Returns the shape of the model nearest to a mesh, in two rounds: a similarity from the shape to
/// x, then the coefficients of what is left, each up to `clamp` deviations. `points`: scratch by
/// vertex. `fit` gets the coefficients. Returns the similarity.
template <class Team>
LARCH_HD Similarity project(const Team& team, const ShapeView& shape, const Vec3d* x, Vec3d* points,
                            ShapeFit& fit) {
  double* b = fit.coefficients;
  Similarity at = fit_similarity(team, shape.count, shape.mean, x, fit);
  for (int round = 0; round < 2; ++round) {
    if (round > 0) {
      team.each(shape.count, [&](int v) { points[v] = shape_at(shape, b, v); });
      at = fit_similarity(team, shape.count, points, x, fit);
    }
    const Mat3 back = rotation_matrix(conjugate(at.rotation));
    team.each(shape.count,
              [&](int v) { points[v] = back * (x[v] - at.centre) / at.scale - shape.mean[v]; });
    team.sums(
        shape.modes_count, shape.count,
        [&](int k, int v) { return dot(shape.duals[k * shape.count + v], points[v]); }, b);
    team.each(shape.modes_count, [&](int k) {
      const double most = shape.clamp * shape.deviations[k];
      b[k] = b[k] > most ? most : b[k] < -most ? -most : b[k];
    });
  }
  return at;
}

}  // namespace larch::shape
