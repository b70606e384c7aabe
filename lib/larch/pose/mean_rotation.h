// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "larch/data/pose.h"

namespace larch::pose {

/// The sum of w q q^T over weighted rotations, for which q and -q are the same (Markley, Cheng,
/// Crassidis, Oshman, "Averaging quaternions", J. Guidance Control Dynamics 30(4), 2007).
struct RotationSum {
  double of[4][4] = {};  ///< rows and columns are w, x, y, z

  LARCH_HD void add(const Quaternion& q, double weight) {
    const double parts[4] = {q.w, q.x, q.y, q.z};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) of[i][j] += weight * (parts[i] * parts[j]);
  }
};

/// Multiplies columns p and q of a matrix by the turn [[cosine, sine], [-sine, cosine]].
template <int p, int q>
LARCH_HD void turn_columns(double (&matrix)[4][4], double cosine, double sine) {
  for (auto& row : matrix) {
    const double a = row[p], b = row[q];
    row[p] = cosine * a - sine * b;
    row[q] = sine * a + cosine * b;
  }
}

/// Turns columns and rows p and q of a symmetric matrix so that its element (p, q) vanishes, and
/// with them the columns of `vectors`.
template <int p, int q>
LARCH_HD void jacobi_turn(double (&matrix)[4][4], double (&vectors)[4][4]) {
  if (matrix[p][q] == 0) return;
  const double half = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q]);
  const double root = sqrt(half * half + 1);
  const double tangent = half < 0 ? 1 / (half - root) : 1 / (half + root);
  const double cosine = 1 / sqrt(tangent * tangent + 1), sine = tangent * cosine;
  turn_columns<p, q>(matrix, cosine, sine);
  turn_columns<p, q>(vectors, cosine, sine);
  for (int k = 0; k < 4; ++k) {
    const double a = matrix[p][k], b = matrix[q][k];
    matrix[p][k] = cosine * a - sine * b;
    matrix[q][k] = sine * a + cosine * b;
  }
}

/// Returns the rotation with the least weighted sum of squared sines of half the angles to those of
/// `sum`: its principal eigenvector, canonical, by eight sweeps of Jacobi's method. The identity
/// where the sum is 0.
LARCH_HD Quaternion mean_rotation(RotationSum sum) {
  double vectors[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  for (int sweep = 0; sweep < 8; ++sweep) {  // p and q are constants: all stays in registers
    jacobi_turn<0, 1>(sum.of, vectors);
    jacobi_turn<0, 2>(sum.of, vectors);
    jacobi_turn<0, 3>(sum.of, vectors);
    jacobi_turn<1, 2>(sum.of, vectors);
    jacobi_turn<1, 3>(sum.of, vectors);
    jacobi_turn<2, 3>(sum.of, vectors);
  }
  int largest = 0;
  for (int i = 1; i < 4; ++i)
    if (sum.of[i][i] > sum.of[largest][largest]) largest = i;
  return canonical(
      {vectors[0][largest], vectors[1][largest], vectors[2][largest], vectors[3][largest]});
}

/// Returns the same for `rotations` (unit quaternions) with as many weights, of which none is
/// negative.
LARCH_HD Quaternion mean_rotation(std::span<const Quaternion> rotations,
                                  std::span<const double> weights) {
  RotationSum sum;
  for (size_t i = 0; i < rotations.size(); ++i) sum.add(rotations[i], weights[i]);
  return mean_rotation(sum);
}

}  // namespace larch::pose
