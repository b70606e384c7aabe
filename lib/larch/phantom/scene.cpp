// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/scene.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
namespace {

constexpr int kWidth = 320, kHeight = 213;
constexpr double kStripe = 6, kGrain = 6;  // pixels; grey values
enum Region : uint8_t { kVoid, kSky, kGrass, kWater, kRoad, kHouse, kTree };

/// Colour, cells of value noise in pixels, shares of this noise and of stripes: from the sky on.
constexpr struct {
  double rgb[3], cell_x, cell_y, noise, stripes;
} kLooks[] = {{{148, 172, 202}, 80, 25, 0.15, 0},  {{98, 128, 66}, 1.5, 3, 0.5, 0},
              {{142, 168, 196}, 14, 2.5, 0.4, 0},  {{138, 131, 126}, 1.2, 1.2, 0.25, 0},
              {{142, 130, 122}, 30, 30, 0.2, 0.2}, {{94, 126, 68}, 7, 7, 0.8, 0}};

/// Returns the region at (u, v), from 0 to 1 across and down; a shape covers those before it.
Region region_at(uint64_t seed, uint64_t stream, double u, double v) {
  const auto draw = [&](uint64_t k, double low, double high) {
    return low + (high - low) * hash_unit(seed, stream, k);
  };
  const double bumps = value_noise(seed, stream + 1, {7 * u, 5 * v, 0});
  const double ground = v - draw(0, 0.35, 0.5), below = ground - 0.04 * bumps;
  const auto in_blob = [&](uint64_t k, double y, double radius_x, double radius_y) {
    const double dx = (u - draw(k, 0.05, 0.95)) / radius_x, dy = (ground - y) / radius_y;
    return dx * dx + dy * dy < 1 + bumps;
  };
  Region region = below < 0 ? kSky : kGrass;
  if (below > 0 && in_blob(1, draw(2, 0.1, 0.3), draw(3, 0.2, 0.4), 0.14)) region = kWater;
  const double middle = draw(4, 0.1, 0.9) + draw(5, -1, 1) * below;
  if (below > 0 && std::fabs(u - middle) < 0.03 + 0.3 * below) region = kRoad;
  const double beside = std::fabs(u - draw(6, 0.1, 0.9)), above = draw(7, 0.02, 0.2) - ground;
  if (beside < 0.13 && above > 0 && above < 0.42 - 1.3 * beside) region = kHouse;
  for (uint64_t k = 8; k < 12; k += 2) {
    if (in_blob(k, draw(k + 1, -0.15, 0.1), 0.09, 0.19)) region = kTree;
  }
  return region;
}

}  // namespace

Scene make_scene(uint64_t seed, int number, int threads) {
  Grid grid;
  grid.size = {kWidth, kHeight, 1};
  Scene out{{kWidth, kHeight, std::vector<uint8_t>(3 * kWidth * kHeight)}, LabelVolume(grid)};
  const uint64_t stream = static_cast<uint64_t>(number) * 1000 + 800;
  parallel_for_each(threads, grid.voxels(), 4096, [&](int64_t i) {
    const int64_t column = i % kWidth, row = i / kWidth;
    const auto x = static_cast<double>(column), y = static_cast<double>(row);
    const auto region = [&](int dx, int dy) {
      return region_at(seed, stream, (x + dx) / kWidth, (y + dy) / kHeight);
    };
    const Region here = region(0, 0);
    const bool is_inside = region(-2, -2) == here && region(2, -2) == here &&
                           region(-2, 2) == here && region(2, 2) == here;
    out.labels[i] = is_inside ? here : kVoid;
    const auto& look = kLooks[here - 1];
    const double shade = value_noise(seed, stream + 2, {2 * x / kWidth, 2 * y / kHeight, 0});
    const double noise = value_noise(seed, stream + 3, {x / look.cell_x, y / look.cell_y, 0});
    const double light =
        (1 + 0.4 * shade) * (1 + look.noise * noise + look.stripes * sine_of_turns(y / kStripe));
    for (uint64_t c = 0; c < 3; ++c) {
      const double tint = 1 + 0.15 * hash_signed(seed, stream + 4, 3 * uint64_t{here} + c);
      const uint64_t k = 3 * static_cast<uint64_t>(i) + c;
      const double value = look.rgb[c] * tint * light + kGrain * hash_normal(seed, stream + 5, k);
      out.image.rgb[k] = static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
    }
  });
  return out;
}

LabelTable scene_label_table() {
  return {{1, "sky", {128, 190, 240}},  {2, "grass", {120, 190, 60}}, {3, "water", {40, 90, 200}},
          {4, "road", {110, 100, 110}}, {5, "house", {210, 80, 60}},  {6, "tree", {20, 100, 40}}};
}

}  // namespace larch::phantom
