// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_view.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/sampling_math.h"

// The samples of one block and of the mask at displacements of it: all threads of a block of
// threads call these functions together, but for visit, which is for one warp.
namespace larch::dsa::cuda {

/// The arguments that all blocks of a launch share; pointers are of the device.
struct MatchArguments {
  const uint16_t* mask = nullptr;
  const uint16_t* mask_at_zero = nullptr;
  const uint16_t* contrast = nullptr;
  Vec3i image{}, block{};
  int32_t blocks = 0, blocks_x = 0;
  int64_t items = 0;  ///< blocks of all frames
  const int32_t* starts_x = nullptr;
  const int32_t* starts_y = nullptr;
  const int32_t* bin_shift = nullptr;
  const Vec3i* centre = nullptr;
  BlockMatch* out = nullptr;
  int32_t range = 10;
  Ranking ranking{};             ///< without least_count
  bool has_whole_words = false;  ///< rows of images begin with a word of two samples
  TapTable taps{};
  const Vec3i* base = nullptr;  ///< the base field, Q16, by frame and pixel; null: none
};
/// The arguments of a job, with what they point to that is uploaded for them.
struct UploadedArguments {
  Buffer<int32_t> starts_x, starts_y;
  Buffer<uint64_t> terms;
  MatchArguments arguments;
};
UploadedArguments upload_arguments(const MatchJob& job, const Device& device);

/// Returns the base field of a frame.
__device__ inline const Vec3i* base_of(const MatchArguments& a, int32_t frame) {
  return a.base + static_cast<int64_t>(frame) * a.image.x * a.image.y;
}
/// Returns the base field, Q16, at the centre of a block.
__device__ inline Vec3i base_at_centre_of(const MatchArguments& a, int32_t frame, int32_t block) {
  const int32_t x = a.starts_x[block % a.blocks_x], y = a.starts_y[block / a.blocks_x];
  const int32_t left = x + (a.block.x - 1) / 2, right = x + a.block.x / 2;
  const int32_t top = y + (a.block.y - 1) / 2, bottom = y + a.block.y / 2;
  const Vec3i* upper = base_of(a, frame) + static_cast<int64_t>(top) * a.image.x;
  const Vec3i* lower = base_of(a, frame) + static_cast<int64_t>(bottom) * a.image.x;
  Vec3i mean;
  for (int c = 0; c < 3; ++c) {
    const int64_t sum =
        int64_t{upper[left][c]} + upper[right][c] + lower[left][c] + lower[right][c];
    mean[c] = static_cast<int32_t>(floor_quotient<int64_t>(2 * sum + 4, 8));
  }
  return mean;
}

/// The words of shared memory where its parts begin, and the sizes of what lies there. The
/// histograms come first.
struct SharedPlan {
  uint32_t contrast = 0, mask = 0, base = 0, scores = 0, similarities = 0;
  int64_t words = 0;  ///< of all
  int32_t pairs = 0, lanes_log2 = 5;
  int32_t pair_words = 0, mask_words = 0;  ///< per row
  int32_t mask_height = 0;                 ///< rows that fit
  uint32_t taps = 0;                       ///< of FieldSamples
};

/// Samples around the window that sampling between pixels may ask for.
constexpr int32_t kMargin = 3;

__device__ inline bool is_whole(const Vec3i& units) {
  return units.x % kUnit == 0 && units.y % kUnit == 0;
}

/// The block and the part of the mask around it in shared memory. kUsual: rows have the usual
/// lengths.
template <bool kUsual>
class TileSamples {
 public:
  static constexpr bool kNeverUnchecked = false;
  static constexpr bool kHasColumns = false;

  __device__ TileSamples(const MatchArguments& a, const SharedPlan& plan) : a_(a), plan_(plan) {}

  __device__ Vec3i base_at_centre(int32_t, int32_t) const { return {}; }

