// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/edges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/speed/window.h"
#include "larch/levelset/step_math.h"

namespace larch::levelset {
namespace {

/// Calls f(voxel, linear index) for every voxel, slices over threads.
template <class F>
void for_voxels(const Grid& grid, int threads, const F& f) {
  const int64_t rows = int64_t{grid.size.y} * grid.size.z;
  parallel_for(threads, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      Vec3i at{0, static_cast<int32_t>(row % grid.size.y), static_cast<int32_t>(row / grid.size.y)};
      for (; at.x < grid.size.x; ++at.x) f(at, row * grid.size.x + at.x);
    }
  });
}

/// From `at` by `steps` along an axis, at most to the border.
Vec3i beside(const Grid& grid, Vec3i at, int axis, int32_t steps) {
  at[axis] = std::clamp(at[axis] + steps, 0, grid.size[axis] - 1);
  return at;
}

std::vector<double> gaussian_weights(double sigma) {
  const auto reach = static_cast<int>(std::ceil(3 * sigma));
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i <= reach; ++i) {
    weights.push_back(std::exp(-0.5 * (i / sigma) * (i / sigma)));
    sum += (i == 0 ? 1 : 2) * weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Central difference per mm; 0 along an axis of one voxel.
template <class T>
double slope(const Volume<T>& values, const Vec3i& at, int axis) {
  const Grid& grid = values.grid();
  if (grid.size[axis] == 1) return 0;
  const auto value = [&](int32_t steps) {
    return static_cast<double>(values(beside(grid, at, axis, steps)));
  };
  return (value(1) - value(-1)) / (2 * grid.spacing_mm[axis]);
}

double median_of_slopes(const Volume<float>& slopes) {
  std::vector<float> some;
  for (const float value : slopes) {
    if (value > 0) some.push_back(value);
  }
  if (some.empty()) {
    throw InputError(
        "the image has no edges, for it is the same everywhere: leave out the terms of "
        "edges, or give levelset.edge_contrast");
  }
  const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
  std::nth_element(some.begin(), middle, some.end());
  return static_cast<double>(*middle);
}

}  // namespace

Volume<float> smoothed(const Volume<float>& image, double sigma_mm, int threads) {
  const Grid& grid = image.grid();
  Volume<float> from = image, to(grid);
  for (float& value : from) value = std::isfinite(value) ? value : 0;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.size[axis] == 1 || !(sigma_mm > 0)) continue;
    const std::vector<double> weights = gaussian_weights(sigma_mm / grid.spacing_mm[axis]);
    for_voxels(grid, threads, [&](const Vec3i& at, int64_t i) {
      double sum = weights[0] * static_cast<double>(from[i]);
      for (size_t k = 1; k < weights.size(); ++k) {
        const auto steps = static_cast<int32_t>(k);
        sum += weights[k] * (static_cast<double>(from(beside(grid, at, axis, steps))) +
                             static_cast<double>(from(beside(grid, at, axis, -steps))));
      }
      to[i] = static_cast<float>(sum);
    });
    std::swap(from, to);
  }
  return from;
}

Edges find_edges(const Volume<float>& image, double sigma_mm, double contrast, double unit_mm,
                 int threads) {
  const Grid& grid = image.grid();
  const Volume<float> smooth = smoothed(image, sigma_mm, threads);
  Volume<float> g(grid);  // |grad I| at first
  for_voxels(grid, threads, [&](const Vec3i& at, int64_t i) {
    g[i] = static_cast<float>(
        norm(Vec3d{slope(smooth, at, 0), slope(smooth, at, 1), slope(smooth, at, 2)}));
  });
  Edges edges;
  edges.contrast = contrast > 0 ? contrast : median_of_slopes(g);
  edges.stop = Volume<int16_t>(grid);
  for_voxels(grid, threads, [&](const Vec3i&, int64_t i) {
    const double ratio = static_cast<double>(g[i]) / edges.contrast;
    g[i] = static_cast<float>(1 / (1 + ratio * ratio));
    edges.stop[i] = stored_speed(static_cast<double>(g[i]));
  });
  for (Volume<int16_t>& component : edges.advection) component = Volume<int16_t>(grid);
  for_voxels(grid, threads, [&](const Vec3i& at, int64_t i) {
    for (int axis = 0; axis < 3; ++axis) {
      edges.advection[axis][i] = stored_speed(-slope(g, at, axis) * unit_mm);
    }
  });
  for (int64_t i = 0; i < g.voxels(); ++i) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const double component = static_cast<double>(edges.advection[axis][i]) / kSpeedOne;
      sum += std::abs(component) * unit_mm / grid.spacing_mm[axis];
    }
    edges.largest_advection = std::max(edges.largest_advection, sum);
  }
  return edges;
}

}  // namespace larch::levelset
