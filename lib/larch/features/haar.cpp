// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/haar.h"

#include <algorithm>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/features/box.h"

namespace larch::features {
namespace {

constexpr int kTypes = static_cast<int>(HaarType::kCount);

HaarFeature of(HaarType type, std::initializer_list<Cuboid> cuboids) {
  HaarFeature feature;
  feature.type = type;
  for (const Cuboid& c : cuboids) {
    feature.cuboids[static_cast<size_t>(feature.cuboid_count++)] = c;
  }
  return feature;
}

/// How many equal parts a family has along each axis.
Vec3i parts(HaarType type) {
  switch (type) {
    case HaarType::kEdgeX:
      return {2, 1, 1};
    case HaarType::kEdgeY:
      return {1, 2, 1};
    case HaarType::kEdgeZ:
      return {1, 1, 2};
    case HaarType::kLineX:
      return {3, 1, 1};
    case HaarType::kLineY:
      return {1, 3, 1};
    case HaarType::kLineZ:
      return {1, 1, 3};
    case HaarType::kCheckerXY:
      return {2, 2, 1};
    case HaarType::kCheckerXZ:
      return {2, 1, 2};
    case HaarType::kCheckerYZ:
      return {1, 2, 2};
    case HaarType::kCentreSurround:
      return {3, 3, 3};
    default:
      return {1, 1, 1};
  }
}

/// Returns the feature of a family whose parts have edge `s` and whose low corner is `lo`.
HaarFeature build(HaarType type, const Vec3i& s, const Vec3i& lo) {
  const Vec3i n = parts(type);
  const auto part = [&](int i, int j, int k, int32_t weight) {
    const Vec3i a{lo.x + i * s.x, lo.y + j * s.y, lo.z + k * s.z};
    return Cuboid{a, a + s, weight};
  };
  switch (type) {
    case HaarType::kBox:
    case HaarType::kOffsetPair:
      return of(type, {part(0, 0, 0, 1)});
    case HaarType::kEdgeX:
    case HaarType::kEdgeY:
    case HaarType::kEdgeZ:
      return of(type, {part(0, 0, 0, 1), part(n.x - 1, n.y - 1, n.z - 1, -1)});
    case HaarType::kLineX:
      return of(type, {part(0, 0, 0, 1), part(1, 0, 0, -2), part(2, 0, 0, 1)});
    case HaarType::kLineY:
      return of(type, {part(0, 0, 0, 1), part(0, 1, 0, -2), part(0, 2, 0, 1)});
    case HaarType::kLineZ:
      return of(type, {part(0, 0, 0, 1), part(0, 0, 1, -2), part(0, 0, 2, 1)});
    case HaarType::kCentreSurround:
      return of(type, {{lo, lo + s * 3, 1}, part(1, 1, 1, -27)});
    default: {  // the three checkers: one axis has a single part
      const int j1 = n.y - 1, k1 = n.z - 1;
      if (n.x == 1) {
        return of(type, {part(0, 0, 0, 1), part(0, 1, 0, -1), part(0, 0, 1, -1), part(0, 1, 1, 1)});
      }
      return of(type,
                {part(0, 0, 0, 1), part(1, 0, 0, -1), part(0, j1, k1, -1), part(1, j1, k1, 1)});
    }
  }
}

/// Low corners of a part sequence of edge `size` that fits the window, `size / 2` apart.
std::vector<int> positions(int parts_along, int size, int window) {
  std::vector<int> at;
  const int span = parts_along * size, half = window / 2;
  for (int lo = -half; lo + span <= half + 1; lo += std::max(1, size / 2)) at.push_back(lo);
  return at;
}

/// Visits the members of a family in their order: edge of a part, low corner.
template <typename Visit>
void enumerate(HaarType type, const HaarPoolSpec& spec, const Visit& visit) {
  const Vec3i n = parts(type);
  for (const int sz : spec.sizes) {
    const std::vector<int> zs = positions(n.z, sz, spec.window);
    for (const int sy : spec.sizes) {
      const std::vector<int> ys = positions(n.y, sy, spec.window);
      for (const int sx : spec.sizes) {
        if (type == HaarType::kCentreSurround && (sx != sy || sy != sz)) continue;
        const std::vector<int> xs = positions(n.x, sx, spec.window);
        for (const int z : zs) {
          for (const int y : ys) {
            for (const int x : xs) visit(Vec3i{sx, sy, sz}, Vec3i{x, y, z});
          }
        }
      }
    }
  }
}

/// Returns the `quota` members of a family of lowest hash, in their order. Only these are built: a
/// family may have a hundred times as many.
std::vector<HaarFeature> members(HaarType type, const HaarPoolSpec& spec, size_t quota,
                                 uint64_t stream) {
  std::vector<uint64_t> hashes;
  enumerate(type, spec, [&](const Vec3i&, const Vec3i&) {
    hashes.push_back(hash64(spec.seed, stream, hashes.size()));
  });
  const bool all = hashes.size() <= quota;
  std::vector<uint64_t> sorted;
  if (!all) {
    sorted = hashes;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(quota),
                     sorted.end());
  }
  std::vector<HaarFeature> kept;
  size_t i = 0;
  enumerate(type, spec, [&](const Vec3i& size, const Vec3i& lo) {
    if (all || hashes[i] < sorted[quota]) kept.push_back(build(type, size, lo));
    ++i;
  });
  return kept;
}

/// Member `index` of the long-range pairs: two boxes of equal size anywhere in the window.
HaarFeature draw_pair(const HaarPoolSpec& spec, uint64_t stream, uint64_t index) {
  const int half = spec.window / 2;
  uint64_t counter = index * 16;
  const auto below = [&](int n) {
    return static_cast<int>(hash_below(spec.seed, stream, counter++, static_cast<uint32_t>(n)));
  };
  Vec3i size, a, b;
  for (int axis = 0; axis < 3; ++axis) {
    size[axis] = std::min(
        spec.sizes[static_cast<size_t>(below(static_cast<int>(spec.sizes.size())))], spec.window);
    a[axis] = below(spec.window - size[axis] + 1) - half;
    b[axis] = below(spec.window - size[axis] + 1) - half;
  }
  if (a == b) b.x = a.x > -half ? -half : half + 1 - size.x;
  return of(HaarType::kOffsetPair, {{a, a + size, 1}, {b, b + size, -1}});
}

void check(const HaarPoolSpec& spec) {
  if (spec.window < 3 || spec.window % 2 == 0 || spec.window > 255) {
    throw UsageError("features/window: " + std::to_string(spec.window) +
                     " is not an odd number from 3 to 255");
  }
  if (spec.sizes.empty() || *std::min_element(spec.sizes.begin(), spec.sizes.end()) < 1) {
    throw UsageError("features/sizes: needs at least one box size of 1 voxel or more");
  }
  if (*std::min_element(spec.sizes.begin(), spec.sizes.end()) >= spec.window) {
    throw UsageError("features/sizes: each box fills the window of " + std::to_string(spec.window) +
                     " voxels, so that no two can be compared; give a smaller size");
  }
  if (spec.features < 1 || spec.features >= (1 << 24)) {
    throw UsageError("features/count: must be from 1 to 2^24 - 1");
  }
}

}  // namespace

