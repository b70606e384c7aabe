// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/core/team_math.h"
#include "larch/mesh/sphere_template.h"

namespace larch::mesh {
namespace {

const std::vector<Ring>& rings_of(int level) {
  return sphere_template().levels[static_cast<size_t>(level)].rings;
}

std::vector<Vec3d> unit_of(int level) {
  const std::vector<Vec3d>& unit = sphere_template().unit;
  return {unit.begin(), unit.begin() + kTemplateVertices[level]};
}

double mean_radius(const std::vector<Vec3d>& places) {
  double sum = 0;
  for (const Vec3d& at : places) sum += norm(at);
  return sum / static_cast<double>(places.size());
}

std::vector<double> smoothed(int level, double lambda, const std::vector<double>& weights,
                             const std::vector<double>& wanted) {
  const size_t n = wanted.size();
  std::vector<double> x(n), residual(n), direction(n), product(n), inverse(n);
  smooth_displacements(OneThread{}, rings_of(level).data(), static_cast<int>(n), lambda,
                       weights.data(), wanted.data(), x.data(),
                       {residual.data(), direction.data(), product.data(), inverse.data()});
  return x;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t v = 0; v < a.size(); ++v) most = std::max(most, std::abs(a[v] - b[v]));
  return most;
}

/// Numbers in [low, high), by vertex.
std::vector<double> drawn(size_t count, uint64_t stream, double low, double high) {
  std::vector<double> numbers;
  for (size_t v = 0; v < count; ++v) {
    numbers.push_back(low + (high - low) * hash_unit(1, stream, v));
  }
  return numbers;
}

/// The solution of a x = b, by Gaussian elimination with the largest pivot.
std::vector<double> dense_solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      if (factor == 0) continue;
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

TEST_CASE("smooth displacements are those of a dense solver") {
  const double lambda = GENERATE(0.0, 0.5, 2.0, 10.0);
  CAPTURE(lambda);
  const std::vector<Ring>& rings = rings_of(0);
  const size_t n = rings.size();
  const std::vector<double> weights = drawn(n, 4, 0.01, 1), wanted = drawn(n, 5, -4, 4);
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n, 0));
  std::vector<double> right(n);
  for (size_t v = 0; v < n; ++v) {
    const double valence = rings[v].count;
    matrix[v][v] = valence * (weights[v] + lambda);
    right[v] = valence * weights[v] * wanted[v];
    for (int i = 0; i < rings[v].count; ++i) matrix[v][rings[v].neighbours[i]] -= lambda;
  }
  const std::vector<double> expected = dense_solve(matrix, right);
  CHECK(largest_difference(smoothed(0, lambda, weights, wanted), expected) < 1e-4);
  CHECK((largest_difference(expected, wanted) > 1) == (lambda > 0));
}

TEST_CASE("fairing takes the noise off a sphere and hardly shrinks it") {
  const int level = GENERATE(0, 1, 2);
  const std::vector<Vec3d> unit = unit_of(level);
  const size_t n = unit.size();
  std::vector<Vec3d> start(n), part(n);
  const auto faired = [&](std::vector<Vec3d> x) {
    implicit_step(OneThread{}, rings_of(level).data(), static_cast<int>(n), 2, 0.5, x.data(),
                  start.data(), part.data());
    return x;
  };
  const double radius = mean_radius(faired(unit));
  CAPTURE(level, radius);
  CHECK(radius == Approx(1).margin(0.004));

  std::vector<Vec3d> noisy = unit;
  const std::vector<double> noise = drawn(n, 6, -0.02, 0.02);
  for (size_t v = 0; v < n; ++v) noisy[v] = unit[v] * (1 + noise[v]);
  const auto roughness = [&](const std::vector<Vec3d>& x) {
    double sum = 0;
    for (size_t v = 0; v < n; ++v) sum += std::abs(norm(x[v]) - mean_radius(x));
    return sum / static_cast<double>(n);
  };
  CHECK(roughness(faired(noisy)) < 0.7 * roughness(noisy));
}

TEST_CASE("an implicit step solves its equation") {
  const int order = GENERATE(1, 2);
  const std::vector<Ring>& rings = rings_of(0);
  const size_t n = rings.size();
  std::vector<Vec3d> wanted;
  for (size_t v = 0; v < n; ++v)
    wanted.push_back({hash_unit(2, 1, v), hash_unit(2, 2, v), hash_unit(2, 3, v)});
  std::vector<Vec3d> x = wanted, start(n), part(n), twice(n);
  implicit_step(OneThread{}, rings.data(), static_cast<int>(n), order, 0.5, x.data(), start.data(),
                part.data());
  for (size_t v = 0; v < n; ++v) part[v] = laplacian(rings[v], x.data(), static_cast<int>(v));
  for (size_t v = 0; v < n; ++v) {
    twice[v] = order == 1 ? part[v] : laplacian(rings[v], part.data(), static_cast<int>(v));
  }
  for (size_t v = 0; v < n; ++v) REQUIRE(norm(x[v] + 0.5 * twice[v] - wanted[v]) < 1e-6);
}

TEST_CASE("normals of a sphere point outwards") {
  const std::vector<Vec3d> unit = unit_of(2);
  for (size_t v = 0; v < unit.size(); ++v) {
    const Vec3d normal = vertex_normal(rings_of(2)[v], unit.data(), static_cast<int>(v));
    REQUIRE(norm(normal) == Approx(1));
    REQUIRE(dot(normal, unit[v]) > 0.99);
  }
  const std::vector<Vec3d> point(unit.size(), {3, 4, 5});
  CHECK(vertex_normal(rings_of(2)[0], point.data(), 0) == Vec3d{1, 0, 0});
}

}  // namespace
}  // namespace larch::mesh
