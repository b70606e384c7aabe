// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "larch/levelset/step/step_lanes.h"

// This file alone is compiled for AVX2; see step_lanes.inc for what it must not do.
namespace larch::levelset::cpu {
namespace {

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

inline F8 blend(I8 mask, F8 yes, F8 no) {
  return (F8)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
}
inline F8 square_root(F8 value) {
  return (F8)_mm256_sqrt_ps((__m256)value);
}
/// Bit i: lane i of a comparison.
inline uint32_t bits_of(I8 mask) {
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}
inline __m256i load_words(const int16_t* at) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
inline F8 to_float(const int16_t* at) {
  return (F8)_mm256_cvtepi32_ps(load_words(at));
}
inline I8 is_frozen(const int16_t* speed) {
  return (I8)_mm256_cmpeq_epi32(load_words(speed), _mm256_set1_epi32(kFrozen));
}

/// Sums of integers below 2^52 in four lanes.
struct Squares {
  __m256i sum;
};
/// Numbers from 0 to below 2^52, without their fractions, as integers.
inline __m256i whole(__m128 values) {
  const __m256d shift = _mm256_set1_pd(4503599627370496.0);
  const __m256d floor = _mm256_floor_pd(_mm256_cvtps_pd(values));
  return _mm256_xor_si256(_mm256_castpd_si256(_mm256_add_pd(floor, shift)),
                          _mm256_castpd_si256(shift));
}
/// squared_change of the first `width` lanes of a row.
inline void add_squares(Squares& squares, F8 before, F8 after, int32_t width) {
  const F8 change = after - before;
  const F8 units = change * change * 1073741824.0F + 0.5F;
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i counts = _mm256_cmpgt_epi32(_mm256_set1_epi32(width), lane);
  const __m256 kept = _mm256_and_ps((__m256)units, _mm256_castsi256_ps(counts));
  squares.sum = _mm256_add_epi64(squares.sum, whole(_mm256_castps256_ps128(kept)));
  squares.sum = _mm256_add_epi64(squares.sum, whole(_mm256_extractf128_ps(kept, 1)));
}
inline uint64_t sum_of(const Squares& squares) {
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), squares.sum);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

#include "larch/levelset/step/step_lanes.inc"

}  // namespace

const StepLanes kAvx2StepLanes{"avx2", step_brick};

}  // namespace larch::levelset::cpu
