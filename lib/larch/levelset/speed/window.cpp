// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/window.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "larch/image/preprocess.h"
#include "larch/levelset/speed/edges.h"
#include "larch/levelset/step/time_step.h"

namespace larch::levelset {
namespace {

using image::value_at;

/// The part of the image up to kWindowReachMm from the seed, with the margin that filters need.
struct Around {
  Volume<float> image{}, from_seed_mm{};
  bool counts(int64_t i) const {
    return from_seed_mm[i] <= static_cast<float>(kWindowReachMm) && std::isfinite(image[i]);
  }
};

Around around_seed(const Volume<float>& image, const Volume<float>& from_seed_mm) {
  constexpr int32_t kMore = 5;  // The Gaussian and the steps along the gradient read so far.
  const Vec3i last = image.size() - Vec3i{1, 1, 1};
  Vec3i low = last, high{};
  for (int64_t i = 0; i < image.voxels(); ++i) {
    if (from_seed_mm[i] > static_cast<float>(kWindowReachMm)) continue;
    const Vec3i at = image.grid().voxel(i);
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], std::max(at[axis] - kMore, 0));
      high[axis] = std::max(high[axis], std::min(at[axis] + kMore, last[axis]));
    }
  }
  Grid grid = image.grid();
  grid.size = high - low + Vec3i{1, 1, 1};
  Around around{Volume<float>(grid), Volume<float>(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    around.image[i] = image(grid.voxel(i) + low);
    around.from_seed_mm[i] = from_seed_mm(grid.voxel(i) + low);
  }
  return around;
}

/// Returns the median, of an even number the upper one, and reorders the values.
double median_of(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return double{*middle};
}

/// Returns the standard deviation of the noise: from the median of |I(x - 1) - 2 I(x) + I(x + 1)|
/// along all axes, where surfaces and slow changes of the intensity count little.
double noise_of(const Around& around) {
  const Volume<float>& image = around.image;
  std::vector<float> bent;
  int64_t stride = 1;
  for (int axis = 0; axis < 3; stride *= image.size()[axis], ++axis) {
    for (int64_t i = 0; i < image.voxels(); ++i) {
      if (!around.counts(i)) continue;
      const int32_t place = image.grid().voxel(i)[axis];
      if (place == 0 || place + 1 == image.size()[axis]) continue;
      if (!around.counts(i - stride) || !around.counts(i + stride)) continue;
      const double neighbours = double{image[i - stride]} + double{image[i + stride]};
      bent.push_back(static_cast<float>(std::abs(neighbours - 2 * double{image[i]})));
    }
  }
  if (bent.empty()) return 0;
  // |d| of normal noise has the median 0.67449 sqrt(1 + 4 + 1) sigma.
  return median_of(bent) / (0.67449 * std::sqrt(6.0));
}

/// A place on a border: the difference across it, and the intensity half way.
struct Border {
  double contrast = 0, half_way = 0;
  bool operator<(const Border& other) const {
    return contrast < other.contrast || (contrast == other.contrast && half_way < other.half_way);
  }
};

/// The borders of the structure towards what is darker, and towards what is brighter.
std::array<std::vector<Border>, 2> borders_of(const Around& around, const Volume<float>& smooth,
                                              const SeedIntensities& seed) {
  constexpr double kVoxels = 2, kHalfWay = 0.2, kOfSeed = 0.25;
  const Grid& grid = smooth.grid();
  const double reach_mm = kVoxels * smallest_spacing_mm(grid.spacing_mm, grid.size);
  std::array<std::vector<Border>, 2> borders;
  for (int64_t i = 0; i < smooth.voxels(); ++i) {
    if (!around.counts(i)) continue;
    const Vec3d at = grid.voxel(i).cast<double>();
    Vec3d slope{};
    for (int axis = 0; axis < 3; ++axis) {
      Vec3d up = at, down = at;
      up[axis] += 1, down[axis] -= 1;
      slope[axis] = (value_at(smooth, up) - value_at(smooth, down)) / grid.spacing_mm[axis];
    }
    const double steep = norm(slope);
    if (!(steep > 0)) continue;  // A neighbour that is not a number ends up here as well.
    Vec3d step = slope * (reach_mm / steep);
    for (int axis = 0; axis < 3; ++axis) step[axis] /= grid.spacing_mm[axis];
    const double bright = value_at(smooth, at + step), dark = value_at(smooth, at - step);
    const double contrast = bright - dark, half_way = (bright + dark) / 2;
    if (!(contrast > seed.noise)) continue;
    if (!(std::abs(double{smooth[i]} - half_way) < kHalfWay * contrast)) continue;
    if (std::abs(bright - seed.middle) < kOfSeed * contrast)
      borders[0].push_back({contrast, half_way});
    if (std::abs(dark - seed.middle) < kOfSeed * contrast)
      borders[1].push_back({contrast, half_way});
  }
  for (auto& side : borders) std::sort(side.begin(), side.end());
  return borders;
}

