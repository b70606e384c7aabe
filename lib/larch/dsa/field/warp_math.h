// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/match/search_math.h"

// Sampling of the mask for the output, differences and their mode; in whole numbers.
namespace larch::dsa {

/// The taps of one axis at a place, clamped to the image.
struct AxisTaps {
  int32_t at[4] = {};
  int32_t w[4] = {};
  int32_t nearest = 0;
  bool is_beyond = false;  ///< a tap with a weight was beyond the image
};
LARCH_HD int32_t clamped(int32_t v, int32_t size) {
  return v < 0 ? 0 : v >= size ? size - 1 : v;
}
LARCH_HD AxisTaps axis_taps(const WarpTable& table, int32_t x, int32_t d_units, int32_t size) {
  AxisTaps taps;
  const int32_t whole = floor_quotient(d_units, kUnit), fraction = d_units - whole * kUnit;
  const int32_t pixel = x + whole;
  for (int i = 0; i < 4; ++i) {
    const int32_t at = pixel - 1 + i;
    taps.w[i] = table.at[fraction].w[i];
    taps.at[i] = clamped(at, size);
    if (taps.at[i] != at && taps.w[i] != 0) taps.is_beyond = true;
  }
  taps.nearest = clamped(pixel + (2 * fraction >= kUnit ? 1 : 0), size);
  return taps;
}

/// contrast - mask in 1/2^kDifferenceBits of a sample's step, rounded once, halves up. `of_axes`:
/// 2 for a picture, whose sum has 2 kWarpBits fraction bits, or 3.
LARCH_HD int32_t difference_of(uint16_t contrast, int64_t mask_sum, int of_axes) {
  const int drop = of_axes * kWarpBits - kDifferenceBits;
  const int64_t difference = (static_cast<int64_t>(contrast) << (of_axes * kWarpBits)) - mask_sum;
  return static_cast<int32_t>((difference + (int64_t{1} << (drop - 1))) >> drop);
}

/// Returns a row of taps: at most 65535 * 2^14 * 1.25, which fits into 31 bits.
LARCH_HD int32_t row_sum(const uint16_t* row, const AxisTaps& x) {
  return x.w[0] * row[x.at[0]] + x.w[1] * row[x.at[1]] + x.w[2] * row[x.at[2]] +
         x.w[3] * row[x.at[3]];
}
LARCH_HD int64_t plane_sum(const uint16_t* plane, int32_t width, const AxisTaps& x,
                           const AxisTaps& y) {
  int64_t sum = 0;
  for (int j = 0; j < 4; ++j) {
    if (y.w[j] == 0) continue;
    sum += static_cast<int64_t>(y.w[j]) * row_sum(plane + static_cast<int64_t>(y.at[j]) * width, x);
  }
  return sum;
}

/// The difference at a pixel of a frame, and what it is made of.
struct DifferenceAt {
  int32_t value = 0;
  Validity validity = Validity::kValid;
};

/// `d`: the field there, in units.
LARCH_HD DifferenceAt difference_at(const SubtractJob& images, int64_t frame, const Vec3i& at,
                                    const Vec3i& d) {
  const Vec3i& size = images.size;
  const WarpTable& table = *images.taps;
  const int64_t plane = static_cast<int64_t>(size.x) * size.y;
  const int64_t pixel = at.z * plane + static_cast<int64_t>(at.y) * size.x + at.x;
  const int64_t contrast = frame * plane * size.z + pixel;
  const AxisTaps x = axis_taps(table, at.x, d.x, size.x);
  const AxisTaps y = axis_taps(table, at.y, d.y, size.y);
  DifferenceAt out;
  bool is_beyond = x.is_beyond || y.is_beyond;
  int64_t nearest = static_cast<int64_t>(y.nearest) * size.x + x.nearest;
  if (size.z == 1) {
    const int64_t sum = plane_sum(images.mask_values, size.x, x, y);
    out.value = difference_of(images.contrast_values[contrast], sum, 2);
  } else {
    const AxisTaps z = axis_taps(table, at.z, d.z, size.z);
    int64_t sum = 0;
    for (int k = 0; k < 4; ++k) {
      if (z.w[k] == 0) continue;
      sum += z.w[k] * plane_sum(images.mask_values + z.at[k] * plane, size.x, x, y);
    }
    out.value = difference_of(images.contrast_values[contrast], sum, 3);
    is_beyond = is_beyond || z.is_beyond;
    nearest += z.nearest * plane;
  }
  if (images.region != nullptr && images.region[pixel] == 0) {
    out.validity = Validity::kOutside;
  } else if (images.contrast_samples[contrast] == kNoSample ||
             images.mask_samples[nearest] == kNoSample) {
    out.validity = Validity::kSaturated;
  } else if (is_beyond) {
    out.validity = Validity::kBeyondMask;
  }
  return out;
}

/// The histogram that the mode is found in: differences rounded to steps of a sample, halves up.
constexpr int32_t kModeReach = 1 << 17;
constexpr int32_t kModeBins = 2 * kModeReach;
LARCH_HD int32_t mode_bin(int32_t difference) {
  const int32_t step =
      (difference + (1 << (kDifferenceBits - 1))) >> kDifferenceBits;  // at most 1.6 x 65535
  return step + kModeReach;
}

/// Where a histogram's lower median lies and how far half of its entries are away from it.
struct Spread {
  int64_t total = 0;
  int32_t median = 0, deviation = 0;
};
LARCH_HD Spread spread_of(const uint32_t* counts, int32_t bins) {
  Spread spread;
  for (int32_t i = 0; i < bins; ++i) spread.total += counts[i];
  if (spread.total == 0) return spread;
  const int64_t wanted = (spread.total + 1) / 2;
  for (int64_t below = counts[0]; below < wanted; below += counts[spread.median]) ++spread.median;
  int64_t within = counts[spread.median];
  while (within < wanted) {
    ++spread.deviation;
    const int32_t low = spread.median - spread.deviation, high = spread.median + spread.deviation;
    if (low >= 0) within += counts[low];
    if (high < bins) within += counts[high];
  }
  return spread;
}

/// Half of the window whose fullest place is the mode, without its middle step.
LARCH_HD int32_t mode_half_window(int32_t deviation) {
  return static_cast<int32_t>(int64_t{14826} * deviation / 40000);
}

LARCH_HD int64_t window_count(const uint32_t* counts, int32_t bins, int32_t middle, int32_t half) {
  int64_t sum = 0;
  for (int32_t i = middle - half; i <= middle + half; ++i) {
    if (i >= 0 && i < bins) sum += counts[i];
  }
  return sum;
}

/// Returns the mode from the fullest window and those on both sides: its middle and what a parabola
/// through their counts adds, in 1/16 of a step.
LARCH_HD int32_t refined_mode(int64_t before, int64_t here, int64_t after, int32_t middle,
                              int32_t half) {
  const int32_t width = 2 * half + 1;
  const int32_t top = parabola_top(before, here, after);  // Q16
  const int64_t fraction = (int64_t{top} * width * (1 << kDifferenceBits) + 32768) >> 16;
  return (middle - kModeReach) * (1 << kDifferenceBits) + static_cast<int32_t>(fraction);
}

/// Returns the mode of a histogram by mode_bin; 0 of an empty one.
LARCH_HD int32_t mode_of(const uint32_t* counts) {
  const Spread spread = spread_of(counts, kModeBins);
  if (spread.total == 0) return 0;
  const int32_t half = mode_half_window(spread.deviation);
  int64_t sum = window_count(counts, kModeBins, 0, half), most = sum;
  int32_t fullest = 0;
  for (int32_t middle = 1; middle < kModeBins; ++middle) {
    if (middle + half < kModeBins) sum += counts[middle + half];
    if (middle - half > 0) sum -= counts[middle - half - 1];
    if (sum > most) {
      most = sum;
      fullest = middle;
    }
  }
  const int32_t width = 2 * half + 1;
  return refined_mode(window_count(counts, kModeBins, fullest - width, half), most,
                      window_count(counts, kModeBins, fullest + width, half), fullest, half);
}

/// A difference in grey values, rounded to even halves, and whether it did not fit.
struct GreyValue {
  int16_t value = 0;
  bool is_clipped = false;
};
LARCH_HD GreyValue grey_value(int32_t difference, int32_t mode, int32_t sign, int32_t shift) {
  const int32_t v = sign * (difference - mode);
  const int32_t half = (1 << shift) >> 1, rest = v & ((1 << shift) - 1);
  int32_t rounded = v >> shift;
  if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
  if (rounded > 32767) return {32767, true};
  if (rounded < -32768) return {-32768, true};
  return {static_cast<int16_t>(rounded), false};
}

/// Returns the field of a frame.
LARCH_HD FieldView view_of(const SubtractJob& job, int64_t frame) {
  FieldView view{{job.axes[0], job.axes[1], job.axes[2]}, nullptr, job.border};
  const int64_t blocks = static_cast<int64_t>(job.axes[0].count) * job.axes[1].count;
  if (job.vectors != nullptr) view.vectors = job.vectors + frame * blocks * job.axes[2].count;
  return view;
}
/// In pixels, as it is written.
LARCH_HD Vec3f field_in_pixels(const Vec3i& units) {
  return {static_cast<float>(units.x) / kUnit, static_cast<float>(units.y) / kUnit,
          static_cast<float>(units.z) / kUnit};
}

}  // namespace larch::dsa
