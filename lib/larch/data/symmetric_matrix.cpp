// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/data/symmetric_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace larch {
namespace {

constexpr int kMaximumSweeps = 30;

void turn(double& a, double& b, double cosine, double sine) {
  const double before = a;
  a = cosine * before - sine * b;
  b = sine * before + cosine * b;
}

}  // namespace

void factorise(std::vector<double>& a, size_t n, double least) {
  // Columns lie in rows meanwhile, so that the innermost loop runs along memory.
  std::vector<double> columns(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) columns[j * n + i] = a[i * n + j];
  }
  for (size_t j = 0; j < n; ++j) {
    double* column = columns.data() + j * n;
    for (size_t k = 0; k < j; ++k) {
      const double* before = columns.data() + k * n;
      for (size_t i = j; i < n; ++i) column[i] -= before[i] * before[j];
    }
    column[j] = std::sqrt(std::max(column[j], least));
    for (size_t i = j + 1; i < n; ++i) column[i] = column[j] > 0 ? column[i] / column[j] : 0;
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) a[i * n + j] = columns[j * n + i];
  }
}

void solve(const std::vector<double>& factor, std::span<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= factor[i * n + k] * b[k];
    b[i] /= factor[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= factor[k * n + i] * b[k];
    b[i] /= factor[i * n + i];
  }
}

Eigen symmetric_eigen(std::vector<double> matrix, size_t n) {
  std::vector<double> vectors(n * n, 0);  // row k: eigenvector k
  for (size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
  const auto at = [&](size_t row, size_t column) -> double& { return matrix[row * n + column]; };
  double trace = 0;
  for (size_t i = 0; i < n; ++i) trace += std::abs(at(i, i));
  for (int sweep = 0; sweep < kMaximumSweeps; ++sweep) {
    double off = 0;
    for (size_t p = 0; p + 1 < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        off = std::max(off, std::abs(at(p, q)));
        if (std::abs(at(p, q)) <= 1e-17 * trace) continue;
        const double half = (at(q, q) - at(p, p)) / (2 * at(p, q));
        const double root = std::sqrt(half * half + 1);
        const double tangent = half < 0 ? 1 / (half - root) : 1 / (half + root);
        const double cosine = 1 / std::sqrt(tangent * tangent + 1), sine = tangent * cosine;
        for (size_t k = 0; k < n; ++k) turn(at(k, p), at(k, q), cosine, sine);
        for (size_t k = 0; k < n; ++k) turn(at(p, k), at(q, k), cosine, sine);
        for (size_t k = 0; k < n; ++k) turn(vectors[p * n + k], vectors[q * n + k], cosine, sine);
      }
    }
    if (off <= 1e-14 * trace) break;
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return at(a, a) > at(b, b); });
  Eigen out;
  for (const size_t k : order) {
    out.values.push_back(at(k, k));
    const auto row = vectors.begin() + static_cast<int64_t>(k * n);
    out.vectors.emplace_back(row, row + static_cast<int64_t>(n));
  }
  return out;
}

}  // namespace larch
