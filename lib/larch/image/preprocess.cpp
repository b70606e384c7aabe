// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/preprocess.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"

namespace larch::image {
namespace {

/// cos of one degree: closer to the world axes than this, an image keeps its own.
constexpr double kAligned = 0.99984769515639;

/// Which input axis lies along each world axis, and its sign; all zero when the image is oblique.
std::array<int, 3> nearest_axes(const Mat3& direction) {
  std::array<int, 3> axis_plus_one{0, 0, 0};
  for (int column = 0; column < 3; ++column) {
    const Vec3d d = direction.column(column);
    for (int row = 0; row < 3; ++row) {
      if (std::abs(d[row]) >= kAligned) {
        axis_plus_one[static_cast<size_t>(row)] = d[row] > 0 ? column + 1 : -(column + 1);
      }
    }
  }
  if (axis_plus_one[0] == 0 || axis_plus_one[1] == 0 || axis_plus_one[2] == 0) return {0, 0, 0};
  return axis_plus_one;
}

/// Returns the input's grid with its axes permuted and flipped to left, posterior, superior.
Grid reoriented(const Grid& input, const std::array<int, 3>& axes) {
  Grid g = input;
  Vec3d first{0, 0, 0};
  for (int row = 0; row < 3; ++row) {
    const int source = std::abs(axes[static_cast<size_t>(row)]) - 1;
    const bool flipped = axes[static_cast<size_t>(row)] < 0;
    g.size[row] = input.size[source];
    g.spacing_mm[row] = input.spacing_mm[source];
    if (flipped) first[source] = input.size[source] - 1;
    for (int i = 0; i < 3; ++i) {
      g.direction.m[i][row] = (flipped ? -1 : 1) * input.direction.m[i][source];
    }
  }
  g.origin_mm = world_from_index(input, first);
  return g;
}

/// World-axis box around all voxel centres.
Grid bounding_grid(const Grid& input, const Vec3d& spacing_mm) {
  Vec3d lo = input.origin_mm, hi = input.origin_mm;
  for (int corner = 1; corner < 8; ++corner) {
    const Vec3d p = world_from_index(
        input, {corner & 1 ? input.size.x - 1.0 : 0, corner & 2 ? input.size.y - 1.0 : 0,
                corner & 4 ? input.size.z - 1.0 : 0});
    widen(lo, hi, p);
  }
  Grid g;
  g.spacing_mm = spacing_mm;
  g.origin_mm = lo;
  for (int axis = 0; axis < 3; ++axis) {
    g.size[axis] = 1 + static_cast<int32_t>(std::min(
                           1e9, std::ceil((hi[axis] - lo[axis]) / spacing_mm[axis] - 1e-6)));
  }
  return g;
}

/// Same axes and extent, other spacing: the centres of the two grids coincide.
Grid respaced(const Grid& grid, const Vec3d& spacing_mm) {
  Grid g = grid;
  Vec3d shift{0, 0, 0};
  for (int axis = 0; axis < 3; ++axis) {
    const double extent = grid.size[axis] * grid.spacing_mm[axis];
    if (std::abs(grid.spacing_mm[axis] - spacing_mm[axis]) <= 1e-3 * spacing_mm[axis]) continue;
    g.spacing_mm[axis] = spacing_mm[axis];
    g.size[axis] =
        static_cast<int32_t>(std::clamp(std::round(extent / spacing_mm[axis]), 1.0, 1e9));
    shift[axis] =
        ((grid.size[axis] - 1) * grid.spacing_mm[axis] - (g.size[axis] - 1) * spacing_mm[axis]) / 2;
  }
  g.origin_mm = grid.origin_mm + grid.direction * shift;
  return g;
}

/// Index of the source for each voxel of the target: an affine map.
struct IndexMap {
  Vec3d origin, step[3];  ///< for each axis of the target

