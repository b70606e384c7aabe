// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/core/host_device.h"

namespace larch::learning {

/// Most bins of a histogram weak classifier, whose outputs are the bits of one word. Training may
/// use fewer: the bins that are left then repeat the output of the last one, so that evaluation
/// need not know of it.
constexpr int kBins = 64;

/// Most weak classifiers of a strong one.
constexpr int kMaximumWeaks = 256;

constexpr int kAlphaBits = 20;                         ///< alpha and H are Q20 integers
constexpr int32_t kMaximumAlphaQ20 = 8 << kAlphaBits;  ///< e^-16 of the samples are wrong

/// Maps a feature value to a global code 0..255, once for the whole training: the value is clamped
/// to [lo, hi] first, so that no product overflows.
struct CodeMap {
  int32_t lo = 0, hi = 0;
  uint32_t multiplier = 0;  ///< floor(2^40 / (hi - lo + 1)), or 0 when hi - lo < 256: code = value
};

/// Rank of the order statistics of n values, from either end, that bound a code map: the thousandth
/// lowest and the thousandth highest.
LARCH_HD size_t low_rank(size_t n) {
  return (n - 1) / 1000;
}

LARCH_HD CodeMap make_code_map(int32_t lo, int32_t hi) {
  const uint32_t span = static_cast<uint32_t>(hi) - static_cast<uint32_t>(lo);
  CodeMap map{lo, hi, 0};
  if (span >= 256) map.multiplier = static_cast<uint32_t>((1ULL << 40) / (uint64_t{span} + 1));
  return map;
}

LARCH_HD bool same_map(const CodeMap& a, const CodeMap& b) {
  return a.lo == b.lo && a.hi == b.hi && a.multiplier == b.multiplier;
}

LARCH_HD uint32_t code_of(const CodeMap& map, int32_t value) {
  const int32_t clamped = value < map.lo ? map.lo : value > map.hi ? map.hi : value;
  const uint32_t x = static_cast<uint32_t>(clamped) - static_cast<uint32_t>(map.lo);
  if (map.multiplier == 0) return x;
  return static_cast<uint32_t>((uint64_t{x} * map.multiplier) >> 32);
}

/// Zooms the codes that occur at a node onto the bins.
struct BinMap {
  uint8_t first_code = 0;
  uint8_t shift = 0;
};

/// For codes from `smallest_code` to `largest_code` and 2 to 64 bins.
LARCH_HD BinMap make_bin_map(uint32_t smallest_code, uint32_t largest_code, int bins = kBins) {
  BinMap map{static_cast<uint8_t>(smallest_code), 0};
  while (((largest_code - smallest_code) >> map.shift) > static_cast<uint32_t>(bins) - 1) {
    ++map.shift;
  }
  return map;
}

LARCH_HD uint32_t bin_of(const BinMap& map, uint32_t code) {
  const uint32_t above = code > map.first_code ? code - map.first_code : 0;
  const uint32_t bin = above >> map.shift;
  return bin < kBins - 1 ? bin : kBins - 1;
}

/// Returns what a weak classifier says of a feature value: +1 when the bit of the value's bin is
/// set.
LARCH_HD bool weak_vote(const CodeMap& codes, const BinMap& bins, uint64_t mask, int32_t value) {
  return (mask >> bin_of(bins, code_of(codes, value))) & 1;
}

/// weak_vote rewritten for few instructions, with the same result for every value: `lo` is the
/// smallest value of bin 0's first code, bins follow from (value - lo) multiplier + remainder, and
/// the mask's bits beyond the largest value's bin repeat that bin's.
struct FastVote {
  int32_t lo = 0;
  uint32_t multiplier = 0, remainder = 0;
  uint32_t shift = 0;
  uint64_t mask = 0;
};

LARCH_HD FastVote make_fast_vote(const CodeMap& codes, const BinMap& bins, uint64_t mask) {
  const uint32_t last_code = code_of(codes, codes.hi);
  const uint64_t first = bins.first_code;
  FastVote vote;
  if (first > last_code) {  // every value is in bin 0
    vote.mask = mask & 1 ? ~uint64_t{0} : 0;
    return vote;
  }
  // The smallest value, from lo on, whose code is `first`. Codes rise by 0 or 1 from value to
  // value, since multipliers are less than 2^32.
  uint64_t above = first;
  vote.multiplier = vote.remainder = 0xffffffffu;  // (x (2^32 - 1) + 2^32 - 1) / 2^32 is x
  if (codes.multiplier != 0) {
    above = ((first << 32) + codes.multiplier - 1) / codes.multiplier;
    vote.multiplier = codes.multiplier;
    vote.remainder = static_cast<uint32_t>(above * codes.multiplier - (first << 32));
  }
  vote.lo = static_cast<int32_t>(static_cast<uint32_t>(codes.lo) + static_cast<uint32_t>(above));
  vote.shift = bins.shift;
  const uint32_t last_bin = bin_of(bins, last_code);
  const uint64_t beyond = ~uint64_t{0} << last_bin;
  vote.mask = (mask & ~beyond) | (mask >> last_bin & 1 ? beyond : 0);
  return vote;
}

/// 2 * (weighted error) of the histogram classifier is total - agreement(d): the sum of |D_b|.
LARCH_HD uint64_t histogram_agreement(const int32_t* d, int stride) {
  uint64_t sum = 0;
  for (int b = 0; b < kBins; ++b) {
    const int64_t value = d[b * stride];
    sum += static_cast<uint64_t>(value < 0 ? -value : value);
  }
  return sum;
}

/// Bit b of the mask of the histogram classifier: set where D_b > 0. A bin without a sample, or
/// with a tie, votes like the nearest decided one, the lower one on equal distance.
LARCH_HD bool histogram_bit(const int32_t* d, int stride, int b) {
  int32_t value = d[b * stride];
  for (int far = 1; value == 0 && far < kBins; ++far) {
    if (b >= far) value = d[(b - far) * stride];
    if (value == 0 && b + far < kBins) value = d[(b + far) * stride];
  }
  return value > 0;
}

LARCH_HD uint64_t histogram_mask(const int32_t* d, int stride) {
  uint64_t mask = 0;
  for (int b = 0; b < kBins; ++b) {
    if (histogram_bit(d, stride, b)) mask |= uint64_t{1} << b;
  }
  return mask;
}

/// Returns the mask of a classifier of `bins` bins, with the output of the last one repeated beyond
/// it.
LARCH_HD uint64_t repeat_last_bin(uint64_t mask, int bins) {
  if (bins >= kBins) return mask;
  const uint64_t beyond = ~uint64_t{0} << bins;
  return mask >> (bins - 1) & 1 ? mask | beyond : mask & ~beyond;
}

/// Returns the best threshold classifier on the same histogram: for cut c (bins below c against the
/// rest) the agreement is |2 P_c - P_64|, P the prefix sum of D. Returns the largest agreement over
/// c = 0..64 (lowest c wins a tie) and its mask.
LARCH_HD uint64_t threshold_agreement(const int32_t* d, int stride, uint64_t* mask) {
  int64_t total = 0;
  for (int b = 0; b < kBins; ++b) total += d[b * stride];
  int64_t prefix = 0;
  uint64_t best = 0;
  *mask = 0;
  for (int c = 0; c <= kBins; ++c) {
    const int64_t signed_agreement = total - 2 * prefix;  // positive above the cut
    const uint64_t agreement =
        static_cast<uint64_t>(signed_agreement < 0 ? -signed_agreement : signed_agreement);
    if (agreement > best || c == 0) {
      best = agreement;
      const uint64_t above = c == kBins ? 0 : ~uint64_t{0} << c;
      *mask = signed_agreement > 0 ? above : ~above;
    }
    if (c < kBins) prefix += d[c * stride];
  }
  return best;
}

/// Boosting weights are doubles; a histogram adds them as integers, so that the order of the sums
/// does not matter. A positive weight never becomes 0.
LARCH_HD int32_t quantised_weight(double weight, bool positive) {
  const double scaled = weight * 1073741824.0;  // 2^30
  const int32_t magnitude = scaled < 1.0 ? 1 : static_cast<int32_t>(scaled);
  return positive ? magnitude : -magnitude;
}

/// Returns the weighted error of a round whose winner agrees by so much.
LARCH_HD double weighted_error(uint64_t total, uint64_t agreement) {
  return static_cast<double>(total - agreement) / (2.0 * static_cast<double>(total));
}

/// Returns the normalised AdaBoost update: after it, right and wrong samples weigh one half each.
LARCH_HD double updated_weight(double weight, bool correct, double error) {
  return correct ? weight / (2.0 * (1.0 - error)) : weight / (2.0 * error);
}

/// Order of candidates within a round: smallest error, then fewest taps, then smallest index.
/// `error_units` is (total - agreement) plus the cost of the taps, at most 2^32 - 1.
LARCH_HD uint64_t candidate_key(uint64_t error_units, uint32_t taps, uint32_t feature) {
  const uint64_t capped = error_units < 0xffffffffULL ? error_units : 0xffffffffULL;
  return capped << 32 | static_cast<uint64_t>(taps < 255 ? taps : 255) << 24 | feature;
}

/// The weak classifiers of Birkbeck, Sofka, Zhou 2011, section 3.1: votes over a histogram of the
/// feature's values, or a threshold. They differ in training only.
enum class WeakKind : uint8_t { kHist64 = 0, kThreshold = 1 };
constexpr auto enum_names(WeakKind*) {
  return std::to_array<EnumName<WeakKind>>(
      {{WeakKind::kHist64, "hist64"}, {WeakKind::kThreshold, "threshold"}});
}

/// A thresholded feature: 64 votes over the bins of its value (Birkbeck et al., section 3.1; a
/// simple threshold is the special case of a mask with ones on one side).
struct WeakClassifier {
  uint32_t feature = 0;  ///< column of the feature source, or index into the features of a model
  CodeMap codes;
  BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};

}  // namespace larch::learning