double squares_of(const std::vector<Border>& borders) {
  double sum = 0;
  for (const Border& border : borders) sum += border.contrast * border.contrast;
  return sum;
}

/// Returns the contrast below which half of the sum of squared contrasts lies.
double typical_contrast(const std::vector<Border>& borders) {
  const double half = squares_of(borders) / 2;
  double sum = 0;
  for (const Border& border : borders) {
    sum += border.contrast * border.contrast;
    if (sum >= half) return border.contrast;
  }
  return 0;
}

/// Returns the intensity half way that a share `part` of the borders from `first` on lie below.
double place_of(std::vector<Border> borders, size_t first, double part) {
  std::sort(borders.begin() + static_cast<std::ptrdiff_t>(first), borders.end(),
            [](const Border& a, const Border& b) { return a.half_way < b.half_way; });
  const auto more = static_cast<double>(borders.size() - first - 1) * part;
  return borders[first + static_cast<size_t>(std::lround(more))].half_way;
}

}  // namespace

SeedIntensities seed_intensities(const Volume<float>& image, const Volume<float>& from_seed_mm,
                                 int threads) {
  const Around around = around_seed(image, from_seed_mm);
  const Grid& grid = around.image.grid();
  const Volume<float> smooth =
      smoothed(around.image, smallest_spacing_mm(grid.spacing_mm, grid.size), threads);
  SeedIntensities seed;
  std::vector<float> inside;
  for (int64_t i = 0; i < smooth.voxels(); ++i) {
    if (around.from_seed_mm[i] < 0 && around.counts(i)) inside.push_back(smooth[i]);
  }
  seed.voxels = static_cast<int64_t>(inside.size());
  if (inside.empty()) return seed;
  seed.middle = median_of(inside);
  seed.noise = noise_of(around);
  const auto borders = borders_of(around, smooth, seed);
  const double squares[2] = {squares_of(borders[0]), squares_of(borders[1])};
  const double typical = std::max(typical_contrast(borders[0]), typical_contrast(borders[1]));
  for (size_t side = 0; side < 2; ++side) {
    const std::vector<Border>& some = borders[side];
    const auto first = std::lower_bound(some.begin(), some.end(), Border{typical / 4, -INFINITY});
    if (first == some.end() || squares[side] < 0.2 * squares[1 - side]) continue;
    const auto skipped = static_cast<size_t>(first - some.begin());
    (side == 0 ? seed.lower : seed.upper) = place_of(some, skipped, side == 0 ? 0.6 : 0.4);
    seed.contrast = std::max(seed.contrast, some[(skipped + some.size()) / 2].contrast);
  }
  return seed;
}

void leave_out(SeedIntensities& seed, const Volume<float>& image,
               const std::vector<int64_t>& voxels) {
  std::vector<float> there;
  for (const int64_t i : voxels) {
    if (std::isfinite(image[i])) there.push_back(image[i]);
  }
  if (there.empty()) return;
  const double median = median_of(there), half_way = (median + seed.middle) / 2;
  if (!(std::abs(median - seed.middle) > 2 * seed.noise)) return;
  if (median < seed.middle) seed.lower = std::max(seed.lower.value_or(half_way), half_way);
  if (median > seed.middle) seed.upper = std::min(seed.upper.value_or(half_way), half_way);
  seed.contrast = std::max(seed.contrast, std::abs(median - seed.middle));
}

Window automatic_window(const SeedIntensities& seed) {
  const double half = seed.lower       ? seed.middle - *seed.lower
                      : seed.upper     ? *seed.upper - seed.middle
                      : seed.noise > 0 ? 3 * seed.noise
                                       : 1;
  return {seed.lower.value_or(seed.middle - half), seed.upper.value_or(seed.middle + half), true};
}

}  // namespace larch::levelset
