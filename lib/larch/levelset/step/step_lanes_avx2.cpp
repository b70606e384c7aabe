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

#include "larch/levelset/step/step_lanes.inc"

}  // namespace

const StepLanes kAvx2StepLanes{"avx2", step_brick};

}  // namespace larch::levelset::cpu
