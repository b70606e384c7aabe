// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/learning/weak_math.h"

namespace larch::tree {

using learning::kAlphaBits;
using learning::kMaximumAlphaQ20;
constexpr uint32_t kOneQ30 = 1u << 30;  ///< probability 1, and a voxel's weight at the root
constexpr int kLogisticSteps = 4096;    ///< the table has one entry more
constexpr int kMaximumDepth = 32;

/// sigma(2H) as Q30 by linear interpolation in the table of the model: 4097 values of p * 2^30 for
/// z = 2H from -16 to 16; saturated beyond. Integers only.
LARCH_HD uint32_t logistic_q30(const uint32_t* table, int32_t h_q20) {
  const int64_t position = 2 * static_cast<int64_t>(h_q20) + (int64_t{16} << kAlphaBits);
  if (position <= 0) return table[0];
  if (position >= (int64_t{32} << kAlphaBits)) return table[kLogisticSteps];
  const int32_t entry = static_cast<int32_t>(position >> 13);
  const int64_t fraction = position & 8191;
  const int64_t rise = static_cast<int64_t>(table[entry + 1]) - table[entry];
  return static_cast<uint32_t>(table[entry] + ((rise * fraction) >> 13));
}

/// Where a voxel goes from a node: Birkbeck, Sofka, Zhou 2011, section 2.1, Algorithm 1, with H in
/// place of p (p > 1 - e1 is H > t1, p > 1/2 + e2 is H > t2; strict).
struct Thresholds {
  int32_t t1 = 0;    ///< beyond it the voxel descends one child with its whole weight
  int32_t t2 = 0;    ///< beyond it one child is descended, the other gives its empirical value
  int32_t hard = 0;  ///< 1: H > 0 right, otherwise left, with the whole weight (ibid., section 4.1)
};

/// The four parts into which a node splits the weight of a voxel; they add up to the weight.
struct Split {
  uint32_t descend_left = 0, descend_right = 0;
  uint32_t stop_left = 0, stop_right = 0;  ///< weight of the child's own empirical value
};

LARCH_HD Split split_weight(uint32_t weight, int32_t h, const Thresholds& t,
                            const uint32_t* logistic) {
  Split s;
  if (t.hard) {
    (h > 0 ? s.descend_right : s.descend_left) = weight;
    return s;
  }
  if (h > t.t1) {
    s.descend_right = weight;
    return s;
  }
  if (h < -t.t1) {
    s.descend_left = weight;
    return s;
  }
  const uint32_t right =
      static_cast<uint32_t>((static_cast<uint64_t>(weight) * logistic_q30(logistic, h)) >> 30);
  const uint32_t left = weight - right;
  (h < -t.t2 ? s.stop_right : s.descend_right) = right;
  (h > t.t2 ? s.stop_left : s.descend_left) = left;
  return s;
}

/// H of a node from the sum of the alphas of the votes +1. Twice that sum may need 32 bits without
/// sign; H never does, since it lies between -A and A.
LARCH_HD int32_t strong_value(int32_t votes, int32_t alpha_sum) {
  return static_cast<int32_t>(2u * static_cast<uint32_t>(votes) - static_cast<uint32_t>(alpha_sum));
}

/// Early rejection: once the remaining weak classifiers cannot bring H back across the outer
/// threshold, the voxel's way is certain. `partial` is the sum so far, `rest` the sum of the alphas
/// to come. Exact: the outcome of split_weight is unchanged.
LARCH_HD bool is_certain(int32_t partial, int32_t rest, const Thresholds& t) {
  const int32_t bound = t.hard ? 0 : t.t1;
  return partial - rest > bound || partial + rest < -bound;
}

/// Returns a value of H with the outcome that is certain.
LARCH_HD int32_t certain_value(int32_t partial, int32_t rest, const Thresholds& t) {
  return partial - rest > (t.hard ? 0 : t.t1) ? partial - rest : partial + rest;
}

/// Returns a tree's part of an ensemble's sum, Q40: 2^24 trees fit 64 bits. The posterior of an
/// ensemble is the mean of its trees' (US 2012/0069003 A1, figure 13).
LARCH_HD uint64_t ensemble_term(uint64_t q60) {
  return q60 >> 20;
}
/// The mean of the trees from the sum of their parts, Q60.
LARCH_HD uint64_t ensemble_mean_q60(uint64_t sum_q40, uint64_t trees) {
  return (sum_q40 / trees) << 20;
}

/// Output conversions of the accumulated probability, Q60.
LARCH_HD float probability_float(uint64_t q60) {
  return static_cast<float>(static_cast<double>(q60) * 0x1.0p-60);
}
LARCH_HD uint32_t probability_q32(uint64_t q60) {
  const uint64_t q = q60 >> 28;
  return q > 0xffffffffULL ? 0xffffffffu : static_cast<uint32_t>(q);
}

/// u * p / 2^30 rounded down for a training mass (Q32) and a probability (Q30): 128-bit product.
LARCH_HD uint64_t mass_times_q30(uint64_t mass, uint32_t p_q30) {
  const uint64_t high = (mass >> 32) * p_q30, low = (mass & 0xffffffffULL) * p_q30;
  const uint64_t carry = low >> 32;
  const uint64_t upper = high + carry;  // product = upper * 2^32 + (low & 0xffffffff)
  return (upper << 2) | ((low & 0xffffffffULL) >> 30);
}

}  // namespace larch::tree
