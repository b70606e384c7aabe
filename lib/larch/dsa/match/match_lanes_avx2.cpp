// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "larch/dsa/match/match_lanes.h"

// This file alone is compiled for AVX2. It calls no function of a header that computes, so that no
// code for AVX2 can be linked into functions that every machine runs.
namespace larch::dsa::cpu {
namespace {

__m256i load(const uint16_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
void store(uint16_t* at, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v);
}
__m256i is_missing(__m256i samples) {
  return _mm256_cmpeq_epi16(samples, _mm256_set1_epi16(-1));
}
/// Two 16-bit weights in each lane of 32 bits.
__m256i weight_pair(int low, int high) {
  return _mm256_set1_epi32((int)((unsigned)(uint16_t)low | ((unsigned)high << 16)));
}

/// (sum + 2048) >> 12 by products of signed 16-bit numbers: samples less 32768, which times weights
/// that sum to 4096 is 2^27 less.
void tap_row(const Taps& taps, const uint16_t* before, const uint16_t* here, const uint16_t* after,
             int64_t count, uint16_t* out) {
  const __m256i first = weight_pair(taps.w[0], taps.w[1]), second = weight_pair(taps.w[2], 2048);
  const __m256i top = _mm256_set1_epi16((short)-32768), one = _mm256_set1_epi16(1);
  const __m256i lift = _mm256_set1_epi32(1 << 27);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m256i a = load(before + i), b = load(here + i), c = load(after + i);
    const __m256i none =
        _mm256_or_si256(is_missing(a), _mm256_or_si256(is_missing(b), is_missing(c)));
    const __m256i sa = _mm256_xor_si256(a, top), sb = _mm256_xor_si256(b, top);
    const __m256i sc = _mm256_xor_si256(c, top);
    __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(sa, sb), first),
                                   _mm256_madd_epi16(_mm256_unpacklo_epi16(sc, one), second));
    __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(sa, sb), first),
                                    _mm256_madd_epi16(_mm256_unpackhi_epi16(sc, one), second));
    low = _mm256_srli_epi32(_mm256_add_epi32(low, lift), 12);
    high = _mm256_srli_epi32(_mm256_add_epi32(high, lift), 12);
    store(out + i, _mm256_or_si256(_mm256_packus_epi32(low, high), none));
  }
}

/// `bins`, or kNotCounted where `none` is set.
void store_bins(uint16_t* at, __m256i bins, __m256i none) {
  store(at, _mm256_blendv_epi8(bins, _mm256_set1_epi16((short)kNotCounted), none));
}

/// Modulo 2^16, which has all the bits that count for bins of at most 2^6 steps.
void bin_row16(const BinRule& rule, const uint16_t* contrast, const uint16_t* mask, int64_t count,
               uint16_t* bins) {
  const __m256i less = _mm256_set1_epi16((short)(rule.mu - ((1 << rule.shift) >> 1)));
  const __m128i shift = _mm_cvtsi32_si128(rule.shift);
  const __m256i half = _mm256_set1_epi16(kBins / 2), last = _mm256_set1_epi16(kBins - 1);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m256i c = load(contrast + i), m = load(mask + i);
    const __m256i none = _mm256_or_si256(is_missing(c), is_missing(m));
    const __m256i d = _mm256_sub_epi16(_mm256_sub_epi16(c, m), less);
    const __m256i k = _mm256_add_epi16(_mm256_srl_epi16(d, shift), half);
    store_bins(bins + i, _mm256_and_si256(k, last), none);
  }
}

/// Bin indices of eight differences.
__m256i eight_bins(const BinRule& rule, __m128i contrast, __m128i mask) {
  const __m256i less = _mm256_set1_epi32(rule.mu - ((1 << rule.shift) >> 1));
  const __m256i d = _mm256_sub_epi32(
      _mm256_sub_epi32(_mm256_cvtepu16_epi32(contrast), _mm256_cvtepu16_epi32(mask)), less);
  const __m256i k = _mm256_add_epi32(_mm256_sra_epi32(d, _mm_cvtsi32_si128(rule.shift)),
                                     _mm256_set1_epi32(kBins / 2));
  return _mm256_and_si256(k, _mm256_set1_epi32(kBins - 1));
}

void bin_row32(const BinRule& rule, const uint16_t* contrast, const uint16_t* mask, int64_t count,
               uint16_t* bins) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m256i c = load(contrast + i), m = load(mask + i);
    const __m256i none = _mm256_or_si256(is_missing(c), is_missing(m));
    const __m256i low = eight_bins(rule, _mm256_castsi256_si128(c), _mm256_castsi256_si128(m));
    const __m256i high =
        eight_bins(rule, _mm256_extracti128_si256(c, 1), _mm256_extracti128_si256(m, 1));
    // packus works within halves of 128 bits: its quarters are put in order.
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    store_bins(bins + i, both, none);
  }
}

void bin_row(const BinRule& rule, const uint16_t* contrast, const uint16_t* mask, int64_t count,
             uint16_t* bins) {
  (rule.shift <= 6 ? bin_row16 : bin_row32)(rule, contrast, mask, count, bins);
}

