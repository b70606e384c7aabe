// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_samples.cuh"
#include "cuda/dsa/histogram.cuh"

namespace larch::dsa::cuda {

/// Pixels per row of the part of the mask below a base field, and its rows at most.
constexpr int32_t kFieldRow = 112;
constexpr int32_t kFieldRows = 112;
/// Pixels of a block at most: while the field is found, it lies where the histograms come to lie.
constexpr int32_t kFieldPixels = kWarps * kBins / 2;
/// Displacements that are taken at once, one below the other: one per histogram.
constexpr int kColumn = kWarps;
/// Words of the weights' table: two per fraction, of which the last lie below the next pixel.
constexpr int32_t kTapWords = 2 * (kUnit + (kColumn - 1) * kTenth);

/// The samples of a block at displacements that add to a base field, with all that they are made of
/// in shared memory: the block, the part of the mask that the field and the window reach, and the
/// place in it of each pixel. Blocks below which the field varies so much that this part is too
/// large do not fit.
class FieldSamples {
 public:
  static constexpr bool kNeverUnchecked = false;
  static constexpr bool kHasColumns = true;

  __device__ FieldSamples(const MatchArguments& a, const SharedPlan& plan)
      : a_(a), plan_(plan), pixels_(a.block.x * a.block.y) {}

  __device__ Vec3i base_at_centre(int32_t frame, int32_t block) const {
    return base_at_centre_of(a_, frame, block);
  }

  /// Reads the contrast block and finds the field below it; this thread's pixels that count.
  __device__ uint32_t move_to(int32_t frame, int32_t block) {
    x_ = a_.starts_x[block % a_.blocks_x];
    y_ = a_.starts_y[block / a_.blocks_x];
    if (threadIdx.x < 2) {
      least(static_cast<int>(threadIdx.x)) = INT32_MAX;
      most(static_cast<int>(threadIdx.x)) = INT32_MIN;
    }
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < kTapWords / 2; i += kThreads) {
      // Of four rows from the one before the nearest on, one more for fractions beyond the pixel's.
      const bool is_below = i >= kUnit;
      const Taps& taps = a_.taps.at[is_below ? i - kUnit : i];
      const uint32_t w[3] = {static_cast<uint32_t>(taps.w[0]), static_cast<uint32_t>(taps.w[1]),
                             static_cast<uint32_t>(taps.w[2])};
      shared_words[plan_.taps + 2 * i] = is_below ? w[0] << 16 : w[0] | w[1] << 16;
      shared_words[plan_.taps + 2 * i + 1] = is_below ? w[1] | w[2] << 16 : w[2];
    }
    __syncthreads();
    find_base(base_of(a_, frame));
    const int64_t pixels = static_cast<int64_t>(a_.image.x) * a_.image.y;
    const uint16_t* contrast =
        a_.contrast + frame * pixels + static_cast<int64_t>(y_) * a_.image.x + x_;
    uint32_t counted = 0;
    for (int32_t y = static_cast<int32_t>(threadIdx.x / 32); y < a_.block.y; y += kWarps) {
      for (int32_t x = static_cast<int32_t>(threadIdx.x % 32); x < a_.block.x; x += 32) {
        const uint16_t sample = contrast[static_cast<int64_t>(y) * a_.image.x + x];
        half_word(plan_.contrast, y * a_.block.x + x) = sample;
        counted += sample != kNoSample;
      }
    }
    __syncthreads();
    return counted;
  }

  /// Reads the mask for displacements of at most `range` pixels from `centre`. `counted`: of the
  /// contrast block.
  __device__ void prepare(const Vec3i& centre, int32_t range, uint32_t counted) {
    const int32_t around = range + kMargin;
    const auto first = [&](int axis, int32_t at) { return split_step(at).pixel - around; };
    mask_x_ = first(0, least(0) + centre.x * kUnit);
    mask_y_ = first(1, least(1) + centre.y * kUnit);
    const int32_t width = split_step(most(0) + centre.x * kUnit).pixel + around + 1 - mask_x_;
    const int32_t height = split_step(most(1) + centre.y * kUnit).pixel + around + 1 - mask_y_;
    fits_ = width <= kFieldRow && height <= kFieldRows;
    if (fits_) {
      const int32_t x = kUnit / 2 + (centre.x - mask_x_) * kUnit;
      const int32_t y = kUnit / 2 + (centre.y - mask_y_) * kUnit;
      for (int32_t i = static_cast<int32_t>(threadIdx.x); i < pixels_; i += kThreads) {
        const auto at = static_cast<uint32_t>(i);
        shared_words[plan_.base + at] = packed(static_cast<int32_t>(shared_words[2 * at]) + x,
                                               static_cast<int32_t>(shared_words[2 * at + 1]) + y);
      }
      centre_ = centre * kUnit;
    }
    __syncthreads();
    clear_histograms(kWarps);
    bool misses = counted != static_cast<uint32_t>(pixels_);
    if (fits_) misses = load_mask(width, height) || misses;
    is_checked_ = __syncthreads_or(misses) != 0;
  }
  __device__ bool fits() const { return fits_; }
  __device__ void reach(const Vec3i&) {}
  __device__ bool is_checked() const { return is_checked_; }

