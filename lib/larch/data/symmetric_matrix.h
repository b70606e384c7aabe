// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

// Symmetric matrices of n rows, row by row. All results are the same on every machine.
namespace larch {

/// Replaces the lower triangle of a positive definite matrix by its Cholesky factor; pivots below
/// `least` count as that. With a least pivot of 0 the matrix may be semidefinite: a column without
/// a pivot becomes 0.
void factorise(std::vector<double>& matrix, size_t n, double least = 1e-12);

/// Solves a x = b in place, where `factor` is that of a.
void solve(const std::vector<double>& factor, std::span<double> b);

/// Eigenvalues, descending, and as many eigenvectors of length 1.
struct Eigen {
  std::vector<double> values;
  std::vector<std::vector<double>> vectors;
};
/// Returns those of a symmetric matrix, by Jacobi's method.
Eigen symmetric_eigen(std::vector<double> matrix, size_t n);

}  // namespace larch
