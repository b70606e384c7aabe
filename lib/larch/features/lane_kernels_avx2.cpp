// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "larch/features/lane_kernels.h"

// This file alone is compiled for AVX2; see lane_kernels.inc for what it must not do.
namespace larch::features::cpu {
namespace {

typedef uint32_t U32 __attribute__((vector_size(32)));
typedef int32_t I32 __attribute__((vector_size(32)));

I32 greater(I32 a, I32 b) {
  return (I32)_mm256_max_epi32((__m256i)a, (__m256i)b);
}
I32 lesser(I32 a, I32 b) {
  return (I32)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

/// (x * m) >> 32 for each lane.
U32 high_product(U32 x, uint32_t m) {
  const __m256i v = (__m256i)x, w = _mm256_set1_epi32((int)m);
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(v, w), 32);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), w);
  return (U32)_mm256_blend_epi32(even, odd, 0xaa);
}

/// Returns all ones in the lanes whose bit is set. A shift by 32 and more, or by less than 0, gives
/// 0.
U32 mask_bits(uint64_t mask, U32 bit) {
  const __m256i b = (__m256i)bit, word = _mm256_set1_epi32(32);
  const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32((int)(uint32_t)mask), b);
  const __m256i high =
      _mm256_srlv_epi32(_mm256_set1_epi32((int)(uint32_t)(mask >> 32)), _mm256_sub_epi32(b, word));
  const __m256i one = _mm256_and_si256(_mm256_or_si256(low, high), _mm256_set1_epi32(1));
  return (U32)_mm256_sub_epi32(_mm256_setzero_si256(), one);
}

/// Values 0..255 as bytes.
void store_bytes(uint8_t* at, U32 values) {
  const __m256i v = (__m256i)values, words = _mm256_packus_epi32(v, v);
  const __m256i bytes = _mm256_packus_epi16(words, words);
  _mm_storel_epi64((__m128i*)at, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes),
                                                    _mm256_extracti128_si256(bytes, 1)));
}

#include "larch/features/lane_kernels.inc"

}  // namespace

const LaneKernels kAvx2Kernels{"avx2", vote_rows, vote_points, patch_codes, patch_values};

}  // namespace larch::features::cpu
