// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "larch/levelset/speed/two_classes.h"

namespace larch::levelset {
namespace {

/// Calls f(intensity) for the finite voxels around the seed.
template <class F>
void for_around(const Volume<float>& image, const Volume<float>& from_seed_mm, const F& f) {
  const auto reach = static_cast<float>(kWindowReachMm);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    if (from_seed_mm[i] <= reach && std::isfinite(image[i])) f(image[i], from_seed_mm[i] < 0);
  }
}

/// Voxels around the seed above `from`, whose intensities run from `lowest` to `most`.
struct Around {
  double from = 0, lowest = 0, most = 0;
};

/// The standard deviation of the noise of these voxels: from the median of |I(x - 1) - 2 I(x) +
/// I(x + 1)| along all axes, where surfaces and slow changes of the intensity count little.
double noise_of(const Volume<float>& image, const Volume<float>& from_seed_mm,
                const Around& around) {
  constexpr int kFineBins = 1 << 16;
  const double per_bin = 2 * (around.most - around.lowest) / kFineBins;
  std::vector<int64_t> counts(kFineBins);
  const auto reach = static_cast<float>(kWindowReachMm);
  const auto counts_here = [&](int64_t i) {
    return from_seed_mm[i] <= reach && std::isfinite(image[i]) && image[i] > around.from;
  };
  int64_t differences = 0, stride = 1;
  for (int axis = 0; axis < 3; stride *= image.size()[axis], ++axis) {
    for (int64_t i = 0; i < image.voxels(); ++i) {
      if (!counts_here(i)) continue;
      const int32_t place = image.grid().voxel(i)[axis];
      if (place == 0 || place + 1 == image.size()[axis]) continue;
      if (!counts_here(i - stride) || !counts_here(i + stride)) continue;
      const double neighbours = double{image[i - stride]} + double{image[i + stride]};
      const double bent = std::abs(neighbours - 2 * double{image[i]});
      const auto bin = static_cast<int>(bent / per_bin);
      ++counts[static_cast<size_t>(std::min(bin, kFineBins - 1))], ++differences;
    }
  }
  if (differences == 0) return 0;
  int64_t below = 0;
  size_t median = 0;
  while (2 * (below += counts[median]) < differences) ++median;
  // |d| of normal noise has the median 0.67449 sqrt(1 + 4 + 1) sigma.
  return static_cast<double>(median) * per_bin / (0.67449 * std::sqrt(6.0));
}

double threshold_of(const Volume<float>& image, const Volume<float>& from_seed_mm,
                    const Around& around) {
  const double per_bin = (around.most - around.lowest) / kHistogramBins;
  Histogram counts{};
  for_around(image, from_seed_mm, [&](double value, bool) {
    if (!(value > around.from)) return;
    const auto bin = static_cast<int>((value - around.lowest) / per_bin);
    ++counts[static_cast<size_t>(std::clamp(bin, 0, kHistogramBins - 1))];
  });
  const double noise = noise_of(image, from_seed_mm, around);
  return around.lowest + per_bin * two_class_bin(counts, noise / per_bin);
}

}  // namespace

SeedIntensities seed_intensities(const Volume<float>& image, const Volume<float>& from_seed_mm) {
  SeedIntensities seed;
  double sum = 0, squares = 0, least = std::numeric_limits<double>::infinity(), most = -least;
  for_around(image, from_seed_mm, [&](double value, bool is_seed) {
    if (is_seed) sum += value, ++seed.voxels;
    least = std::min(least, value), most = std::max(most, value);
  });
  if (seed.voxels == 0) return seed;
  seed.mean = seed.threshold = sum / static_cast<double>(seed.voxels);
  seed.has_contrast = most > least;
  if (!seed.has_contrast) return seed;
  // What is far darker is another matter, such as air.
  const double from = seed.mean > 0 ? seed.mean / 2 : (least + seed.mean) / 2;
  double lowest = most;
  for_around(image, from_seed_mm, [&](double value, bool is_seed) {
    if (is_seed) squares += (value - seed.mean) * (value - seed.mean);
    if (value > from) lowest = std::min(lowest, value);
  });
  if (most > lowest) seed.threshold = threshold_of(image, from_seed_mm, {from, lowest, most});
  // A single class is cut through its middle; then the structure is all there is above `from`.
  const double deviation = std::sqrt(squares / static_cast<double>(seed.voxels));
  if (!(std::abs(seed.threshold - seed.mean) > deviation)) seed.threshold = from;
  return seed;
}

Window automatic_window(const SeedIntensities& seed) {
  double half = std::abs(seed.mean - seed.threshold);
  if (!(half > 0)) half = std::max(std::abs(seed.mean) / 2, 1.0);
  return {seed.mean - half, seed.mean + half, true};
}

}  // namespace larch::levelset
