// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/sampling/interpolation_math.h"

// The dense field between the centres of blocks: US 2008/0037845, 0080, 0081 and 0132. In whole
// numbers, rounded once.
namespace larch::dsa {

/// Blocks along an axis.
struct FieldAxis {
  const int32_t* starts = nullptr;  ///< first pixels, on the device that interpolates
  int32_t count = 1;
  int32_t block = 64;
  LARCH_HD int32_t twice_centre(int32_t i) const { return 2 * starts[i] + block - 1; }
};

/// Vectors at the centres of blocks, by block (x fastest).
struct FieldView {
  FieldAxis axes[3]{};
  const Vec3i* vectors = nullptr;  ///< Q16 pixels
  BorderField border = BorderField::kClamp;
};

/// Weights of two neighbouring centres along an axis; their sum is `whole`. Index -1 is a vector 0.
struct AxisWeights {
  int32_t first = 0, second = 0;
  int32_t of_first = 1, of_second = 0;
  int32_t whole = 1;
};

LARCH_HD int32_t magnitude_of(int32_t v) {
  return v < 0 ? -v : v;
}
LARCH_HD AxisWeights weights_between(int32_t first, int32_t second, int32_t above, int32_t whole) {
  return {first, second, whole - above, above, whole};
}

/// Weights at half of `at` pixels along an axis, so that centres of blocks are whole numbers.
LARCH_HD AxisWeights axis_weights_at_half(const FieldAxis& axis, BorderField border, int32_t at) {
  const int32_t last = axis.count - 1;
  const int32_t least = axis.twice_centre(0), most = axis.twice_centre(last);
  if (at >= least && at < most) {
    int32_t i = static_cast<int32_t>(static_cast<int64_t>(at - least) * last / (most - least));
    while (i > 0 && axis.twice_centre(i) > at) --i;
    while (i + 1 < last && axis.twice_centre(i + 1) <= at) ++i;
    const int32_t from = axis.twice_centre(i);
    return weights_between(i, i + 1, at - from, axis.twice_centre(i + 1) - from);
  }
  const bool is_before = at < least;
  const int32_t beyond = is_before ? least - at : at - most;
  const int32_t end = is_before ? 0 : last, inner = is_before ? 1 : last - 1;
  const int32_t pitch =
      last == 0 ? 2 * axis.block : magnitude_of(axis.twice_centre(end) - axis.twice_centre(inner));
  const int32_t limited = beyond < pitch ? beyond : pitch;
  if (border == BorderField::kZero) return weights_between(end, -1, limited, pitch);
  if (border == BorderField::kLinear && last > 0) {
    return weights_between(end, inner, -limited, pitch);
  }
  return {end, end, 1, 0, 1};
}

/// Weights at pixel x of an axis.
LARCH_HD AxisWeights axis_weights(const FieldAxis& axis, BorderField border, int32_t x) {
  return axis_weights_at_half(axis, border, 2 * x);
}

/// A vector between centres before it is divided by the sum of its weights.
struct FieldSum {
  int64_t of[3] = {};  ///< Q16 pixels times `whole`
  int64_t whole = 1;
};

LARCH_HD FieldSum field_sum(const FieldView& field, const AxisWeights& wx, const AxisWeights& wy,
                            const AxisWeights& wz) {
  FieldSum sum;
  sum.whole = static_cast<int64_t>(wx.whole) * wy.whole * wz.whole;
  for (int corner = 0; corner < 8; ++corner) {
    const int64_t weight = static_cast<int64_t>(corner & 1 ? wx.of_second : wx.of_first) *
                           (corner & 2 ? wy.of_second : wy.of_first) *
                           (corner & 4 ? wz.of_second : wz.of_first);
    const int32_t i = corner & 1 ? wx.second : wx.first;
    const int32_t j = corner & 2 ? wy.second : wy.first;
    const int32_t k = corner & 4 ? wz.second : wz.first;
    if (weight == 0 || i < 0 || j < 0 || k < 0) continue;
    const int64_t row = static_cast<int64_t>(k) * field.axes[1].count + j;
    const Vec3i& v = field.vectors[row * field.axes[0].count + i];
    sum.of[0] += weight * v.x;
    sum.of[1] += weight * v.y;
    sum.of[2] += weight * v.z;
  }
  return sum;
}

/// Returns the same at half of `at` pixels.
LARCH_HD FieldSum field_sum_at_half(const FieldView& field, const Vec3i& at) {
  AxisWeights weights[3];
  for (int axis = 0; axis < 3; ++axis) {
    weights[axis] = axis_weights_at_half(field.axes[axis], field.border, at[axis]);
  }
  return field_sum(field, weights[0], weights[1], weights[2]);
}

/// In Q16 pixels, rounded, halves up.
LARCH_HD Vec3i field_q16(const FieldSum& sum) {
  Vec3i out;
  for (int c = 0; c < 3; ++c) {
    out[c] = static_cast<int32_t>(floor_quotient(2 * sum.of[c] + sum.whole, 2 * sum.whole));
  }
  return out;
}

/// Returns sum / whole in units of 1/kUnit pixel, rounded once, halves up, by a multiplication
/// instead of a division: `inverse` is 1 / (whole 2^kVectorBits), rounded, and the quotient is off
/// by one at most. Vectors of up to 127 pixels and blocks of up to 255 keep the products below
/// 2^63.
LARCH_HD int32_t units_of_sum(int64_t sum, int64_t whole, double inverse) {
  const int64_t numerator = sum * kUnit + (whole << (kVectorBits - 1));
  const int64_t denominator = whole << kVectorBits;
  auto quotient = static_cast<int64_t>(static_cast<double>(numerator) * inverse);
  int64_t rest = numerator - quotient * denominator;
  for (; rest < 0; rest += denominator) --quotient;
  for (; rest >= denominator; rest -= denominator) ++quotient;
  return static_cast<int32_t>(quotient);
}

/// Returns the field between centres in units; 0 without vectors.
LARCH_HD Vec3i units_at(const FieldView& field, const AxisWeights& x, const AxisWeights& y,
                        const AxisWeights& z) {
  if (field.vectors == nullptr) return {};
  const FieldSum sum = field_sum(field, x, y, z);
  const double inverse = 1.0 / static_cast<double>(sum.whole << kVectorBits);
  return {units_of_sum(sum.of[0], sum.whole, inverse), units_of_sum(sum.of[1], sum.whole, inverse),
          units_of_sum(sum.of[2], sum.whole, inverse)};
}

}  // namespace larch::dsa