  /// Calls sink.one(contrast, mask) for the pixels that count of rows first..last-1.
  template <class Sink>
  __device__ void visit(const Vec3i& units, int32_t first, int32_t last, const Sink& sink) const {
    const int32_t end = last * a_.block.x;
    const uint32_t by = packed(units.x - centre_.x, units.y - centre_.y);
    auto i = first * a_.block.x + static_cast<int32_t>(threadIdx.x % 32);
    if constexpr (Sink::kIsChecked) {
      for (; i < end; i += 32) {
        const uint32_t contrast = half_word(plan_.contrast, i);
        if (contrast == kNoSample) continue;
        const uint32_t mask = sample<true>(shared_words[plan_.base + i] + by);
        if (mask != kNoSample) sink.one(contrast, mask);
      }
    } else {
#pragma unroll 2
      for (; i < end; i += 32) {
        sink.one(half_word(plan_.contrast, i), sample<false>(shared_words[plan_.base + i] + by));
      }
    }
  }

  /// Counts `count` displacements, each `step` below the one before, in histograms of their own: at
  /// most kColumn, by pixels (step kUnit) or tenths (step kTenth), where all samples count and
  /// `bins` fit (see there). The rows that they share are filtered along x once.
  __device__ void visit_column(const Vec3i& units, int count, int32_t step, int32_t first,
                               int32_t last, const ColumnBins& bins) const {
    const int32_t end = last * a_.block.x;
    const uint32_t by = packed(units.x - centre_.x, units.y - centre_.y);
    for (auto i = first * a_.block.x + static_cast<int32_t>(threadIdx.x % 32); i < end; i += 32) {
      const Place at = split(shared_words[plan_.base + i] + by);
      const uint32_t contrast = bins.of_contrast(half_word(plan_.contrast, i));
      if (step == kTenth) {
        count_tenths(at, count, contrast, bins);
      } else {
        count_pixels(at, count, contrast, bins);
      }
    }
  }

 private:
  /// Of three samples along an axis.
  struct Weights {
    uint32_t before, here, after;
    __device__ uint32_t sum(uint32_t a, uint32_t b, uint32_t c) const {
      return (before * a + here * b + after * c + 2048) >> 12;
    }
  };
  /// The nearest pixel in the part of the mask, the weights along x and the fraction along y.
  struct Place {
    int32_t pixel;
    Weights along_x;
    uint32_t fraction_y;
  };
  __device__ Place split(uint32_t place) const {
    constexpr uint32_t kInverse = 13421773;  // 2^32 / kUnit, exact for quotients of 16 bits
    static_assert(kUnit == 320);
    const uint32_t x = place & 0xffffu, y = place >> 16;
    const uint32_t column = __umulhi(x, kInverse), row = __umulhi(y, kInverse);
    return {static_cast<int32_t>(row * kFieldRow + column), weights_at(x - column * kUnit),
            y - row * kUnit};
  }
  /// Returns a row near the place, filtered along x.
  __device__ uint32_t row_sum(const Place& at, int32_t row) const {
    const int32_t here = at.pixel + row * kFieldRow;
    return at.along_x.sum(half_word(plan_.mask, here - 1), half_word(plan_.mask, here),
                          half_word(plan_.mask, here + 1));
  }
  __device__ void count_tenths(const Place& at, int count, uint32_t contrast,
                               const ColumnBins& bins) const {
    uint32_t rows[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) rows[j] = 0u - row_sum(at, j - 1);
    const auto* weights = reinterpret_cast<const uint2*>(shared_words + plan_.taps) + at.fraction_y;
#pragma unroll
    for (int j = 0; j < kColumn; ++j) {
      if (j >= count) break;
      const uint2 w = weights[j * kTenth];
      bins.count(j, contrast + (w.x & 0xffffu) * rows[0] + (w.x >> 16) * rows[1] +
                        (w.y & 0xffffu) * rows[2] + (w.y >> 16) * rows[3]);
    }
  }
  __device__ void count_pixels(const Place& at, int count, uint32_t contrast,
                               const ColumnBins& bins) const {
    const Weights w = weights_at(at.fraction_y);
    uint32_t before = 0u - row_sum(at, -1), here = 0u - row_sum(at, 0);
#pragma unroll
    for (int j = 0; j < kColumn; ++j) {
      if (j >= count) break;
      const uint32_t after = 0u - row_sum(at, j + 1);
      bins.count(j, contrast + w.before * before + w.here * here + w.after * after);
      before = here;
      here = after;
    }
  }

