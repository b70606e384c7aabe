// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/match/directions_math.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/sampling/interpolation_math.h"
#include "larch/dsa/similarity/difference_math.h"
#include "larch/dsa/similarity/rank_math.h"

// The search of one block: which displacements are tried in which order and which of them wins. All
// decisions are in whole numbers, so that a CPU thread and a block of CUDA threads that follow
// search_block find the same.
//
// What evaluates displacements is a `Block`; on CUDA all threads of a block of threads call the
// same functions with the same arguments and get the same answers. It has
//   Found window(const SearchPlan&, const Ranking&)
//     the best of all whole-pixel displacements of the window, see search_block;
//   void fill(const Vec3i& origin, int x0, int y0, int x1, int y1)
//     makes the scores of the lattice points x0..x1, y0..y1 known: the displacement of point (x, y)
//     is `origin` + (x, y) kTenth, |x|, |y| <= kLatticeReach; points that are known stay;
//   Score score(int x, int y) and int64_t similarity(int x, int y)
//     of a known point; similarity is ranking.similarity(score), kept since it divides.
namespace larch::dsa {

/// A fitted optimum is at most so many tenths away from it,
constexpr int kFitReach = 7;
/// and its fit needs lattice points up to here: 1.2 pixels.
constexpr int kLatticeReach = kFitReach + kLatticeHalf;
constexpr int kLatticeSide = 2 * kLatticeReach + 1;

/// Order of equally similar candidates: the shorter, then the smaller z, y and x.
LARCH_HD bool is_nearer(const Vec3i& a, const Vec3i& b) {
  const int32_t aa = dot(a, a), bb = dot(b, b);
  if (aa != bb) return aa < bb;
  if (a.z != b.z) return a.z < b.z;
  if (a.y != b.y) return a.y < b.y;
  return a.x < b.x;
}
/// Tells whether candidate a wins over b: a strict total order of different displacements, so that
/// any order of comparisons finds the same winner.
LARCH_HD bool wins(const Candidate& a, const Candidate& b, const Ranking& ranking) {
  if (ranking.is_better(a.score, b.score)) return true;
  return !ranking.is_better(b.score, a.score) && is_nearer(a.at, b.at);
}

/// Holds what is searched, the same for all blocks of a frame.
struct SearchPlan {
  Vec3i centre{};  ///< middle of the window, pixels
  int range = 10;  ///< the window reaches so far along each axis
  int axes = 2;    ///< 2: a picture, 3: a volume
};

/// Whole numbers that a quadratic is fitted from: sums over (2 r + 1)^2 points (x, y) around the
/// origin of q, their similarities, times x, y, x^2 - m, x y and y^2 - m, with m the mean of x^2:
/// these are orthogonal, so that each sum is a coefficient but for a constant.
struct QuadraticSums {
  int64_t x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  LARCH_HD void add(int32_t i, int32_t j, int32_t radius, int64_t q) {
    const int32_t mean = radius * (radius + 1) / 3;
    x += i * q;
    y += j * q;
    xx += (i * i - mean) * q;
    xy += i * j * q;
    yy += (j * j - mean) * q;
  }
};

/// An optimum between lattice points, in 2^-16 of their step.
struct Optimum {
  bool found = false;
  int64_t x = 0, y = 0;
};

LARCH_HD int64_t rounded_quotient(SignedWide numerator, SignedWide denominator) {  // both above 0
  return static_cast<int64_t>((numerator + denominator / 2) / denominator);
}
LARCH_HD int64_t signed_quotient(SignedWide numerator, SignedWide denominator, int64_t most) {
  const bool is_negative = (numerator < 0) != (denominator < 0);
  const SignedWide n = numerator < 0 ? -numerator : numerator;
  const SignedWide d = denominator < 0 ? -denominator : denominator;
  const int64_t size = n / d >= most ? most : rounded_quotient(n, d);
  return is_negative ? -size : size;
}

/// Returns the top of the least-squares quadratic through similarities at (2 r + 1)^2 points, r = 2
/// (or 5) so that r (r + 1) / 3 is whole; not found where the quadratic has no top. In whole
/// numbers: with the sums' norms a = sum of x^2, c = sum of (x^2 - m)^2, e = sum of x^2 y^2, the
/// top is at x = (c e / a) (c Sxy Sy - 2 e Syy Sx) / (4 e^2 Sxx Syy - c^2 Sxy^2), and y alike.
LARCH_HD Optimum quadratic_top(QuadraticSums sums, int32_t radius) {
  // Of more than 38 bits the lowest are left out, so that products fit into 127.
  int64_t most = 0;
  const int64_t all[5] = {sums.x, sums.y, sums.xx, sums.xy, sums.yy};
  for (int i = 0; i < 5; ++i) {
    const int64_t size = all[i] < 0 ? -all[i] : all[i];
    if (size > most) most = size;
  }
  int64_t scale = 1;
  while (most / scale >= (int64_t{1} << 38)) scale *= 2;
  const SignedWide x = sums.x / scale, y = sums.y / scale, xx = sums.xx / scale;
  const SignedWide xy = sums.xy / scale, yy = sums.yy / scale;
  const int64_t n = 2 * radius + 1, mean = radius * (radius + 1) / 3;
  int64_t squares = 0, fourths = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    squares += i * i;
    fourths += (i * i - mean) * (i * i - mean);
  }
  const int64_t c = n * fourths, e = squares * squares, ratio = fourths * squares;  // c e / a
  Optimum top;
  const SignedWide determinant = 4 * xx * yy * e * e - xy * xy * c * c;
  if (xx >= 0 || yy >= 0 || determinant <= 0) return top;
  top.found = true;
  const int64_t far = int64_t{1} << 32;  // further than anyone asks
  // ratio <= 2^17, the differences below 2^91: the quotients are taken before the factor 2^16
  // could overflow.
  const SignedWide nx = (c * xy * y - 2 * e * yy * x), ny = (c * xy * x - 2 * e * xx * y);
  top.x = signed_quotient(nx * ratio * 65536, determinant, far);
  top.y = signed_quotient(ny * ratio * 65536, determinant, far);
  return top;
}

