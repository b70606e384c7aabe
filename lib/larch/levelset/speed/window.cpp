// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/window.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

constexpr int kBins = 1024;
using Histogram = std::array<int64_t, kBins>;

/// The number of the first bin of the upper class: the two classes differ most between them.
int otsu_bin(const Histogram& counts) {
  double all = 0, moment = 0;
  for (int b = 0; b < kBins; ++b) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(b)]);
    all += count, moment += count * b;
  }
  double below = 0, moment_below = 0, most = -1;
  int first = 1, last = 1;
  for (int b = 1; b < kBins; ++b) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(b - 1)]);
    below += count, moment_below += count * (b - 1);
    const double above = all - below;
    if (below == 0 || above == 0) continue;
    const double apart = moment_below / below - (moment - moment_below) / above;
    const double between = below * above * apart * apart;
    if (between > most) most = between, first = last = b;
    if (between == most) last = b;
  }
  return (first + last) / 2;  // the middle of a gap between the classes
}

/// Calls f(intensity) for the finite voxels around the seed.
template <class F>
void for_around(const Volume<float>& image, const Volume<float>& from_seed_mm, const F& f) {
  const auto reach = static_cast<float>(kWindowReachMm);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    if (from_seed_mm[i] <= reach && std::isfinite(image[i])) f(image[i], from_seed_mm[i] < 0);
  }
}

/// Of the voxels around the seed above `from`, whose intensities run from `lowest` to `most`.
double otsu_threshold(const Volume<float>& image, const Volume<float>& from_seed_mm, double from,
                      double lowest, double most) {
  const double per_bin = (most - lowest) / kBins;
  Histogram counts{};
  for_around(image, from_seed_mm, [&](double value, bool) {
    if (!(value > from)) return;
    const auto bin = static_cast<int>((value - lowest) / per_bin);
    ++counts[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
  });
  return lowest + per_bin * otsu_bin(counts);
}

}  // namespace

double window_speed(const Window& window, float intensity) {
  if (!std::isfinite(intensity)) return -1;
  return std::max(
      1 - std::abs(static_cast<double>(intensity) - window.middle()) / window.half_width(), -1.0);
}

int16_t stored_speed(double speed) {
  if (std::isnan(speed)) return -kSpeedOne;
  return static_cast<int16_t>(std::lround(std::clamp(speed * kSpeedOne, -32767.0, 32767.0)));
}

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
  if (most > lowest) seed.threshold = otsu_threshold(image, from_seed_mm, from, lowest, most);
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
