// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/edges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/speed/window.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

/// Where the voxels beside one lie: the border counts for what is beyond.
struct Beside {
  explicit Beside(const Grid& g)
      : size(g.size), strides{1, g.size.x, int64_t{g.size.x} * g.size.y} {}

  int64_t operator()(const Vec3i& at, int64_t i, int axis, int32_t steps) const {
    const int32_t there = std::clamp(at[axis] + steps, 0, size[axis] - 1);
    return i + (there - at[axis]) * strides[axis];
  }

  const Vec3i size;
  const int64_t strides[3];
};

/// Calls f(voxel, linear index) for every voxel, rows over threads.
template <class F>
void for_voxels(const Grid& grid, int threads, const F& f) {
  const int64_t rows = int64_t{grid.size.y} * grid.size.z;
  parallel_for_each(threads, rows, 64, [&](int64_t row) {
    Vec3i at{0, static_cast<int32_t>(row % grid.size.y), static_cast<int32_t>(row / grid.size.y)};
    for (; at.x < grid.size.x; ++at.x) f(at, row * grid.size.x + at.x);
  });
}

/// By step from a voxel on an axis of `size`. From size - 1 steps on there are only voxels at the
/// border, whose weight the last one is.
std::vector<double> gaussian_weights(double sigma, int32_t size) {
  const double reach = std::ceil(3 * sigma), most = std::max(1e6, static_cast<double>(size));
  std::vector<double> weights;
  double sum = 0;
  const auto add = [&](double weight, double sides) {
    weights.back() += weight;
    sum += sides * weight;
  };
  for (int32_t i = 0; i <= static_cast<int32_t>(std::min(reach, most)); ++i) {
    if (i < size) weights.push_back(0);
    add(std::exp(-0.5 * (i / sigma) * (i / sigma)), i == 0 ? 1 : 2);
  }
  if (reach > most) {  // so many that their sum is an integral
    const double per_step = 1 / (sigma * std::sqrt(2.0));
    const double between = std::erf((reach + 0.5) * per_step) - std::erf((most + 0.5) * per_step);
    add(sigma * std::sqrt(M_PI / 2) * between, 2);
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Central difference per mm; 0 along an axis of one voxel, and at a voxel that is not finite. The
/// voxel itself stands for a neighbour that is not.
double slope(const Volume<float>& values, const Beside& beside, const Vec3i& at, int64_t i,
             int axis) {
  if (!std::isfinite(values[i])) return 0;
  const auto value = [&](int32_t steps) {
    const float there = values[beside(at, i, axis, steps)];
    return static_cast<double>(std::isfinite(there) ? there : values[i]);
  };
  return (value(1) - value(-1)) / (2 * values.grid().spacing_mm[axis]);
}

/// The weighted mean of the voxels within reach along an axis, of those that are finite.
double mean_of_finite(const Volume<float>& values, const std::vector<double>& weights,
                      const Beside& beside, const Vec3i& at, int64_t i, int axis) {
  double sum = 0, all = 0;
  const auto reach = static_cast<int32_t>(weights.size()) - 1;
  for (int32_t steps = -reach; steps <= reach; ++steps) {
    const float value = values[beside(at, i, axis, steps)];
    if (!std::isfinite(value)) continue;
    const double weight = weights[static_cast<size_t>(std::abs(steps))];
    sum += weight * static_cast<double>(value);
    all += weight;
  }
  return sum / all;  // not finite where there is none
}

/// |grad I|.
Volume<float> steepness(const Volume<float>& image, int threads) {
  const Beside beside(image.grid());
  Volume<float> steep(image.grid());
  for_voxels(image.grid(), threads, [&](const Vec3i& at, int64_t i) {
    steep[i] = static_cast<float>(
        norm(Vec3d{slope(image, beside, at, i, 0), slope(image, beside, at, i, 1),
                   slope(image, beside, at, i, 2)}));
  });
  return steep;
}

/// Returns the median of those above a hundredth of the largest: the rest is background.
double typical_steepness(const Volume<float>& steep) {
  const float least = *std::max_element(steep.begin(), steep.end()) / 100;
  std::vector<float> some;
  for (const float value : steep) {
    if (value > least) some.push_back(value);
  }
  if (some.empty()) {
    throw InputError(
        "the image has no edges: it is the same everywhere, or levelset.edge_scale_mm is far "
        "larger than it; choose a smaller one, leave out levelset.advection_weight, or give "
        "levelset.edge_contrast");
  }
  const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
  std::nth_element(some.begin(), middle, some.end());
  return static_cast<double>(*middle);
}

}  // namespace

Volume<float> smoothed(const Volume<float>& image, double sigma_mm, int threads) {
  const Grid& grid = image.grid();
  const Beside beside(grid);
  Volume<float> from = image, to(grid);
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.size[axis] == 1 || !(sigma_mm > 0)) continue;
    const std::vector<double> weights =
        gaussian_weights(sigma_mm / grid.spacing_mm[axis], grid.size[axis]);
    const auto reach = static_cast<int32_t>(weights.size()) - 1;
    const int32_t length = grid.size.x;
    parallel_for_each(threads, int64_t{grid.size.y} * grid.size.z, 64, [&](int64_t row) {
      const int64_t begin = row * length;
      // The row with what counts beyond its ends.
      std::vector<float> wide(static_cast<size_t>(length + 2 * reach), from[begin]);
      std::fill(std::copy_n(&from[begin], length, wide.begin() + reach), wide.end(),
                from[begin + length - 1]);
      const auto row_at = [&](int32_t steps) {
        return axis == 0 ? &wide[reach + steps]
                         : &from[beside(grid.voxel(begin), begin, axis, steps)];
      };
      std::vector<double> sums(static_cast<size_t>(length));
      for (int32_t x = 0; x < length; ++x) sums[x] = weights[0] * double{from[begin + x]};
      for (int32_t k = 1; k <= reach; ++k) {
        const float *before = row_at(-k), *behind = row_at(k);
        for (int32_t x = 0; x < length; ++x) {
          sums[x] += weights[k] * (double{behind[x]} + double{before[x]});
        }
      }
      for (int64_t i = begin; i < begin + length; ++i) {
        double sum = sums[i - begin];
        if (!std::isfinite(sum))
          sum = mean_of_finite(from, weights, beside, grid.voxel(i), i, axis);
        to[i] = static_cast<float>(sum);
      }
    });
    std::swap(from, to);
  }
  return from;
}

Edges find_edges(const Volume<float>& image, double sigma_mm, double contrast, double unit_mm,
                 int threads) {
  const Grid& grid = image.grid();
  Volume<float> g = steepness(smoothed(image, sigma_mm, threads), threads);
  Edges edges;
  edges.contrast = contrast > 0 ? contrast : typical_steepness(g);
  for_voxels(grid, threads, [&](const Vec3i&, int64_t i) {
    const double ratio = static_cast<double>(g[i]) / edges.contrast;
    g[i] = static_cast<float>(1 / (1 + ratio * ratio));
    if (!std::isfinite(image[i])) g[i] = std::numeric_limits<float>::quiet_NaN();
  });
  for (Volume<int16_t>& component : edges.advection) component = Volume<int16_t>(grid);
  const Beside beside(grid);
  for_voxels(grid, threads, [&](const Vec3i& at, int64_t i) {
    for (int axis = 0; axis < 3; ++axis) {
      edges.advection[axis][i] = stored_speed(-slope(g, beside, at, i, axis) * unit_mm);
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
