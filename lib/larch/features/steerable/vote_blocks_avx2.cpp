// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "larch/features/steerable/vote_blocks.h"

// This file alone is compiled for AVX2. It has the formulas of steerable_math.h for types of its
// own, so that no code for a newer instruction set is linked into functions that every machine
// runs.
namespace larch::features::cpu {
namespace {

typedef float Real8 __attribute__((vector_size(32), may_alias));
typedef int32_t Whole8 __attribute__((vector_size(32), may_alias));
typedef float Real4 __attribute__((vector_size(16), may_alias));

struct EightNumbers {
  using Real = Real8;
  using Whole = Whole8;
  static Whole whole(Real value) { return __builtin_convertvector(value, Whole); }
  static Real real(Whole value) { return __builtin_convertvector(value, Real); }
};

Real8 load(const float* at) {
  return *reinterpret_cast<const Real8*>(at);
}
Whole8 load(const int32_t* at) {
  return *reinterpret_cast<const Whole8*>(at);
}
__m256i load(const uint32_t* at) {
  return *reinterpret_cast<const __m256i*>(at);
}

/// Elements of a table.
Whole8 pick(const int32_t* table, Whole8 index) {
  return (Whole8)_mm256_permutevar8x32_epi32((__m256i)load(table), (__m256i)index);
}
Real8 pick(const float* table, Whole8 index) {
  return _mm256_permutevar8x32_ps(load(table), (__m256i)index);
}

/// Intensities and gradients between voxels.
struct Samples {
  Real8 intensity, x, y, z;
};

Samples samples_of(const VoteBlock& w, const FrameLanes& at) {
  const Real8 point[3] = {load(w.point[0]), load(w.point[1]), load(w.point[2])};
  const Whole8 level = load(w.level), wide = pick(at.sizes[0], level),
               high = pick(at.sizes[1], level), deep = pick(at.sizes[2], level);
  const Whole8 size[3] = {wide, high, deep}, stride[3] = {1 - Whole8{}, wide, wide * high};
  alignas(32) int32_t low[3][kVoteLanes], step[3][kVoteLanes];
  alignas(32) float part[3][kVoteLanes], rows[4][kVoteLanes];
  for (int a = 0; a < 3; ++a) {
    const Real8 place = place_of_point<EightNumbers>(at.frame, a, point, load(w.shrink));
    const auto n = neighbours_of<EightNumbers>(place, size[a], stride[a]);
    *reinterpret_cast<Whole8*>(low[a]) = n.low;
    *reinterpret_cast<Whole8*>(step[a]) = n.step;
    *reinterpret_cast<Real8*>(part[a]) = n.part;
  }
  for (int k = 0; k < kVoteLanes; ++k) {
    const int32_t l = w.level[k];
    const int64_t row = low[1][k] + int64_t{at.sizes[1][l]} * low[2][k];
    const image::Texel* base = at.images.texels[l] + row * at.sizes[0][l] + low[0][k];
    const auto read = [&](int64_t offset) {
      const __m128i words = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(base + offset));
      return (Real4)_mm_cvtepi32_ps(_mm_cvtepi16_epi32(words));
    };
    const int32_t steps[3] = {step[0][k], step[1][k], step[2][k]};
    const float parts[3] = {part[0][k], part[1][k], part[2][k]};
    *reinterpret_cast<Real4*>(rows[k % 4] + k / 4 * 4) = between_voxels<Real4>(steps, parts, read);
  }
  const Real8 a = load(rows[0]), b = load(rows[1]), c = load(rows[2]), d = load(rows[3]);
  const Real8 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
  const Real8 ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
  return {_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee),
          _mm256_shuffle_ps(ab_high, cd_high, 0x44), _mm256_shuffle_ps(ab_high, cd_high, 0xee)};
}

/// The values of features, as steerable_value has them.
Whole8 values_of(const VoteBlock& w, const FrameLanes& at) {
  const Samples s = samples_of(w, at);
  const Whole8 type = load(w.type), direction = load(w.direction);
  const auto is = [&](SteerableType t) { return type == static_cast<int32_t>(t); };
  const Real8 along = s.x * pick(at.directions[0], direction) +
                      s.y * pick(at.directions[1], direction) +
                      s.z * pick(at.directions[2], direction);
  const Real8 length = _mm256_sqrt_ps(s.x * s.x + s.y * s.y + s.z * s.z);
  const Real8 plain = is(SteerableType::kIntensity)   ? s.intensity
                      : is(SteerableType::kMagnitude) ? length
                                                      : along;
  const Real8 value =
      is(SteerableType::kCosine) ? cosine_of<EightNumbers>(along, length) : plain * kValueScale;
  return (Whole8)_mm256_cvtps_epi32(value);  // rounded; none is beyond its limits
}

}  // namespace

int32_t votes_of(const VoteBlock& w, const FrameLanes& at) {
  const Whole8 value = values_of(w, at), lo = load(w.lo);
  // fast_vote for each lane.
  const __m256i x = (__m256i)((value > lo ? value : lo) - lo);
  const __m256i multiplier = load(w.multiplier), remainder = load(w.remainder);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epu32(x, multiplier),
                                        _mm256_srli_epi64(_mm256_slli_epi64(remainder, 32), 32));
  const __m256i odd = _mm256_add_epi64(
      _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(multiplier, 32)),
      _mm256_srli_epi64(remainder, 32));
  const __m256i code = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  const __m256i bin = _mm256_min_epu32(_mm256_srlv_epi32(code, load(w.shift)),
                                       _mm256_set1_epi32(learning::kBins - 1));
  const __m256i bits = _mm256_or_si256(
      _mm256_srlv_epi32(load(w.low_mask), bin),
      _mm256_srlv_epi32(load(w.high_mask), _mm256_sub_epi32(bin, _mm256_set1_epi32(32))));
  const Whole8 alpha = load(w.alpha);
  const Whole8 votes = ((Whole8)bits & 1) != 0 ? alpha : -alpha;
  int32_t sum = 0;
  for (int k = 0; k < kVoteLanes; ++k) sum += votes[k];
  return sum;
}

}  // namespace larch::features::cpu