  __device__ static uint16_t& half_word(uint32_t first_word, int32_t i) {
    return reinterpret_cast<uint16_t*>(shared_words + first_word)[i];
  }
  /// Returns the box around all places below the block, in units: for (x, y).
  __device__ int32_t& least(int axis) const {
    return reinterpret_cast<int32_t*>(shared_words + plan_.taps + kTapWords)[axis];
  }
  __device__ int32_t& most(int axis) const {
    return reinterpret_cast<int32_t*>(shared_words + plan_.taps + kTapWords)[2 + axis];
  }
  /// Places and steps of two axes in one word, so that one addition moves both: places in the part
  /// of the mask are from 0 to 2^16 - 1.
  __device__ static uint32_t packed(int32_t x, int32_t y) {
    return static_cast<uint32_t>(x) + (static_cast<uint32_t>(y) << 16);
  }

  /// The place below each pixel, less the centre of the window, in units; two words per pixel.
  __device__ void find_base(const Vec3i* base) const {
    int32_t low_x = INT32_MAX, low_y = INT32_MAX, high_x = INT32_MIN, high_y = INT32_MIN;
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < pixels_; i += kThreads) {
      const int32_t x = i % a_.block.x, y = i / a_.block.x;
      const Vec3i units = units_of(base[static_cast<int64_t>(y_ + y) * a_.image.x + x_ + x]);
      const int32_t at_x = (x_ + x) * kUnit + units.x, at_y = (y_ + y) * kUnit + units.y;
      shared_words[2 * i] = static_cast<uint32_t>(at_x);
      shared_words[2 * i + 1] = static_cast<uint32_t>(at_y);
      low_x = min(low_x, at_x);
      high_x = max(high_x, at_x);
      low_y = min(low_y, at_y);
      high_y = max(high_y, at_y);
    }
    low_x = __reduce_min_sync(kAllLanes, low_x);
    low_y = __reduce_min_sync(kAllLanes, low_y);
    high_x = __reduce_max_sync(kAllLanes, high_x);
    high_y = __reduce_max_sync(kAllLanes, high_y);
    if (threadIdx.x % 32 != 0) return;
    atomicMin(&least(0), low_x);
    atomicMin(&least(1), low_y);
    atomicMax(&most(0), high_x);
    atomicMax(&most(1), high_y);
  }

  /// The part of the mask; whether one of its samples that this thread has read does not count.
  __device__ bool load_mask(int32_t width, int32_t height) const {
    bool misses = false;
    for (int32_t j = static_cast<int32_t>(threadIdx.x / 32); j < height; j += kWarps) {
      const int32_t y = mask_y_ + j;
      const bool has_row = y >= 0 && y < a_.image.y;
      const uint16_t* row = a_.mask + static_cast<int64_t>(y) * a_.image.x;
#pragma unroll 4
      for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < width; i += 32) {
        const int32_t x = mask_x_ + i;
        const uint16_t value = has_row && x >= 0 && x < a_.image.x ? row[x] : kNoSample;
        half_word(plan_.mask, j * kFieldRow + i) = value;
        misses |= value == kNoSample;
      }
    }
    return misses;
  }

  __device__ Weights weights_at(uint32_t fraction) const {
    const uint2 w = reinterpret_cast<const uint2*>(shared_words + plan_.taps)[fraction];
    return {w.x & 0xffffu, w.x >> 16, w.y & 0xffffu};
  }

  /// mask_sample at a place.
  template <bool kChecked>
  __device__ uint32_t sample(uint32_t place) const {
    const Place at = split(place);
    const Weights &along_x = at.along_x, along_y = weights_at(at.fraction_y);
    uint32_t rows[3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int32_t here = at.pixel + (j - 1) * kFieldRow;
      const uint32_t a = half_word(plan_.mask, here - 1), b = half_word(plan_.mask, here);
      const uint32_t c = half_word(plan_.mask, here + 1);
      rows[j] = along_x.sum(a, b, c);
      if (kChecked && is_missing(a, b, c)) rows[j] = kNoSample;
    }
    const uint32_t value = along_y.sum(rows[0], rows[1], rows[2]);
    return kChecked && is_missing(rows[0], rows[1], rows[2]) ? kNoSample : value;
  }

  const MatchArguments& a_;
  const SharedPlan& plan_;
  int32_t pixels_;
  int32_t x_ = 0, y_ = 0;            // first pixel of the block
  int32_t mask_x_ = 0, mask_y_ = 0;  // first pixel of the part of the mask
  Vec3i centre_{};                   // of the window, units
  bool is_checked_ = true, fits_ = false;
};

}  // namespace larch::dsa::cuda
