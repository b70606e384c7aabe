// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace larch::shape {

/// Eigenvalues, descending, and as many eigenvectors of length 1.
struct Eigen {
  std::vector<double> values;
  std::vector<std::vector<double>> vectors;
};

/// Those of a symmetric matrix of n rows, by Jacobi's method: the same on every machine.
Eigen symmetric_eigen(std::vector<double> matrix, size_t n);

}  // namespace larch::shape
