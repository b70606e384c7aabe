// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/team_math.h"
#include "larch/pose/mean_rotation.h"

namespace larch::shape {

constexpr int kMostModes = 30;

/// x = centre + scale R y.
struct Similarity {
  Vec3d centre{};
  Quaternion rotation{};
  double scale = 1;
};

LARCH_HD Vec3d placed(const Similarity& at, const Mat3& turn, const Vec3d& y) {
  return at.centre + turn * y * at.scale;
}

/// The similarity that takes points y nearest to points x (Horn, "Closed-form solution of absolute
/// orientation using unit quaternions", J. Opt. Soc. Am. A 4(4), 1987; the scale is that of least
/// squares of x). `sums`: 17 places that all threads share.
template <class Team>
LARCH_HD Similarity fit_similarity(const Team& team, int count, const Vec3d* y, const Vec3d* x,
                                   double* sums) {
  const double n = count;
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
  const double* s = sums + 6;
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

/// The shape with these coefficients at a vertex, in the frame of the model.
LARCH_HD Vec3d shape_at(const ShapeView& shape, const double* coefficients, int v) {
  Vec3d at = shape.mean[v];
  for (int k = 0; k < shape.modes_count; ++k)
    at += coefficients[k] * shape.modes[k * shape.stride + v];
  return at;
}

/// The arrays of project: points by vertex, and a few shared numbers.
struct ProjectScratch {
  Vec3d* points = nullptr;
  double* sums = nullptr;          ///< 17
  double* coefficients = nullptr;  ///< kMostModes; the result
};

/// The shape of the model nearest to a mesh, in two rounds: a similarity from the shape to x, then
/// the coefficients of what is left, each up to `clamp` deviations. Returns the similarity.
template <class Team>
LARCH_HD Similarity project(const Team& team, const ShapeView& shape, const Vec3d* x,
                            const ProjectScratch& scratch) {
  double* b = scratch.coefficients;
  team.each(shape.modes_count, [&](int k) { b[k] = 0; });
  Similarity at;
  for (int round = 0; round < 2; ++round) {
    team.each(shape.count, [&](int v) { scratch.points[v] = shape_at(shape, b, v); });
    at = fit_similarity(team, shape.count, scratch.points, x, scratch.sums);
    const Mat3 back = rotation_matrix(conjugate(at.rotation));
    team.each(shape.count, [&](int v) {
      scratch.points[v] = back * (x[v] - at.centre) / at.scale - shape.mean[v];
    });
    team.sums(
        shape.modes_count, shape.count,
        [&](int k, int v) { return dot(shape.duals[k * shape.count + v], scratch.points[v]); }, b);
    team.each(shape.modes_count, [&](int k) {
      const double most = shape.clamp * shape.deviations[k];
      b[k] = b[k] > most ? most : b[k] < -most ? -most : b[k];
    });
  }
  return at;
}

}  // namespace larch::shape
