// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/box.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "larch/core/portable_math.h"
#include "larch/core/random_math.h"

namespace larch::features {
namespace {

constexpr int kMaximumWeight = 127;

/// Draws of one feature, in their order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream, uint64_t index)
      : seed_(seed), stream_(stream), counter_(index * 64) {}
  int below(int n) {
    return static_cast<int>(hash_below(seed_, stream_, counter_++, static_cast<uint32_t>(n)));
  }
  /// Returns the same, log-uniformly: i as often as log((i + 2) / (i + 1)) says.
  int log_below(int n) {
    return std::min(n - 1, static_cast<int>(exp_of(unit() * log_of(n + 1.0))) - 1);
  }
  double unit() { return hash_unit(seed_, stream_, counter_++); }

 private:
  uint64_t seed_, stream_, counter_;
};

/// Returns a box whose edges are at most `largest` and that lies within the reach of the voxel.
/// Edges and distances are drawn log-uniformly: what is near tells more of a voxel, whatever the
/// reach.
Cuboid draw_box(const BoxSpec& spec, int largest, Draws& draws) {
  Cuboid box{{0, 0, 0}, {1, 1, 1}, 1};
  for (int axis = 0; axis < (spec.planar ? 2 : 3); ++axis) {
    const int edge = 1 + draws.log_below(largest);
    const int places = 2 * spec.reach + 2 - edge;
    const int away = draws.log_below((places + 1) / 2);
    const int place = draws.below(2) == 0 ? (places - 1) / 2 - away : places / 2 + away;
    box.lo[axis] = place - spec.reach;
    box.hi[axis] = box.lo[axis] + edge;
  }
  return box;
}

/// Weights a and -b with a * voxels of the first = b * voxels of the second, or nearly.
void compare_means(Cuboid& first, Cuboid& second) {
  const auto a = static_cast<double>(first.voxels()), b = static_cast<double>(second.voxels());
  const int64_t common = std::gcd(first.voxels(), second.voxels());
  const double fit = std::min(1.0, kMaximumWeight * static_cast<double>(common) / std::max(a, b));
  const auto weight = [&](double other) {
    return std::max(1, static_cast<int>(std::nearbyint(other / static_cast<double>(common) * fit)));
  };
  first.weight = weight(b);
  second.weight = -weight(a);
}

}  // namespace

BoxFeature boxes_of(const HaarFeature& feature) {
  BoxFeature boxes;
  boxes.box_count = feature.cuboid_count;
  boxes.channels.fill(feature.channel);
  boxes.boxes = feature.cuboids;
  return boxes;
}

BoxFeature draw_box_feature(const BoxSpec& spec, uint64_t seed, uint64_t stream, uint64_t index) {
  Draws draws(seed, stream, index);
  BoxFeature feature;
  feature.box_count = draws.unit() < 0.25 ? 1 : 2;
  for (auto& channel : feature.channels) {
    channel = static_cast<uint16_t>(draws.below(spec.channels));
  }
  for (int largest = std::min(spec.largest, 2 * spec.reach + 1);; largest = (largest + 1) / 2) {
    Draws again(seed, stream + 1, index * 16 + static_cast<uint64_t>(largest));
    for (int b = 0; b < feature.box_count; ++b) {
      feature.boxes[static_cast<size_t>(b)] = draw_box(spec, largest, again);
    }
    if (feature.box_count == 2) compare_means(feature.boxes[0], feature.boxes[1]);
    if (largest == 1 || value_bound(feature, spec.bounds) < int64_t{1} << 31) return feature;
  }
}

std::vector<Tap> corner_taps(const BoxFeature& feature) {
  std::vector<Tap> corners;
  corners.reserve(8 * static_cast<size_t>(feature.box_count));
  for (size_t b = 0; b < static_cast<size_t>(feature.box_count); ++b) {
    const Cuboid& box = feature.boxes[b];
    for (int corner = 0; corner < 8; ++corner) {
      const bool x = corner & 1, y = corner & 2, z = corner & 4;
      const bool positive = (x + y + z) % 2 == 1;  // S(hi,hi,hi) enters with +
      corners.push_back({static_cast<int16_t>(x ? box.hi.x : box.lo.x),
                         static_cast<int16_t>(y ? box.hi.y : box.lo.y),
                         static_cast<int16_t>(z ? box.hi.z : box.lo.z), feature.channels[b],
                         positive ? box.weight : -box.weight});
    }
  }
  const auto place = [](const Tap& tap) { return std::tuple(tap.channel, tap.dz, tap.dy, tap.dx); };
  std::ranges::sort(corners, [&](const Tap& a, const Tap& b) { return place(a) < place(b); });
  std::vector<Tap> taps;
  for (const Tap& corner : corners) {
    if (!taps.empty() && place(taps.back()) == place(corner)) {
      taps.back().weight += corner.weight;
    } else {
      taps.push_back(corner);
    }
  }
  std::erase_if(taps, [](const Tap& tap) { return tap.weight == 0; });
  return taps;
}

Vec3i reach_along(const BoxFeature& feature) {
  Vec3i r{};
  for (int b = 0; b < feature.box_count; ++b) {
    const Cuboid& box = feature.boxes[static_cast<size_t>(b)];
    for (int axis = 0; axis < 3; ++axis) {
      r[axis] = std::max({r[axis], -box.lo[axis], box.hi[axis] - 1});
    }
  }
  return r;
}

int64_t value_bound(const BoxFeature& feature, std::span<const int64_t> bounds) {
  int64_t bound = 0;
  for (size_t b = 0; b < static_cast<size_t>(feature.box_count); ++b) {
    const Cuboid& box = feature.boxes[b];
    bound += std::abs(int64_t{box.weight}) * box.voxels() * bounds[feature.channels[b]];
  }
  return bound;
}

}  // namespace larch::features