/// Returns the bend at the best displacement of a window; see Bend. Workers share its points: each
/// takes every `step`-th from `first` on, and sum_of(value) adds the values of all. score_at(at):
/// the score at a step from the middle of the window.
template <class ScoreAt, class SumOf>
LARCH_HD Bend bend_of_window(const SearchPlan& plan, const Ranking& ranking, const Candidate& best,
                             int first, int step, const ScoreAt& score_at, const SumOf& sum_of) {
  constexpr int kSide = 2 * kBendReach + 1, kMean = kBendReach * (kBendReach + 1) / 3;  // of x^2
  const int64_t peak = ranking.similarity(best.score);
  if (peak == kNoSimilarity || plan.range < kBendReach) return {};
  const int rows = plan.axes > 2 ? kSide * kSide : kSide;
  const int32_t inner = plan.range - kBendReach;
  Vec3i centre;
  for (int axis = 0; axis < plan.axes; ++axis) {
    const int32_t at = component(best.at, axis);
    const int32_t clamped = at < -inner ? -inner : at > inner ? inner : at;
    centre = centre + along(axis, clamped);
  }
  int64_t sums[6] = {};
  for (int i = first; i < kSide * rows; i += step) {
    const Vec3i o{i % kSide - kBendReach, i / kSide % kSide - kBendReach,
                  plan.axes > 2 ? i / (kSide * kSide) - kBendReach : 0};
    const int64_t q = ranking.similarity(score_at(centre + o));
    if (q == kNoSimilarity) continue;
    const int32_t terms[6] = {o.x * o.x - kMean, o.y * o.y - kMean, o.z * o.z - kMean,
                              o.x * o.y,         o.x * o.z,         o.y * o.z};
    for (int k = 0; k < 6; ++k) sums[k] += terms[k] * (peak - q);
  }
  // A second derivative is its sum over 7 or 20 times the rows: half the sum of (x^2 - m)^2 of a
  // row is 7, and that of x^2 y^2 of the points is 100, 20 for each row.
  const SignedWide unit = ranking.metric == Metric::kEhd ? peak : int64_t{1} << 32;
  int32_t second[6];
  for (int k = 0; k < 6; ++k) {
    const SignedWide whole = unit * rows * (k < 3 ? 7 : 20);
    const auto sum = static_cast<SignedWide>(sum_of(sums[k]));
    second[k] = static_cast<int32_t>(signed_quotient(sum << kBendBits, whole, INT32_MAX));
  }
  if (plan.axes == 2) second[2] = 0;
  return {second[0], second[1], second[2], second[3], second[4], second[5]};
}