  /// Reads the contrast block; this thread's pixels that count.
  __device__ uint32_t move_to(int32_t frame, int32_t block) {
    x_ = a_.starts_x[block % a_.blocks_x];
    y_ = a_.starts_y[block / a_.blocks_x];
    const int64_t pixels = static_cast<int64_t>(a_.image.x) * a_.image.y;
    const uint16_t* origin =
        a_.contrast + frame * pixels + static_cast<int64_t>(y_) * a_.image.x + x_;
    const bool reads_words = a_.has_whole_words && x_ % 2 == 0 && a_.block.x % 2 == 0;
    uint32_t counted = 0;
    const auto take = [&](int32_t y, int32_t pair, uint32_t word) {
      shared_words[plan_.contrast + y * pair_words() + pair] = word;
      counted += ((word & 0xffffu) != kNoSample) + (word >> 16 != kNoSample);
    };
    for (int32_t pair = static_cast<int32_t>(threadIdx.x % 32); pair < plan_.pairs; pair += 32) {
      auto y = static_cast<int32_t>(threadIdx.x / 32);
      if (reads_words) {
        constexpr int kAtOnce = 8;  // rows that are read before any of them is waited for
        const uint16_t* row = origin + 2 * pair;
        for (; y + (kAtOnce - 1) * kWarps < a_.block.y; y += kAtOnce * kWarps) {
          uint32_t words[kAtOnce];
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            words[i] = *reinterpret_cast<const uint32_t*>(
                row + static_cast<int64_t>(y + i * kWarps) * a_.image.x);
          }
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) take(y + i * kWarps, pair, words[i]);
        }
      }
      for (; y < a_.block.y; y += kWarps) {
        const uint16_t* row = origin + static_cast<int64_t>(y) * a_.image.x;
        const uint32_t right = 2 * pair + 1 < a_.block.x ? row[2 * pair + 1] : kNoSample;
        take(y, pair, row[2 * pair] | right << 16);
      }
    }
    return counted;
  }

  /// Reads the filtered mask for whole-pixel displacements of at most `range` from `centre`.
  /// `counted`: of the contrast block.
  __device__ void prepare(const Vec3i& centre, int32_t range, uint32_t counted) {
    has_gaps_ = counted != static_cast<uint32_t>(2 * plan_.pairs * a_.block.y);
    load_mask(a_.mask_at_zero, centre, range + kMargin);
  }

  /// Makes the part of the mask that a displacement needs the one that is loaded: the filtered one
  /// for whole pixels, the unfiltered one, around them, between pixels.
  __device__ void reach(const Vec3i& units) {
    if (is_whole(units) == is_filtered_) return;
    const Vec3i pixel{split_step(units.x).pixel, split_step(units.y).pixel, 0};
    load_mask(is_filtered_ ? a_.mask : a_.mask_at_zero, pixel, kMargin);
  }
  __device__ bool fits() const {
    return true;
  }
  /// Tells whether some samples do not count: then sinks have to look at each.
  __device__ bool is_checked() const {
    return is_checked_;
  }

  /// Calls take_pair for the pairs of pixels of rows first..last-1 of the block; each
  /// half of a word is a sample, and kNoSample if it does not count.
  template <class Sink>
  __device__ void visit(const Vec3i& units, int32_t first, int32_t last, const Sink& sink) const {
    const Step x = split_step(units.x), y = split_step(units.y);
    const int32_t at_x = x_ + x.pixel - mask_x_, at_y = y_ + y.pixel - mask_y_;
    if (is_filtered_ && x.fraction == 0 && y.fraction == 0) {
      visit_whole(view(), at_x, at_y, first, last, sink);
      return;
    }
    const TapPair taps{a_.taps.at[x.fraction + kUnit / 2], a_.taps.at[y.fraction + kUnit / 2]};
    constexpr bool kChecked = Sink::kIsChecked;
    if (at_x % 2 == 0) {
      visit_between<kChecked, true>(view(), taps, at_x, at_y, first, last, sink);
    } else {
      visit_between<kChecked, false>(view(), taps, at_x, at_y, first, last, sink);
    }
  }

 private:
  __device__ int32_t pair_words() const {
    return kUsual ? kUsualPairs : plan_.pair_words;
  }
  __device__ int32_t mask_words() const {
    return kUsual ? kUsualMaskWords : plan_.mask_words;
  }
  __device__ BlockView view() const {
    return {plan_.contrast, plan_.mask, plan_.pairs, pair_words(), mask_words(), plan_.lanes_log2};
  }

  /// The part of a mask that displacements of at most `around` pixels from `centre` reach.
  __device__ void load_mask(const uint16_t* source, const Vec3i& centre, int32_t around) {
    __syncthreads();  // others may still read the part before
    is_filtered_ = source == a_.mask_at_zero;
    // It begins with an even column: so do the words of the image, if its width is even.
    mask_x_ = (x_ + centre.x - around) & ~1;
    mask_y_ = y_ + centre.y - around;
    const bool misses = read_part(a_, plan_, source, mask_x_, mask_y_, around);
    is_checked_ = __syncthreads_or(misses || has_gaps_) != 0;
  }
  /// Its samples from (mask_x, mask_y) on; whether one that this thread has read does not count. A
  /// function of its own, given what it needs, so that an object of this class is in registers.
  __device__ static __noinline__ bool read_part(const MatchArguments& a, const SharedPlan& plan,
                                                const uint16_t* source, int32_t mask_x,
                                                int32_t mask_y, int32_t around) {
    const int32_t row_words = kUsual ? kUsualMaskWords : plan.mask_words;
    const int32_t words = min(plan.mask_words, (a.block.x + 2 * around + 3) / 2);
    const int32_t height = min(plan.mask_height, a.block.y + 2 * around);
    const auto read = [&](const uint16_t* row, int32_t x) -> uint32_t {
      return x >= 0 && x < a.image.x ? row[x] : kNoSample;
    };
    bool misses = false;
    const auto take = [&](int32_t j, int32_t i, uint32_t word) {
      shared_words[plan.mask + j * row_words + i] = word;
      misses |= (word & 0xffffu) == kNoSample || word >> 16 == kNoSample;
    };
    const bool is_inside = a.has_whole_words && mask_x >= 0 && mask_y >= 0 &&
                           mask_x + 2 * words <= a.image.x && mask_y + height <= a.image.y;
    for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < words; i += 32) {
      const int32_t x = mask_x + 2 * i;
      auto j = static_cast<int32_t>(threadIdx.x / 32);
      if (is_inside) {
        constexpr int kAtOnce = 8;  // rows that are read before any of them is waited for
        const uint16_t* column = source + static_cast<int64_t>(mask_y) * a.image.x + x;
        for (; j + (kAtOnce - 1) * kWarps < height; j += kAtOnce * kWarps) {
          uint32_t read_words[kAtOnce];
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) {
            read_words[k] = *reinterpret_cast<const uint32_t*>(
                column + static_cast<int64_t>(j + k * kWarps) * a.image.x);
          }
#pragma unroll
          for (int k = 0; k < kAtOnce; ++k) take(j + k * kWarps, i, read_words[k]);
        }
      }
      for (; j < height; j += kWarps) {
        const int32_t y = mask_y + j;
        const uint16_t* row = source + static_cast<int64_t>(y) * a.image.x;
        uint32_t word = 0xffffffffu;
        if (y >= 0 && y < a.image.y) {
          word = a.has_whole_words && x >= 0 && x < a.image.x
                     ? reinterpret_cast<const uint32_t*>(row)[x / 2]
                     : read(row, x) | read(row, x + 1) << 16;
        }
        take(j, i, word);
      }
    }
    return misses;
  }

  const MatchArguments& a_;
  const SharedPlan& plan_;
  int32_t x_ = 0, y_ = 0;            // first pixel of the block
  int32_t mask_x_ = 0, mask_y_ = 0;  // first pixel of the part of the mask
  bool has_gaps_ = true;             // of the contrast block
  bool is_checked_ = true;           // some samples do not count
  bool is_filtered_ = true;          // the part of the mask
};

