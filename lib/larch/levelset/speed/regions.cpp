// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/regions.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

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

Quantiser quantiser_of(const Volume<float>& image) {
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (const float value : image) {
    if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
  }
  if (!(most > least)) return {std::isfinite(least) ? static_cast<double>(least) : 0.0, 1};
  return {static_cast<double>(least),
          (static_cast<double>(most) - static_cast<double>(least)) / kSteps};
}

}  // namespace

RegionMeans region_means(const Volume<float>& image, const Volume<float>& phi, float band,
                         const Volume<uint8_t>& is_pinned, int threads) {
  const Quantiser quantiser = quantiser_of(image);
  std::atomic<int64_t> sums[2]{}, counts[2]{};
  parallel_for(threads, image.voxels(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    int64_t sum[2]{}, count[2]{};
    for (int64_t i = begin; i < end; ++i) {
      if (!(phi[i] < band) || !std::isfinite(image[i])) continue;
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

double region_speed(const RegionMeans& means, float intensity) {
  if (!std::isfinite(intensity)) return -1;
  const double apart = means.inside - means.outside;
  if (apart == 0) return 0;
  const double value = 2 * static_cast<double>(intensity) - means.inside - means.outside;
  return std::clamp(value / apart, -1.0, 1.0);
}

}  // namespace larch::levelset