const char* to_string(HaarType type) {
  static constexpr std::array<const char*, kTypes> kNames{
      "box",    "edge-x",     "edge-y",     "edge-z",     "line-x",          "line-y",
      "line-z", "checker-xy", "checker-xz", "checker-yz", "centre-surround", "offset-pair"};
  return kNames[static_cast<size_t>(type)];
}

std::vector<HaarFeature> make_haar_pool(const HaarPoolSpec& spec) {
  check(spec);
  const size_t per_channel = static_cast<size_t>(spec.features / std::max(1, spec.channels));
  const size_t quota = std::max<size_t>(1, per_channel / kTypes);
  std::vector<HaarFeature> families;
  for (int type = 0; type < kTypes - 1; ++type) {
    const std::vector<HaarFeature> family =
        members(static_cast<HaarType>(type), spec, quota, static_cast<uint64_t>(type));
    families.insert(families.end(), family.begin(), family.end());
  }
  std::vector<HaarFeature> pool;
  for (int channel = 0; channel < spec.channels; ++channel) {
    std::vector<HaarFeature> here = families;
    const uint64_t stream = 1000 + static_cast<uint64_t>(channel);
    for (uint64_t i = 0; here.size() < per_channel; ++i) {
      const HaarFeature pair = draw_pair(spec, stream, i);
      if (!corner_taps(pair).empty())
        here.push_back(pair);  // two boxes that fill the window are one
    }
    for (HaarFeature& feature : here) {
      feature.channel = static_cast<uint16_t>(channel);
      feature.pool_index = static_cast<uint32_t>(pool.size());
      pool.push_back(feature);
    }
  }
  return pool;
}

std::vector<Tap> corner_taps(const HaarFeature& feature) {
  return corner_taps(boxes_of(feature));
}

Vec3i reach_along(const HaarFeature& feature) {
  return reach_along(boxes_of(feature));
}

int reach(const HaarFeature& feature) {
  const Vec3i r = reach_along(feature);
  return std::max({r.x, r.y, r.z});
}

int64_t value_bound(const HaarFeature& feature, int64_t max_abs_value) {
  BoxFeature boxes = boxes_of(feature);
  boxes.channels.fill(0);
  return value_bound(boxes, std::span(&max_abs_value, 1));
}

void check_exact(const std::vector<HaarFeature>& pool, const std::vector<int64_t>& max_abs_value) {
  for (const HaarFeature& feature : pool) {
    const int64_t bound = value_bound(feature, max_abs_value.at(feature.channel));
    if (bound >= (int64_t{1} << 31)) {
      throw UsageError("feature " + std::to_string(feature.pool_index) + " (" +
                       to_string(feature.type) + ") could reach " + std::to_string(bound) +
                       ", beyond 32 bits: use smaller boxes, a coarser pyramid level or a narrower "
                       "intensity range");
    }
  }
}

}  // namespace larch::features
