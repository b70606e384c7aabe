// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/dsa/match/interpolation_math.h"
#include "larch/dsa/samples.h"

// A block of the contrast frame and the part of the mask around it, in shared memory, and the walks
// of a warp over some of its rows. A lane takes two neighbouring pixels, which are one word, row
// after row.
namespace larch::dsa::cuda {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

struct BlockView {
  const uint32_t* contrast;  ///< `pairs` words per row; kNoSample behind a row of odd width
  const uint32_t* mask;      ///< `mask_words` words per row
  int32_t mask_words;
  int32_t pairs;
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

/// Calls sink(contrast, mask) for the pixels of rows first..last-1, the mask displaced by whole
/// pixels: (x, y) is where the block's first pixel lies in the part of the mask.
template <class Sink>
__device__ void visit_whole(const BlockView& view, int32_t x, int32_t y, int32_t first,
                            int32_t last, const Sink& sink) {
  constexpr int kRows = 4;  // are read before any of them is counted
  const LaneRows rows = lane_rows(view, first, last);
  const bool is_odd = x & 1;
  for (int32_t pair = rows.column; pair < view.pairs; pair += rows.lanes) {
    const uint32_t* m = view.mask + (y + rows.first) * view.mask_words + (x / 2 + pair);
    const uint32_t* c = view.contrast + rows.first * view.pairs + pair;
    const auto read = [&](uint32_t& contrast, uint32_t& mask) {
      contrast = c[0];
      mask = is_odd ? __funnelshift_r(m[0], m[1], 16) : m[0];
      c += view.pairs;
      m += view.mask_words;
    };
    const auto take = [&](uint32_t contrast, uint32_t mask) {
      sink(static_cast<int32_t>(contrast & 0xffffu), static_cast<int32_t>(mask & 0xffffu));
      sink(static_cast<int32_t>(contrast >> 16), static_cast<int32_t>(mask >> 16));
    };
    int32_t row = rows.first;
    for (; row + kRows <= rows.last; row += kRows) {
      uint32_t contrast[kRows], mask[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) read(contrast[i], mask[i]);
#pragma unroll
      for (int i = 0; i < kRows; ++i) take(contrast[i], mask[i]);
    }
    for (; row < rows.last; ++row) {
      uint32_t contrast = 0, mask = 0;
      read(contrast, mask);
      take(contrast, mask);
    }
  }
}

/// Weights of a displacement between pixels.
struct TapPair {
  Taps x, y;
  bool skips_weightless;  ///< samples of weight 0 need not count
};

/// One filter pass; kNoSample if a sample is that counts.
template <bool kChecked>
__device__ inline uint32_t filtered(const Taps& taps, bool skips_weightless, uint32_t before,
                                    uint32_t here, uint32_t after) {
  if (kChecked) {
    const bool is_missing = (before == kNoSample && !(skips_weightless && taps.w[0] == 0)) ||
                            here == kNoSample ||
                            (after == kNoSample && !(skips_weightless && taps.w[2] == 0));
    if (is_missing) return kNoSample;
  }
  return tap_sum(taps, before, here, after);
}

/// visit_whole for displacements between pixels, of which (x, y) holds the nearest pixel.
template <bool kChecked, class Sink>
__device__ void visit_between(const BlockView& view, const TapPair& taps, int32_t x, int32_t y,
                              int32_t first, int32_t last, const Sink& sink) {
  constexpr int kRows = 4;
  struct Pair {
    uint32_t left, right;
  };
  const LaneRows rows = lane_rows(view, first, last);
  const uint32_t odd = ((x - 1) & 1) * 16;
  for (int32_t pair = rows.column; pair < view.pairs; pair += rows.lanes) {
    const uint32_t* m = view.mask + (y + rows.first - 1) * view.mask_words + ((x - 1) / 2 + pair);
    const uint32_t* c = view.contrast + rows.first * view.pairs + pair;
    const auto along_x = [&] {
      const uint32_t w1 = m[1];
      const uint32_t ab = __funnelshift_r(m[0], w1, odd);
      const uint32_t cd = __funnelshift_r(w1, odd != 0 ? m[2] : 0, odd);
      m += view.mask_words;
      const uint32_t a = ab & 0xffffu, b = ab >> 16, p = cd & 0xffffu, q = cd >> 16;
      return Pair{filtered<kChecked>(taps.x, taps.skips_weightless, a, b, p),
                  filtered<kChecked>(taps.x, taps.skips_weightless, b, p, q)};
    };
    const auto take = [&](uint32_t contrast, const Pair& before, const Pair& here,
                          const Pair& after) {
      const uint32_t left =
          filtered<kChecked>(taps.y, taps.skips_weightless, before.left, here.left, after.left);
      const uint32_t right =
          filtered<kChecked>(taps.y, taps.skips_weightless, before.right, here.right, after.right);
      sink(static_cast<int32_t>(contrast & 0xffffu), static_cast<int32_t>(left));
      sink(static_cast<int32_t>(contrast >> 16), static_cast<int32_t>(right));
    };
    int32_t row = rows.first;
    if (row >= rows.last) continue;
    Pair line[kRows + 2];
    line[0] = along_x();
    line[1] = along_x();
    for (; row + kRows <= rows.last; row += kRows) {
      uint32_t contrast[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        contrast[i] = c[i * view.pairs];
        line[i + 2] = along_x();
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) take(contrast[i], line[i], line[i + 1], line[i + 2]);
      line[0] = line[kRows];
      line[1] = line[kRows + 1];
      c += kRows * view.pairs;
    }
    for (; row < rows.last; ++row) {
      line[2] = along_x();
      take(c[0], line[0], line[1], line[2]);
      line[0] = line[1];
      line[1] = line[2];
      c += view.pairs;
    }
  }
}

}  // namespace larch::dsa::cuda
