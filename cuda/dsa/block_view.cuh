// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "larch/dsa/samples.h"
#include "larch/dsa/sampling/interpolation_math.h"

// A block of the contrast frame and the part of the mask around it, in shared memory, and the walks
// of a warp over some of its rows. A lane takes two neighbouring pixels, which are one word, row
// after row.
namespace larch::dsa::cuda {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

/// The dynamic shared memory. What lies in it is named by its first word: a pointer would be read
/// through by the slower loads that ask which memory it is of.
extern __shared__ __align__(16) uint32_t shared_words[];

/// Tells whether the rows of images begin with a word of two samples.
inline bool have_whole_words(int32_t width, std::initializer_list<const uint16_t*> images) {
  return width % 2 == 0 && std::all_of(images.begin(), images.end(), [](const uint16_t* image) {
           return reinterpret_cast<uintptr_t>(image) % sizeof(uint32_t) == 0;
         });
}

/// Words per row where the sizes are the usual ones, so that rows are addressed by constants.
constexpr int32_t kUsualPairs = 32;
constexpr int32_t kUsualMaskWords = 48;

struct BlockView {
  uint32_t contrast;   ///< first word; kNoSample behind a row of odd width
  uint32_t mask;       ///< first word
  int32_t pairs;       ///< pixels of a row of the block, two at a time
  int32_t pair_words;  ///< words of its rows
  int32_t mask_words;  ///< words of the mask's rows
  int32_t lanes_log2;  ///< so many lanes share a row; 32 at most
};

/// Rows of the block that a lane walks over, and its first pair of columns.
struct LaneRows {
  int32_t first, last, column, lanes;
};
__device__ inline LaneRows lane_rows(const BlockView& view, int32_t first, int32_t last) {
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
  const int32_t lanes = 1 << view.lanes_log2;
  const int32_t runs_log2 = 5 - view.lanes_log2;
  const int32_t length = (last - first + (1 << runs_log2) - 1) >> runs_log2;
  const int32_t begin = first + (lane >> view.lanes_log2) * length;
  return {begin, min(begin + length, last), lane & (lanes - 1), lanes};
}

/// Two neighbouring samples, the second of them in the upper half: from `low` on if x is even,
/// from its upper half on if it is odd.
__device__ inline uint32_t neighbours(uint32_t low, uint32_t high, bool is_odd) {
  return __byte_perm(low, high, is_odd ? 0x5432 : 0x3210);
}

/// Gives a sink a pair of pixels, less those that do not count; some take both at once.
template <class Sink>
__device__ inline void take_pair(const Sink& sink, uint32_t contrast, uint32_t mask) {
  if constexpr (requires { sink.both(contrast, mask); }) {
    sink.both(contrast, mask);
  } else {
    const auto one = [&](uint32_t c, uint32_t m) {
      if (Sink::kIsChecked && (c == kNoSample || m == kNoSample)) return;
      sink.one(static_cast<int32_t>(c), static_cast<int32_t>(m));
    };
    one(contrast & 0xffffu, mask & 0xffffu);
    one(contrast >> 16, mask >> 16);
  }
}

/// Calls take_pair for the pairs of pixels of rows first..last-1, the mask displaced by
/// whole pixels: (x, y) is where the block's first pixel lies in the part of the mask. kRows are
/// read before any of them is counted; more of them wait less for memory and are more code.
template <class Sink>
__device__ void visit_whole(const BlockView& view, int32_t x, int32_t y, int32_t first,
                            int32_t last, const Sink& sink) {
  constexpr int kRows = 8;
  const LaneRows rows = lane_rows(view, first, last);
  const bool is_odd = x & 1;
  for (int32_t pair = rows.column; pair < view.pairs; pair += rows.lanes) {
    uint32_t m = view.mask + (y + rows.first) * view.mask_words + x / 2 + pair;
    uint32_t c = view.contrast + rows.first * view.pair_words + pair;
    const auto mask_at = [&](uint32_t word) {
      return neighbours(shared_words[word], is_odd ? shared_words[word + 1] : 0, is_odd);
    };
    int32_t row = rows.first;
    for (; row + kRows <= rows.last; row += kRows) {
      uint32_t contrast[kRows], mask[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        contrast[i] = shared_words[c + i * view.pair_words];
        mask[i] = mask_at(m + i * view.mask_words);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) take_pair(sink, contrast[i], mask[i]);
      c += kRows * view.pair_words;
      m += kRows * view.mask_words;
    }
    for (; row < rows.last; ++row) {
      take_pair(sink, shared_words[c], mask_at(m));
      c += view.pair_words;
      m += view.mask_words;
    }
  }
}

/// Weights of a displacement between pixels.
struct TapPair {
  Taps x, y;
};

/// The weights of Taps in Q16: the sample is the upper half of a sum that begins with 1/2, which
/// needs no shift to be one of a pair.
struct UpperTaps {
  uint32_t w[3];
  __device__ explicit UpperTaps(const Taps& taps)
      : w{static_cast<uint32_t>(taps.w[0]) << 4, static_cast<uint32_t>(taps.w[1]) << 4,
          static_cast<uint32_t>(taps.w[2]) << 4} {}
  /// tap_sum in the upper half, and what was rounded off.
  __device__ uint32_t sum(uint32_t before, uint32_t here, uint32_t after) const {
    return w[0] * before + w[1] * here + w[2] * after + 0x8000u;
  }
};

__device__ inline bool is_missing(uint32_t before, uint32_t here, uint32_t after) {
  return before == kNoSample || here == kNoSample || after == kNoSample;
}

/// visit_whole for displacements between pixels, of which (x, y) holds the nearest pixel. Without
/// kChecked no sample is missing. kOdd: x - 1 is.
template <bool kChecked, bool kOdd, class Sink>
__device__ void visit_between(const BlockView& view, const TapPair& taps, int32_t x, int32_t y,
                              int32_t first, int32_t last, const Sink& sink) {
  constexpr int kRows = 4;
  struct Pair {
    uint32_t left, right;
  };
  const LaneRows rows = lane_rows(view, first, last);
  const UpperTaps along_x(taps.x), along_y(taps.y);
  for (int32_t pair = rows.column; pair < view.pairs; pair += rows.lanes) {
    uint32_t m = view.mask + (y + rows.first - 1) * view.mask_words + (x - 1) / 2 + pair;
    uint32_t c = view.contrast + rows.first * view.pair_words + pair;
    const auto row_at = [&](uint32_t word) {
      const uint32_t w0 = shared_words[word], w1 = shared_words[word + 1];
      const uint32_t w2 = kOdd ? shared_words[word + 2] : 0;
      const uint32_t s1 = w0 >> 16, s2 = w1 & 0xffffu, s3 = w1 >> 16;
      const uint32_t a = kOdd ? s1 : w0 & 0xffffu, b = kOdd ? s2 : s1;
      const uint32_t p = kOdd ? s3 : s2, q = kOdd ? w2 & 0xffffu : s3;
      Pair out{along_x.sum(a, b, p) >> 16, along_x.sum(b, p, q) >> 16};
      if (kChecked && is_missing(a, b, p)) out.left = kNoSample;
      if (kChecked && is_missing(b, p, q)) out.right = kNoSample;
      return out;
    };
    const auto take = [&](uint32_t contrast, const Pair& before, const Pair& here,
                          const Pair& after) {
      uint32_t left = along_y.sum(before.left, here.left, after.left);
      uint32_t right = along_y.sum(before.right, here.right, after.right);
      if (kChecked) {
        if (is_missing(before.left, here.left, after.left)) left = 0xffffffffu;
        if (is_missing(before.right, here.right, after.right)) right = 0xffffffffu;
      }
      take_pair(sink, contrast, __byte_perm(left, right, 0x7632));
    };
    int32_t row = rows.first;
    if (row >= rows.last) continue;
    Pair line[kRows + 2];
    line[0] = row_at(m);
    line[1] = row_at(m + view.mask_words);
    m += 2 * view.mask_words;
    for (; row + kRows <= rows.last; row += kRows) {
      uint32_t contrast[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        contrast[i] = shared_words[c + i * view.pair_words];
        line[i + 2] = row_at(m + i * view.mask_words);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) take(contrast[i], line[i], line[i + 1], line[i + 2]);
      line[0] = line[kRows];
      line[1] = line[kRows + 1];
      c += kRows * view.pair_words;
      m += kRows * view.mask_words;
    }
    for (; row < rows.last; ++row) {
      line[2] = row_at(m);
      take(shared_words[c], line[0], line[1], line[2]);
      line[0] = line[1];
      line[1] = line[2];
      c += view.pair_words;
      m += view.mask_words;
    }
  }
}

}  // namespace larch::dsa::cuda
