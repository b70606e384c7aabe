// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/regions.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

/// Intensities become integers of this many steps, whose sums fit 64 bits for any image.
constexpr double kSteps = 1 << 24;

/// The integers of intensities: lowest + integer * per_step.
struct Quantiser {
  double lowest = 0, per_step = 1;
  int64_t step_of(float intensity) const {
    return std::llround((static_cast<double>(intensity) - lowest) / per_step);
  }
};

Quantiser quantiser_of(const Volume<float>& image, int threads) {
  float least = std::numeric_limits<float>::infinity(), most = -least;
  std::mutex mutex;
  parallel_for(threads, image.voxels(), int64_t{1} << 18, [&](int64_t begin, int64_t end) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    for (int64_t i = begin; i < end; ++i) {
      const float value = image[i];
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    }
    const std::lock_guard lock(mutex);
    least = std::min(least, low), most = std::max(most, high);
  });
  if (!(most > least)) return {std::isfinite(least) ? static_cast<double>(least) : 0.0, 1};
  return {static_cast<double>(least),
          (static_cast<double>(most) - static_cast<double>(least)) / kSteps};
}

constexpr uint8_t kSet = 1, kNear = 2;

/// Steps since the last voxel that was set, or one more than `reach`, after another voxel.
int32_t steps_after(int32_t steps, uint8_t voxel, int32_t reach) {
  return (voxel & kSet) != 0 ? 0 : std::min(steps + 1, reach + 1);
}

/// Sets the voxels of a row up to `reach` from one that is set.
void widen_row(uint8_t* row, int32_t count, int32_t reach) {
  const auto size = static_cast<size_t>(count);
  if (std::memchr(row, kSet, size) == nullptr) return;  // as most rows of an image
  int32_t steps = reach;
  for (int32_t x = 0; x < count; ++x) {
    steps = steps_after(steps, row[x], reach);
    row[x] |= steps <= reach ? kNear : 0;
  }
  steps = reach;
  for (int32_t x = count - 1; x >= 0; --x) {
    steps = steps_after(steps, row[x], reach);
    row[x] = row[x] != 0 || steps <= reach ? kSet : 0;
  }
}

/// Sets the voxels up to `reach` rows from one that is set. A plane holds `rows` rows of `count`
/// voxels with `stride` between them.
void widen_plane(uint8_t* first, int64_t stride, int32_t rows, int32_t count, int32_t reach) {
  std::vector<int32_t> since(static_cast<size_t>(count), reach);
  for (int32_t r = 0; r < rows; ++r) {
    uint8_t* row = first + r * stride;
    for (int32_t x = 0; x < count; ++x) {
      since[x] = steps_after(since[x], row[x], reach);
      row[x] = static_cast<uint8_t>(row[x] | (since[x] <= reach ? kNear : 0));
    }
  }
  std::fill(since.begin(), since.end(), reach);
  for (int32_t r = rows - 1; r >= 0; --r) {
    uint8_t* row = first + r * stride;
    for (int32_t x = 0; x < count; ++x) {
      since[x] = steps_after(since[x], row[x], reach);
      row[x] = row[x] != 0 || since[x] <= reach ? kSet : 0;
    }
  }
}

/// 1 in a box of +- band_mm, and of at least one voxel, around the voxels with phi < 0.
Volume<uint8_t> near_inside(const Volume<float>& phi, double band_mm, int threads) {
  const Vec3i size = phi.size();
  const int64_t slice = int64_t{size.x} * size.y;
  auto near = Volume<uint8_t>::unfilled(phi.grid());
  parallel_for(threads, phi.voxels(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) near[i] = phi[i] < 0 ? kSet : 0;
  });
  const auto along = [&](int axis, int64_t planes, const auto& widen) {
    const double steps = std::max(std::floor(band_mm / phi.grid().spacing_mm[axis]), 1.0);
    const auto reach = static_cast<int32_t>(std::min<double>(steps, size[axis]));
    parallel_for(threads, planes, fair_grain(threads, planes, 64), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) widen(p, reach);
    });
  };
  uint8_t* data = near.data();
  along(0, int64_t{size.y} * size.z,
        [&](int64_t p, int32_t reach) { widen_row(data + p * size.x, size.x, reach); });
  along(1, size.z, [&](int64_t p, int32_t reach) {
    widen_plane(data + p * slice, size.x, size.y, size.x, reach);
  });
  along(2, size.y, [&](int64_t p, int32_t reach) {
    widen_plane(data + p * size.x, slice, size.z, size.x, reach);
  });
  return near;
}

}  // namespace

RegionMeans region_means(const Volume<float>& image, const Volume<float>& phi, double band_mm,
                         const Volume<uint8_t>& is_pinned, int threads) {
  const Quantiser quantiser = quantiser_of(image, threads);
  const Volume<uint8_t> near = band_mm > 0 ? near_inside(phi, band_mm, threads) : Volume<uint8_t>();
  std::atomic<int64_t> sums[2]{}, counts[2]{};
  parallel_for(threads, image.voxels(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    int64_t sum[2]{}, count[2]{};
    for (int64_t i = begin; i < end; ++i) {
      if (!std::isfinite(image[i]) || (!near.empty() && near[i] == 0)) continue;
      if (!is_pinned.empty() && is_pinned[i] != 0) continue;
      const int side = phi[i] < 0 ? 0 : 1;
      sum[side] += quantiser.step_of(image[i]);
      ++count[side];
    }
    for (int side = 0; side < 2; ++side) sums[side] += sum[side], counts[side] += count[side];
  });
  const auto mean = [&](int side) {
    return quantiser.lowest +
           quantiser.per_step * static_cast<double>(sums[side]) / static_cast<double>(counts[side]);
  };
  if (counts[0] == 0 && counts[1] == 0) return {};
  if (counts[0] == 0) return {mean(1), mean(1)};
  if (counts[1] == 0) return {mean(0), mean(0)};
  return {mean(0), mean(1)};
}

}  // namespace larch::levelset