/// Returns the top of a parabola through values at -1, 0 and 1, in Q16 steps and at most half a
/// step away; 0 where it has none.
LARCH_HD int32_t parabola_top(SignedWide before, SignedWide here, SignedWide after) {
  const SignedWide bend = 2 * (before - 2 * here + after);
  if (bend >= 0) return 0;
  return static_cast<int32_t>(signed_quotient((before - after) * 65536, bend, 32768));
}

/// Fits a quadratic to similarities at (2 radius + 1)^2 points, `stride` tenths apart, around
/// (cx, cy) and gives its top in Q16 tenths from the lattice's origin, at most kFitReach away.
template <class SimilarityAt>
LARCH_HD Optimum fit_around(int cx, int cy, int radius, int stride,
                            const SimilarityAt& similarity_at) {
  QuadraticSums sums;
  for (int j = -radius; j <= radius; ++j) {
    for (int i = -radius; i <= radius; ++i) {
      const int64_t q = similarity_at(cx + i * stride, cy + j * stride);
      if (q == kNoSimilarity) return {};
      sums.add(i, j, radius, q);
    }
  }
  Optimum top = quadratic_top(sums, radius);
  const int64_t reach = int64_t{kFitReach} << 16;
  top.x = int64_t{cx} * 65536 + top.x * stride;
  top.y = int64_t{cy} * 65536 + top.y * stride;
  top.x = top.x > reach ? reach : top.x < -reach ? -reach : top.x;
  top.y = top.y > reach ? reach : top.y < -reach ? -reach : top.y;
  return top;
}

LARCH_HD int32_t whole_tenths(int64_t q16) {
  return static_cast<int32_t>((q16 + 32768) >> 16);
}
/// Q16 pixels of Q16 tenths.
LARCH_HD int32_t tenths_to_pixels(int64_t q16) {
  return static_cast<int32_t>(signed_quotient(q16, 10, int64_t{1} << 40));
}

/// Returns the best lattice point within half a pixel.
template <class Block>
LARCH_HD Candidate best_of_lattice(Block& block, const Vec3i& origin, const Ranking& ranking) {
  block.fill(origin, -kLatticeHalf, -kLatticeHalf, kLatticeHalf, kLatticeHalf);
  Candidate best{{0, 0, 0}, block.score(0, 0)};
  for (int y = -kLatticeHalf; y <= kLatticeHalf; ++y) {
    for (int x = -kLatticeHalf; x <= kLatticeHalf; ++x) {
      const Candidate next{{x, y, 0}, block.score(x, y)};
      if (wins(next, best, ranking)) best = next;
    }
  }
  return best;
}

/// fit_around at all lattice points within half a pixel.
template <class Block>
LARCH_HD Optimum fit_lattice(Block& block, const Vec3i& origin, int cx, int cy) {
  block.fill(origin, cx - kLatticeHalf, cy - kLatticeHalf, cx + kLatticeHalf, cy + kLatticeHalf);
  return fit_around(cx, cy, kLatticeHalf, 1, [&](int x, int y) { return block.similarity(x, y); });
}

/// Moves what was found, `origin` units away, to the top of a quadratic, if there is one.
LARCH_HD void move_to_top(Found& found, const Vec3i& origin, const Optimum& top) {
  if (!top.found) return;
  found.vector = q16_of(origin) + Vec3i{tenths_to_pixels(top.x), tenths_to_pixels(top.y), 0};
  found.units = units_of(found.vector);
}

/// Returns the whole search of a block of a picture: all whole pixels of the window, all tenths
/// around the best, and the top of the quadratic around the best of these, moved there once.
template <class Block>
LARCH_HD Found search_block(Block& block, const SearchPlan& plan, const Ranking& ranking) {
  Found found = block.window(plan, ranking);
  const Vec3i origin = (plan.centre + found.whole.at) * kUnit;
  const Candidate best = best_of_lattice(block, origin, ranking);
  Optimum top = fit_lattice(block, origin, best.at.x, best.at.y);
  const int cx = whole_tenths(top.x), cy = whole_tenths(top.y);
  if (top.found && (cx != best.at.x || cy != best.at.y)) {
    top = fit_lattice(block, origin, cx, cy);
  }
  found.units = origin + best.at * kTenth;
  found.vector = q16_of(found.units);
  move_to_top(found, origin, top);
  return found;
}

}  // namespace larch::dsa
