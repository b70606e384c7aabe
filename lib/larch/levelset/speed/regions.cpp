// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/regions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

/// Of IntensitySteps.
constexpr double kSteps = 1 << 24;

constexpr Dispatch<RegionSums(const Regions&, const Context&)> kRegionSums{
    "levelset::region_sums", cpu::region_sums, LARCH_CUDA_FN(cuda::region_sums)};

}  // namespace

IntensitySteps intensity_steps_of(const Volume<float>& image, int threads) {
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

Vec3i region_reach(const Grid& grid, double band_mm) {
  Vec3i reach{};
  if (!(band_mm > 0)) return reach;
  for (int axis = 0; axis < 3; ++axis) {
    const double steps = std::max(std::floor(band_mm / grid.spacing_mm[axis]), 1.0);
    reach[axis] = static_cast<int32_t>(std::min<double>(steps, grid.size[axis]));
  }
  return reach;
}

RegionSums region_sums(const Regions& regions, const Context& context) {
  return kRegionSums(context.device, regions, context);
}

RegionMeans means_of(const RegionSums& sums, const IntensitySteps& steps) {
  const auto mean = [&](int side) {
    return steps.lowest + steps.per_step * static_cast<double>(sums.steps[side]) /
                              static_cast<double>(sums.voxels[side]);
  };
  if (sums.voxels[0] == 0 && sums.voxels[1] == 0) return {};
  if (sums.voxels[0] == 0) return {mean(1), mean(1)};
  if (sums.voxels[1] == 0) return {mean(0), mean(0)};
  return {mean(0), mean(1)};
}

}  // namespace larch::levelset