  IndexMap(const Grid& source, const Grid& target) {
    origin = index_from_world(source, target.origin_mm);
    for (int axis = 0; axis < 3; ++axis) {
      Vec3d one{0, 0, 0};
      one[axis] = 1;
      step[axis] = index_from_world(source, world_from_index(target, one)) - origin;
    }
  }
  Vec3d at(double x, double y, double z) const {
    Vec3d p = origin + step[0] * x + step[1] * y + step[2] * z;
    for (int axis = 0; axis < 3; ++axis) p[axis] = without_noise(p[axis]);
    return p;
  }
  /// Rounding noise must not blur a pure permutation.
  static double without_noise(double p) {
    const double nearest = std::nearbyint(p);
    return std::abs(p - nearest) < 1e-6 ? nearest : p;
  }
};

/// Between which two elements along an axis of the source to interpolate; in elements of memory.
struct AxisTap {
  int64_t low = 0, high = 0;
  double weight = 0;  ///< of the higher one
};

AxisTap axis_tap(double p, int32_t size, int64_t stride) {
  p = std::clamp(p, 0.0, size - 1.0);
  const auto low = static_cast<int32_t>(p);
  return {low * stride, std::min(low + 1, size - 1) * stride, p - low};
}

template <class T>
double interpolate(const T* v, const AxisTap& x, const AxisTap& y, const AxisTap& z) {
  const auto along_x = [&](int64_t row) {
    const double a = v[row + x.low];
    return x.weight == 0 ? a : a + x.weight * (v[row + x.high] - a);
  };
  const auto along_y = [&](int64_t plane) {
    const double a = along_x(plane + y.low);
    return y.weight == 0 ? a : a + y.weight * (along_x(plane + y.high) - a);
  };
  const double a = along_y(z.low);
  return z.weight == 0 ? a : a + z.weight * (along_y(z.high) - a);
}

Vec3l strides_of(const Grid& grid) {
  return {1, grid.size.x, static_cast<int64_t>(grid.size.x) * grid.size.y};
}

/// Points an axis over which a coarser target voxel averages.
Vec3i samples_per_voxel(const IndexMap& map) {
  Vec3i n;
  for (int axis = 0; axis < 3; ++axis) {
    const Vec3d& step = map.step[axis];
    const double longest = std::max({std::abs(step.x), std::abs(step.y), std::abs(step.z)});
    n[axis] = static_cast<int32_t>(std::clamp(std::round(longest), 1.0, 16.0));
  }
  return n;
}

/// Where sample i of n lies within voxel x, along an axis of the target.
double sample_at(int x, int i, int n) {
  return x + (i + 0.5) / n - 0.5;
}

/// The map of grids whose axes are parallel, as they are unless an oblique image is brought to the
/// axes of the world: each axis of the source depends on one of the target, and a table for each
/// says between which elements to interpolate.
struct AxisTables {
  int along[3] = {0, 0, 0};      ///< axis of the target, for each of the source
  std::vector<AxisTap> taps[3];  ///< [voxel][sample] of that axis

