// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/match/directions_math.h"
#include "larch/dsa/samples.h"

// What the literal method computes, pixel by pixel and block by block: US 2008/0037845.
namespace larch::dsa {

/// A displacement: whole pixels, rounded down, and how much the next one weighs along each axis.
struct LiteralStep {
  Vec3i pixel{};
  Vec3i weight{};  ///< Q12
};
LARCH_HD LiteralStep literal_step(const Vec3i& units) {
  LiteralStep step;
  for (int axis = 0; axis < 3; ++axis) {
    const int32_t u = units[axis];
    step.pixel[axis] = floor_quotient(u, kUnit);
    // 4096 of a fraction of kUnit, rounded; it is never a half.
    static_assert(kUnit == 320);
    step.weight[axis] = ((u - step.pixel[axis] * kUnit) * 128 + 5) / 10;
  }
  return step;
}

/// Returns the linear between two samples, rounded; kNoSample where one that weighs is.
LARCH_HD uint16_t literal_between(uint16_t first, uint16_t second, int32_t weight) {
  if (weight == 0) return first;
  if (first == kNoSample || second == kNoSample) return kNoSample;
  return static_cast<uint16_t>((first * (4096 - weight) + second * weight + 2048) >> 12);
}

/// Returns the mask a step away from a pixel, between pixels along x, then y, then z. Beyond the
/// image lie pixels of its edge, as textures have them.
LARCH_HD uint16_t literal_sample(const uint16_t* mask, const Vec3i& size, const Vec3i& from,
                                 const LiteralStep& step) {
  const Vec3i at = from + step.pixel;
  const auto inside = [](int32_t v, int32_t end) { return v < 0 ? 0 : v >= end ? end - 1 : v; };
  const int32_t x = inside(at.x, size.x), next_x = inside(at.x + 1, size.x);
  const auto row = [&](int32_t j, int32_t k) {
    const uint16_t* line = mask + (static_cast<int64_t>(k) * size.y + inside(j, size.y)) * size.x;
    return literal_between(line[x], line[next_x], step.weight.x);
  };
  const auto plane = [&](int32_t k) {
    const uint16_t first = row(at.y, inside(k, size.z));
    if (step.weight.y == 0) return first;
    return literal_between(first, row(at.y + 1, inside(k, size.z)), step.weight.y);
  };
  const uint16_t first = plane(at.z);
  return step.weight.z == 0 ? first : literal_between(first, plane(at.z + 1), step.weight.z);
}

/// Ibid., 0117: conjugate directions, once along each axis, at whole pixels and then at tenths.
/// `block` has
///   uint32_t count_contrast()          contrast pixels that count;
///   int32_t median_at(const Vec3i&)    the lower median of the differences at a displacement;
///   Score score_at(const Vec3i&, mu)   the score there, of bins around mu;
///   uint32_t beyond_at(const Vec3i&, mu)  differences beyond these bins.
template <class Block>
LARCH_HD BlockMatch match_literally(const Block& block, int64_t pixels, const Vec3i& centre,
                                    int axes, int range, int32_t shift, Ranking ranking) {
  BlockMatch match;
  match.counted = block.count_contrast();
  match.vector = match.found = q16_of(centre * kUnit);
  if (int64_t{match.counted} * 4 < pixels) {
    match.flags = kBlockOutside;
    return match;
  }
  ranking.least_count = (match.counted + 1) / 2;
  const int32_t mu = rounded_to_bins(block.median_at(centre * kUnit), shift);
  const Found found = search_directions(
      centre, axes, range, /*rounds=*/1, ranking,
      [&](const Vec3i& units) { return block.score_at(units, mu); }, match.best);
  match.vector = match.found = found.vector;
  match.before = found.at_start;
  match.overflow = block.beyond_at(found.units, mu);
  if (found.at_edge) match.flags = kBlockAtEdge;
  return match;
}

}  // namespace larch::dsa
