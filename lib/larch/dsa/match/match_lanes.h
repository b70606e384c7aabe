// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/data/vec.h"
#include "larch/dsa/sampling/interpolation_math.h"
#include "larch/dsa/similarity/difference_math.h"

namespace larch::dsa::cpu {

/// Samples that the inner loops take together: rows are padded to a multiple of it.
constexpr int64_t kLanes = 16;
/// Index of pixels that are not counted, behind the bins.
constexpr uint16_t kNotCounted = kBins;
/// Counters of a histogram, and histograms that are filled in turn: consecutive pixels often fall
/// into the same bin, and a counter that was just written is slow to read.
constexpr int64_t kCounters = kBins + 32;
constexpr int64_t kHistograms = 4;

/// How differences become bins.
struct BinRule {
  int32_t mu = 0, shift = 0;
};

inline int64_t whole_lanes(int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

/// A part of the mask that is sampled pixel by pixel.
struct WarpPart {
  const uint16_t* samples;
  int64_t stride;
  const Taps* taps;  ///< by fraction + kUnit / 2
};

/// The inner loops of block matching, once for each instruction set; all give the same integers.
struct MatchLanes {
  const char* name;

  /// tap_sum of three rows; kNoSample where one of the three is. `count`: a multiple of kLanes.
  void (*tap_row)(const Taps& taps, const uint16_t* before, const uint16_t* here,
                  const uint16_t* after, int64_t count, uint16_t* out);

  /// bin_index of contrast - mask; kNotCounted where one of them is kNoSample.
  /// `count`: a multiple of kLanes.
  void (*bin_row)(const BinRule& rule, const uint16_t* contrast, const uint16_t* mask,
                  int64_t count, uint16_t* bins);

  /// mask_sample at (x_units[i] + by.x, y_units[i] + by.y), positions in the part that lie, with
  /// their taps and one sample more to the right, inside it. `count`: a multiple of kLanes.
  void (*warp_row)(const WarpPart& part, const Vec3i& by, const int32_t* x_units,
                   const int32_t* y_units, int64_t count, uint16_t* out);

  /// Returns the sum of squares of the sums of kHistograms times kCounters counters, bins only.
  /// Sums are at most 65535 and so are all together. Sets the counters to 0.
  uint32_t (*sum_of_squares)(uint16_t* counters);
};

/// The fastest set that this machine runs.
const MatchLanes& match_lanes();

/// Every set that this machine runs, the portable one first.
std::span<const MatchLanes> all_match_lanes();

/// Implementations of match_lanes.
extern const MatchLanes kPortableMatchLanes;
extern const MatchLanes kAvx2MatchLanes;  ///< only where the compiler targets x86-64

}  // namespace larch::dsa::cpu
