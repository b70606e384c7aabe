// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/dsa_config.h"

// Histograms of differences and the similarities of US 2008/0037845, in whole numbers.
namespace larch::dsa {

/// A candidate's similarity before it is divided by what was counted. EHD (ibid., equation 3) is
/// A / n^2 with A the sum of squares of the histogram's entries h; entropy (equation 1) is
/// ln n - (sum of h ln h) / n. `sum` is A, or the sum of round(2^20 h ln h).
struct Score {
  uint64_t sum = 0;
  uint32_t count = 0;  ///< n, pixels that were counted
  uint32_t unused = 0;
};

/// Number of the bin of a difference before overflow is dealt with; bins are 2^shift steps of a
/// sample wide and centred on mu. Rounded down after adding half a bin: truncation would make the
/// bin of zero twice as wide, which attracts.
LARCH_HD int32_t bin_number(int32_t difference, int32_t mu, int32_t shift) {
  return (difference - mu + ((1 << shift) >> 1)) >> shift;
}
LARCH_HD bool is_overflow(int32_t number) {
  return number < -kBins / 2 || number >= kBins / 2;
}
/// Returns the index of the bin: differences beyond the bins wrap around, and are spread as thinly
/// as they are.
LARCH_HD int32_t bin_index(int32_t number) {
  return (number + kBins / 2) & (kBins - 1);
}
/// Returns the same where they count in the outermost bins, which then attract: the literal
/// method's.
LARCH_HD int32_t clamped_bin(int32_t number) {
  const int32_t index = number + kBins / 2;
  return index < 0 ? 0 : index >= kBins ? kBins - 1 : index;
}

/// Returns the constant of a block's differences, rounded to a multiple of the bin width.
LARCH_HD int32_t rounded_to_bins(int32_t median, int32_t shift) {
  return ((median + ((1 << shift) >> 1)) >> shift) << shift;
}

/// Bins are at most 2^kMaximumShift steps of a sample wide.
constexpr int32_t kMaximumShift = 12;
/// Returns the bin width as a shift, from the median absolute deviation of a frame's differences:
/// the largest power of two of at most a quarter of their standard deviation, 1.4826 MAD, and
/// 2^least at least.
LARCH_HD int32_t bin_shift_of(int64_t mad, int32_t least) {
  int32_t shift = least;
  while (shift < kMaximumShift && (int64_t{40000} << (shift + 1)) <= 14826 * mad) ++shift;
  return shift;
}

__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 SignedWide;

/// Tells whether candidate a is more similar than b by EHD. Where other pixels were counted, the
/// unbiased form U = (A - n) / (n (n - 1)) is compared, exactly. Nothing is less similar than a
/// candidate of fewer than two pixels.
LARCH_HD bool is_better_ehd(const Score& a, const Score& b) {
  if (a.count < 2) return false;
  if (b.count < 2) return true;
  if (a.count == b.count) return a.sum > b.sum;
  const uint64_t pairs_a = static_cast<uint64_t>(a.count) * (a.count - 1);
  const uint64_t pairs_b = static_cast<uint64_t>(b.count) * (b.count - 1);
  if (a.count <= 65535 && b.count <= 65535) {
    return (a.sum - a.count) * pairs_b > (b.sum - b.count) * pairs_a;
  }
  return static_cast<Wide>(a.sum - a.count) * pairs_b >
         static_cast<Wide>(b.sum - b.count) * pairs_a;
}

/// The same by entropy: (Q - T[n]) / n is compared, which is minus the entropy; T[h] is round(2^20
/// h ln h), and `t_a`, `t_b` are T of the two counts.
LARCH_HD bool is_better_entropy(const Score& a, int64_t t_a, const Score& b, int64_t t_b) {
  if (a.count < 2) return false;
  if (b.count < 2) return true;
  return static_cast<SignedWide>(static_cast<int64_t>(a.sum) - t_a) * b.count >
         static_cast<SignedWide>(static_cast<int64_t>(b.sum) - t_b) * a.count;
}

/// U in Q32, rounded down: what quadratics are fitted to. For at least two pixels.
LARCH_HD int64_t similarity_q32(const Score& score) {
  const uint64_t pairs = static_cast<uint64_t>(score.count) * (score.count - 1);
  const uint64_t squares = score.sum - score.count;  // at most `pairs`
  if (squares == pairs) return int64_t{1} << 32;
  if (score.count <= 65535) return static_cast<int64_t>((squares << 32) / pairs);
  return static_cast<int64_t>((static_cast<Wide>(squares) << 32) / pairs);
}

}  // namespace larch::dsa
