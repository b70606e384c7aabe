// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/vec.h"
#include "larch/levelset/speed/speed_math.h"

// Sums of intensities inside and outside of a surface, and which voxels outside count: those near
// to one inside. Sums are of integers, and sets are bits, so that both devices get the same in any
// order.
namespace larch::levelset {

/// Intensities as integers, whose sums fit 64 bits for any image: lowest + integer * per_step.
struct IntensitySteps {
  double lowest = 0, per_step = 1;

  /// Of a finite intensity of the image that the steps are of.
  LARCH_HD int32_t of(float intensity) const {
    return nearest_integer((static_cast<double>(intensity) - lowest) / per_step);
  }
};

/// What counts on the two sides of a surface: 0 is inside, 1 outside.
struct RegionSums {
  int64_t steps[2]{};   ///< the sum of IntensitySteps::of
  int64_t voxels[2]{};  ///< that it is of
};

/// A bit per voxel of an image: words of 32 voxels along x, the first in the lowest bit, rows one
/// after the other. Bits beyond the end of a row mean nothing.
struct BitRows {
  Vec3i size{};  ///< of the image, voxels
  int32_t words_per_row = 0;

  LARCH_HD int64_t rows() const { return static_cast<int64_t>(size.y) * size.z; }
  LARCH_HD int64_t words() const { return rows() * words_per_row; }
};
constexpr int32_t kWordVoxels = 32;

LARCH_HD BitRows make_bit_rows(const Vec3i& size) {
  return {size, (size.x + kWordVoxels - 1) / kWordVoxels};
}

/// The lowest `count` bits, and the highest; none or all where there are not so many.
LARCH_HD uint32_t low_bits(int32_t count) {
  return count <= 0 ? 0U : count >= kWordVoxels ? ~0U : (1U << count) - 1;
}
LARCH_HD uint32_t high_bits(int32_t count) {
  return ~low_bits(kWordVoxels - (count < 0 ? 0 : count));
}
/// Shifted to higher voxels, or to lower ones; by 0 to 31.
LARCH_HD uint32_t shifted(uint32_t bits, int32_t by, bool is_up) {
  return is_up ? bits << by : bits >> by;
}

/// The voxels of a word up to `reach` above one that is set, or below it, and these themselves.
LARCH_HD uint32_t spread(uint32_t bits, int32_t reach, bool is_up) {
  const int32_t most = reach < kWordVoxels - 1 ? reach : kWordVoxels - 1;
  for (int32_t done = 0; done < most;) {
    const int32_t more = done + 1 < most - done ? done + 1 : most - done;
    bits |= shifted(bits, more, is_up);
    done += more;
  }
  return bits;
}

/// The voxels of a word that are up to `reach` above the last one set of an earlier word of its
/// row, or below the first one set of a later word. `words`: how far away that is, at least 1.
LARCH_HD uint32_t spread_from(uint32_t other, int32_t words, int32_t reach, bool is_up) {
  const int32_t by = reach - words * kWordVoxels;
  if (other == 0 || by <= -kWordVoxels) return 0;
  // All up to the last one, or from the first one on, moved by what is left of the reach.
  const uint32_t filled = spread(other, kWordVoxels, !is_up);
  if (by < 0) return shifted(filled, -by, !is_up);
  const uint32_t passed = is_up ? low_bits(by) : high_bits(by);
  return by >= kWordVoxels ? ~0U : shifted(filled, by, is_up) | passed;
}

/// Word `at` of a row in which the voxels up to `reach` from one that is set are set.
LARCH_HD uint32_t widened_along_row(const uint32_t* row, int32_t words, int32_t at, int32_t reach) {
  uint32_t bits = spread(row[at], reach, true) | spread(row[at], reach, false);
  const int32_t most = (reach + kWordVoxels - 1) / kWordVoxels;
  for (int32_t away = 1; away <= most && bits != ~0U; ++away) {
    if (at >= away) bits |= spread_from(row[at - away], away, reach, true);
    if (at + away < words) bits |= spread_from(row[at + away], away, reach, false);
  }
  return bits;
}

/// Word `at` of `count` words of a column, `stride` apart, after the same along the column.
LARCH_HD uint32_t widened_along_column(const uint32_t* column, int64_t stride, int32_t count,
                                       int32_t at, int32_t reach) {
  uint32_t bits = column[at * stride];
  for (int32_t away = 1; away <= reach && bits != ~0U; ++away) {
    if (at >= away) bits |= column[(at - away) * stride];
    if (at + away < count) bits |= column[(at + away) * stride];
  }
  return bits;
}

}  // namespace larch::levelset