/// The same where samples stay in the device's memory: blocks and windows that do not fit on chip,
/// and displacements that add to a base field.
class DirectSamples {
 public:
  static constexpr bool kNeverUnchecked = true;
  static constexpr bool kHasColumns = false;

  __device__ explicit DirectSamples(const MatchArguments& a) : a_(a) {}

  __device__ Vec3i base_at_centre(int32_t frame, int32_t block) const {
    return a_.base == nullptr ? Vec3i{} : base_at_centre_of(a_, frame, block);
  }

  __device__ uint32_t move_to(int32_t frame, int32_t block) {
    x_ = a_.starts_x[block % a_.blocks_x];
    y_ = a_.starts_y[block / a_.blocks_x];
    const int64_t pixels = static_cast<int64_t>(a_.image.x) * a_.image.y;
    const int64_t first = static_cast<int64_t>(y_) * a_.image.x + x_;
    contrast_ = a_.contrast + frame * pixels + first;
    if (a_.base != nullptr) base_ = base_of(a_, frame) + first;
    uint32_t counted = 0;
    for (int32_t y = static_cast<int32_t>(threadIdx.x / 32); y < a_.block.y; y += kWarps) {
      for (int32_t x = static_cast<int32_t>(threadIdx.x % 32); x < a_.block.x; x += 32) {
        counted += contrast_at(x, y) != kNoSample;
      }
    }
    return counted;
  }
  __device__ void prepare(const Vec3i&, int32_t, uint32_t) { __syncthreads(); }
  __device__ bool fits() const { return true; }
  __device__ void reach(const Vec3i&) {}
  __device__ bool is_checked() const { return true; }

