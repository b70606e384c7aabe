// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/match/directions_math.h"
#include "larch/dsa/samples.h"

// What the literal method computes, pixel by pixel and block by block: US 2008/0037845.
namespace larch::dsa {

/// A place along an axis, the mask's pixels on both sides of it, and how much the second weighs.
struct LiteralPlace {
  int32_t first = 0, second = 0;
  uint32_t weight = 0;  ///< Q12
};
/// `units`: of 1/kUnit pixel. Beyond the image lie pixels of its edge, as textures have them.
LARCH_HD LiteralPlace literal_place(int32_t units, int32_t size) {
  const int32_t pixel = units >= 0 ? units / kUnit : -((kUnit - 1 - units) / kUnit);
  const int32_t fraction = units - pixel * kUnit, last = size - 1;
  const auto inside = [&](int32_t v) { return v < 0 ? 0 : v > last ? last : v; };
  // 4096 fraction / kUnit, rounded; it is never a half.
  static_assert(kUnit == 320);
  return {inside(pixel), inside(pixel + 1), static_cast<uint32_t>(fraction * 128 + 5) / 10};
}

/// Linear between two samples, rounded; kNoSample where one that weighs is.
LARCH_HD uint16_t literal_between(uint16_t first, uint16_t second, uint32_t weight) {
  if (weight == 0) return first;
  if (first == kNoSample || second == kNoSample) return kNoSample;
  return static_cast<uint16_t>((first * (4096 - weight) + second * weight + 2048) >> 12);
}

/// The mask at a place in units of 1/kUnit pixel, between pixels along x, then y, then z.
LARCH_HD uint16_t literal_sample(const uint16_t* mask, const Vec3i& size, const Vec3i& units) {
  const LiteralPlace x = literal_place(units.x, size.x), y = literal_place(units.y, size.y);
  const LiteralPlace z = literal_place(units.z, size.z);
  const auto row = [&](int32_t j, int32_t k) {
    const uint16_t* at = mask + (static_cast<int64_t>(k) * size.y + j) * size.x;
    return literal_between(at[x.first], at[x.second], x.weight);
  };
  const auto plane = [&](int32_t k) {
    const uint16_t first = row(y.first, k);
    return y.weight == 0 ? first : literal_between(first, row(y.second, k), y.weight);
  };
  const uint16_t first = plane(z.first);
  return z.weight == 0 ? first : literal_between(first, plane(z.second), z.weight);
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
  match.evaluations = found.evaluations;
  match.overflow = block.beyond_at(found.units, mu);
  if (found.at_edge) match.flags = kBlockAtEdge;
  return match;
}

}  // namespace larch::dsa