  /// Nothing if the axes are not parallel.
  static std::optional<AxisTables> make(const Grid& source, const Grid& target, const IndexMap& map,
                                        const Vec3i& n) {
    AxisTables tables;
    const Vec3l strides = strides_of(source);
    for (int a = 0; a < 3; ++a) {
      for (int t = 1; t < 3; ++t) {
        if (std::abs(map.step[t][a]) > std::abs(map.step[tables.along[a]][a])) tables.along[a] = t;
      }
      const int along = tables.along[a];
      for (int t = 0; t < 3; ++t) {
        const bool parallel = std::abs(map.step[t][a]) * target.size[t] < 1e-9;
        if (t != along && !parallel) return std::nullopt;
      }
      for (int x = 0; x < target.size[along]; ++x) {
        for (int i = 0; i < n[along]; ++i) {
          const double p = map.origin[a] + map.step[along][a] * sample_at(x, i, n[along]);
          tables.taps[a].push_back(
              axis_tap(IndexMap::without_noise(p), source.size[a], strides[a]));
        }
      }
    }
    return tables;
  }
  const AxisTap& tap(int source_axis, const Vec3i& sample) const {
    return taps[source_axis][static_cast<size_t>(sample[along[source_axis]])];
  }
};

/// Calls row(y, z) for all rows of the target, from several threads.
template <class Row>
void for_all_rows(const Grid& target, int threads, const Row& row) {
  parallel_for_each(threads, target.size.z, 1, [&](int z) {
    for (int y = 0; y < target.size.y; ++y) row(y, z);
  });
}

/// Returns the sum of value(i, j, k) over the samples of a voxel.
template <class Value>
double sum_of_samples(const Vec3i& n, const Value& value) {
  double sum = 0;
  for (int k = 0; k < n.z; ++k) {
    for (int j = 0; j < n.y; ++j) {
      for (int i = 0; i < n.x; ++i) sum += value(i, j, k);
    }
  }
  return sum;
}

/// Calls store(linear index, value) for each voxel of the target, from several threads.
template <class Store>
void resample_into(const Volume<float>& source, const Grid& target, const Context& context,
                   const Store& store) {
  const IndexMap map(source.grid(), target);
  const Vec3i n = samples_per_voxel(map);
  const int samples = n.x * n.y * n.z;
  const double share = 1.0 / static_cast<double>(samples);
  const float* v = source.data();
  const auto put = [&](const Vec3i& at, double sum) {
    store(target.linear(at), static_cast<float>(samples == 1 ? sum : sum * share));
  };
  if (const auto tables = AxisTables::make(source.grid(), target, map, n)) {
    for_all_rows(target, context.threads, [&](int y, int z) {
      for (int x = 0; x < target.size.x; ++x) {
        put({x, y, z}, sum_of_samples(n, [&](int i, int j, int k) {
              const Vec3i sample{x * n.x + i, y * n.y + j, z * n.z + k};
              return interpolate(v, tables->tap(0, sample), tables->tap(1, sample),
                                 tables->tap(2, sample));
            }));
      }
    });
    return;
  }
  for_all_rows(target, context.threads, [&](int y, int z) {
    for (int x = 0; x < target.size.x; ++x) {
      put({x, y, z}, sum_of_samples(n, [&](int i, int j, int k) {
            return value_at(
                source, map.at(sample_at(x, i, n.x), sample_at(y, j, n.y), sample_at(z, k, n.z)));
          }));
    }
  });
}

/// Returns the values with `ranks` values below them in sorted order, by counting, first the upper
/// and then the lower half of the bits: a volume may be too large to be copied and sorted.
std::array<double, 2> order_statistics(const Volume<float>& values, std::array<int64_t, 2> ranks) {
  constexpr size_t kHalf = 65536;
  std::vector<int64_t> upper(kHalf, 0);
  for (const float value : values) ++upper[ordered_bits(value) >> 16];
  std::array<uint32_t, 2> high{};
  for (int k = 0; k < 2; ++k) {
    while (ranks[k] >= upper[high[k]]) ranks[k] -= upper[high[k]++];
  }
  std::array lower{std::vector<int64_t>(kHalf, 0), std::vector<int64_t>(kHalf, 0)};
  for (const float value : values) {
    const uint32_t bits = ordered_bits(value);
    if (bits >> 16 == high[0]) ++lower[0][bits & 0xffffu];
    if (bits >> 16 == high[1]) ++lower[1][bits & 0xffffu];
  }
  std::array<double, 2> found{};
  for (int k = 0; k < 2; ++k) {
    uint32_t low = 0;
    while (ranks[k] >= lower[k][low]) ranks[k] -= lower[k][low++];
    found[k] = from_ordered_bits(high[k] << 16 | low);
  }
  return found;
}

}  // namespace

template <class T>
double value_at(const Volume<T>& image, const Vec3d& index) {
  const Vec3i size = image.size();
  const Vec3l strides = strides_of(image.grid());
  return interpolate(image.data(), axis_tap(index.x, size.x, strides.x),
                     axis_tap(index.y, size.y, strides.y), axis_tap(index.z, size.z, strides.z));
}
template double value_at(const Volume<float>& image, const Vec3d& index);
template double value_at(const Volume<int16_t>& image, const Vec3d& index);

namespace {

/// In floating point: the product of the sizes may overflow.
double voxels_of(const Grid& grid) {
  return static_cast<double>(grid.size.x) * grid.size.y * grid.size.z;
}

void check_growth(const Grid& input, const Grid& model, const ModelSpace& space,
                  const std::string& name) {
  const double voxels = voxels_of(model);
  if (voxels <= std::max(kHarmlessVoxels, kMaximumGrowth * voxels_of(input))) return;
  const bool oblique =
      space.orientation == Orientation::kWorld && nearest_axes(input.direction)[0] == 0;
  throw InputError(name + " of " + describe(input) + " would grow to " + describe(model) +
                   " in the space of the model, out of all proportion; check the spacing" +
                   (oblique ? " and the direction of the axes" : "") +
                   " in its header, and the spacing of the model");
}

}  // namespace

Grid model_grid(const Grid& input, const ModelSpace& space, const std::string& name) {
  Grid g;
  if (space.orientation == Orientation::kOwn) {
    g = respaced(input, space.spacing_mm);
  } else {
    const std::array<int, 3> axes = nearest_axes(input.direction);
    g = axes[0] == 0 ? bounding_grid(input, space.spacing_mm)
                     : respaced(reoriented(input, axes), space.spacing_mm);
  }
  check_growth(input, g, space, name);
  return g;
}

Volume<float> resample(const Volume<float>& source, const Grid& target, const Context& context) {
  auto out = Volume<float>::unfilled(target);
  resample_into(source, target, context, [&](int64_t i, float value) { out[i] = value; });
  return out;
}

LabelVolume resample_labels(const LabelVolume& source, const Grid& target, const Context& context,
                            int32_t outside) {
  if (describe_difference(source.grid(), target, 1e-6).empty()) {
    LabelVolume same = source;
    same.set_geometry(target);
    return same;
  }
  auto out = LabelVolume::unfilled(target);
  const IndexMap map(source.grid(), target);
  for_all_rows(target, context.threads, [&](int y, int z) {
    for (int x = 0; x < target.size.x; ++x) {
      const Vec3d p = map.at(x, y, z);
      const Vec3i nearest{static_cast<int32_t>(std::floor(p.x + 0.5)),
                          static_cast<int32_t>(std::floor(p.y + 0.5)),
                          static_cast<int32_t>(std::floor(p.z + 0.5))};
      out({x, y, z}) = source.grid().contains(nearest) ? source(nearest) : outside;
    }
  });
  return out;
}

IntensityMap intensity_map(const Volume<float>& image, const IntensityRule& rule) {
  double low = rule.window_low, high = rule.window_high;
  if (rule.rule == IntensityKind::kPercentile) {
    if (image.empty()) throw InputError("an image without voxels has no percentiles");
    const auto rank = [&](double percentile) {
      return static_cast<int64_t>(
          std::floor(percentile / 100 * static_cast<double>(image.voxels() - 1)));
    };
    const auto found =
        order_statistics(image, {rank(rule.low_percentile), rank(rule.high_percentile)});
    low = found[0];
    high = found[1];
    if (high <= low) high = low + 1;  // a constant volume
  } else if (high <= low) {
    throw UsageError("intensity/window_high must be greater than intensity/window_low");
  }
  const auto range = value_range(rule);
  return {low, rule.steps / (high - low), range[0], range[1]};
}

void check_rule(const IntensityRule& rule) {
  const bool percentile = rule.rule == IntensityKind::kPercentile;
  const double low = percentile ? rule.low_percentile : rule.window_low;
  const double high = percentile ? rule.high_percentile : rule.window_high;
  if (low < high) return;
  throw UsageError(percentile
                       ? "space/intensity: low_percentile has to be less than high_percentile"
                       : "space/intensity: window_low has to be less than window_high");
}

std::array<int32_t, 2> value_range(const IntensityRule& rule) {
  const auto room = static_cast<int32_t>(rule.headroom * rule.steps);
  return {-room, rule.steps + room};
}

Volume<int16_t> to_model_space(const Volume<float>& image, const ModelSpace& space,
                               const Context& context, const std::string& name) {
  const IntensityMap map = intensity_map(image, space.intensity);
  const Grid grid = model_grid(image.grid(), space, name);
  const double needed = voxels_of(grid) * sizeof(int16_t);
  const size_t available = free_memory_bytes(Device::cpu());
  if (needed > static_cast<double>(available)) {
    throw MemoryError("not enough host memory for " + name + " in the space of the model (" +
                      describe(grid) + "): needed " + std::to_string(static_cast<int64_t>(needed)) +
                      " bytes, available " + std::to_string(available));
  }
  auto out = Volume<int16_t>::unfilled(grid);
  const double low = map.low, high = map.high;
  const auto store = [&](int64_t i, float intensity) {
    const double value = std::clamp((intensity - map.offset) * map.scale, low, high);
    out[i] = static_cast<int16_t>(nearest_whole(value));
  };
  if (describe_difference(image.grid(), grid, 1e-6).empty()) {
    parallel_for_each(context.threads, image.voxels(), 1 << 16,
                      [&](int64_t i) { store(i, image[i]); });
  } else {
    resample_into(image, grid, context, store);
  }
  return out;
}

}  // namespace larch::image