  /// Calls sink.one(contrast, mask) for the pixels that count of rows first..last-1.
  template <class Sink>
  __device__ void visit(const Vec3i& units, int32_t first, int32_t last, const Sink& sink) const {
    static_assert(Sink::kIsChecked);
    for (int32_t y = first; y < last; ++y) {
      for (int32_t x = static_cast<int32_t>(threadIdx.x % 32); x < a_.block.x; x += 32) {
        const uint16_t contrast = contrast_at(x, y);
        if (contrast == kNoSample) continue;
        const uint16_t mask = mask_at(units, x, y);
        if (mask != kNoSample) sink.one(contrast, mask);
      }
    }
  }

 private:
  __device__ uint16_t contrast_at(int32_t x, int32_t y) const {
    return contrast_[static_cast<int64_t>(y) * a_.image.x + x];
  }

  /// Returns the mask below pixel (x, y) of the block.
  __device__ uint16_t mask_at(const Vec3i& units, int32_t x, int32_t y) const {
    if (base_ != nullptr || !is_whole(units)) {
      const Vec3i base =
          base_ == nullptr ? Vec3i{} : units_of(base_[static_cast<int64_t>(y) * a_.image.x + x]);
      return mask_sample({a_.mask, a_.image, &a_.taps}, (x_ + x) * kUnit + base.x + units.x,
                         (y_ + y) * kUnit + base.y + units.y);
    }
    const int32_t at_x = x_ + x + units.x / kUnit, at_y = y_ + y + units.y / kUnit;
    const bool is_inside = at_x >= 0 && at_y >= 0 && at_x < a_.image.x && at_y < a_.image.y;
    return is_inside ? a_.mask_at_zero[static_cast<int64_t>(at_y) * a_.image.x + at_x] : kNoSample;
  }

  const MatchArguments& a_;
  const uint16_t* contrast_ = nullptr;
  const Vec3i* base_ = nullptr;  // at the block's first pixel
  int32_t x_ = 0, y_ = 0;
};

}  // namespace larch::dsa::cuda