/// Nearest pixels and the index of their fraction's taps, of positions of at least 0 and below
/// 2^22.
struct EightSteps {
  __m256i pixel, taps;
};
EightSteps split_eight(const int32_t* units, int32_t by) {
  const __m256i above =
      _mm256_add_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(units)),
                       _mm256_set1_epi32(by + kUnit / 2));
  // kUnit is 64 * 5, and 52429 / 2^18 a fifth for numbers of 16 bits.
  const __m256i fifth = _mm256_srli_epi32(
      _mm256_mullo_epi32(_mm256_srli_epi32(above, 6), _mm256_set1_epi32(52429)), 18);
  return {fifth, _mm256_sub_epi32(above, _mm256_mullo_epi32(fifth, _mm256_set1_epi32(kUnit)))};
}

/// The weights of eight fractions: of the first two taps, and of the third one and of rounding.
struct EightTaps {
  __m256i pair, last;
};
EightTaps load_taps(const Taps* taps, __m256i index) {
  const int* words = reinterpret_cast<const int*>(taps);
  return {_mm256_i32gather_epi32(words, index, 8), _mm256_i32gather_epi32(words + 1, index, 8)};
}
/// (sum + 2048) >> 12 of pairs (before, here) and of `after` in the low half; see tap_row.
__m256i sum_taps(const EightTaps& taps, __m256i pair, __m256i after) {
  const __m256i low = _mm256_xor_si256(pair, _mm256_set1_epi16((short)-32768));
  const __m256i high = _mm256_or_si256(_mm256_xor_si256(after, _mm256_set1_epi32(32768)),
                                       _mm256_set1_epi32(1 << 16));
  const __m256i sum =
      _mm256_add_epi32(_mm256_madd_epi16(low, taps.pair), _mm256_madd_epi16(high, taps.last));
  return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 27)), 12);
}
/// Returns all ones in each lane of 32 bits where a half is not 0.
__m256i any_half(__m256i v) {
  return _mm256_xor_si256(_mm256_cmpeq_epi32(v, _mm256_setzero_si256()), _mm256_set1_epi32(-1));
}

/// Eight samples in lanes of 32 bits, and 65535 where one is missing.
__attribute__((always_inline)) inline __m256i warp_eight(const WarpPart& part, const Vec3i& by,
                                                         const int32_t* x_units,
                                                         const int32_t* y_units) {
  const EightSteps sx = split_eight(x_units, by.x), sy = split_eight(y_units, by.y);
  const EightTaps tx = load_taps(part.taps, sx.taps), ty = load_taps(part.taps, sy.taps);
  const __m256i low_half = _mm256_set1_epi32(0xffff);
  const __m256i stride = _mm256_set1_epi32((int)part.stride);
  const __m256i place = _mm256_add_epi32(_mm256_mullo_epi32(sy.pixel, stride), sx.pixel);
  __m256i none = _mm256_setzero_si256(), rows[3];
  for (int j = 0; j < 3; ++j) {
    const uint16_t* origin = part.samples + (j - 1) * part.stride;
    const __m256i pair = _mm256_i32gather_epi32(reinterpret_cast<const int*>(origin - 1), place, 2);
    const __m256i after = _mm256_and_si256(
        _mm256_i32gather_epi32(reinterpret_cast<const int*>(origin + 1), place, 2), low_half);
    none = _mm256_or_si256(none, _mm256_or_si256(is_missing(pair), is_missing(after)));
    rows[j] = sum_taps(tx, pair, after);
  }
  const __m256i sum =
      sum_taps(ty, _mm256_or_si256(rows[0], _mm256_slli_epi32(rows[1], 16)), rows[2]);
  return _mm256_or_si256(sum, _mm256_and_si256(any_half(none), low_half));
}

void warp_row(const WarpPart& part, const Vec3i& by, const int32_t* x_units, const int32_t* y_units,
              int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m256i low = warp_eight(part, by, x_units + i, y_units + i);
    const __m256i high = warp_eight(part, by, x_units + i + 8, y_units + i + 8);
    store(out + i, _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8));
  }
}

uint32_t sum_of_squares(uint16_t* counters) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i sum = zero;
  for (int64_t bin = 0; bin < kBins; bin += kLanes) {
    __m256i h = zero;
    for (int64_t k = 0; k < kHistograms; ++k) {
      h = _mm256_add_epi16(h, load(counters + k * kCounters + bin));
      store(counters + k * kCounters + bin, zero);
    }
    const __m256i low = _mm256_mullo_epi16(h, h), high = _mm256_mulhi_epu16(h, h);
    sum = _mm256_add_epi32(sum, _mm256_unpacklo_epi16(low, high));
    sum = _mm256_add_epi32(sum, _mm256_unpackhi_epi16(low, high));
  }
  for (int64_t k = 0; k < kHistograms; ++k) {
    for (int64_t i = kBins; i < kCounters; i += kLanes) store(counters + k * kCounters + i, zero);
  }
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  uint32_t total = 0;
  for (const uint32_t lane : lanes) total += lane;
  return total;
}

}  // namespace

const MatchLanes kAvx2MatchLanes{"avx2", tap_row, bin_row, warp_row, sum_of_squares};

}  // namespace larch::dsa::cpu
