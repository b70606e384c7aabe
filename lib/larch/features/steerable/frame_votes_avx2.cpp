// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "larch/features/steerable/frame_trees.h"

// This file alone is compiled for AVX2. It has the formulas of steerable_math.h for types of its
// own, so that no code for a newer instruction set is linked into functions that every machine
// runs.
namespace larch::features {
namespace {

constexpr int kLanes = kWeakLanes;
typedef float Real8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Whole8 __attribute__((vector_size(32), aligned(4), may_alias));

struct EightNumbers {
  using Real = __m256;
  using Whole = Whole8;
  static Whole whole(Real value) { return (Whole)_mm256_cvttps_epi32(value); }
  static Real real(Whole value) { return _mm256_cvtepi32_ps((__m256i)value); }
};

/// Eight weak classifiers.
struct Weaks {
  const int32_t* first;
  int64_t length;

  Whole8 operator[](int c) const { return *reinterpret_cast<const Whole8*>(first + c * length); }
  __m256 real(int c) const { return _mm256_castsi256_ps((__m256i)(*this)[c]); }
};

/// A frame in its images.
struct Place {
  const SteerableFrame& frame;
  const SteerableImages& images;
  __m256 directions[3];
  __m256i sizes[3];
  __m256i texels[2];  ///< addresses by level: their low and high halves

  Place(const SteerableFrame& f, const SteerableImages& i) : frame(f), images(i) {
    const auto& [x, y, z] = f.axes;
    const Vec3i* s = i.sizes;
    for (int a = 0; a < 3; ++a) {
      directions[a] = _mm256_setr_ps(a == 0, a == 1, a == 2, x[a], y[a], z[a], 0, 0);
      sizes[a] = _mm256_setr_epi32(s[0][a], s[1][a], s[2][a], 0, 0, 0, 0, 0);
    }
    const auto half = [&](int level, int shift) {
      return static_cast<int32_t>(reinterpret_cast<uint64_t>(i.texels[level]) >> shift);
    };
    for (int h = 0; h < 2; ++h) {
      texels[h] =
          _mm256_setr_epi32(half(0, 32 * h), half(1, 32 * h), half(2, 32 * h), 0, 0, 0, 0, 0);
    }
  }
};

/// Eight features on their way.
struct Samples {
  const image::Texel* at[2][kLanes / 2];  ///< of even and odd lanes
  int32_t step[3][kLanes];
  float part[3][kLanes];
  __m256 values[kLanes / 2];  ///< intensity and gradient of k and k + 4
};

/// Returns addresses by lane pairs: texels[level] + in_slice + slice * z, of 64 bits; `upper` gives
/// those of the odd lanes.
__m256i addresses(const Place& at, __m256i level, __m256i in_slice, __m256i slice, __m256i z,
                  bool upper) {
  __m256i low = _mm256_permutevar8x32_epi32(at.texels[0], level),
          high = _mm256_permutevar8x32_epi32(at.texels[1], level);
  const auto half = [](__m256i v) { return _mm256_srli_epi64(v, 32); };
  if (upper) {
    low = half(low), in_slice = half(in_slice), slice = half(slice), z = half(z);
  } else {
    high = _mm256_slli_epi64(high, 32);
  }
  in_slice = _mm256_and_si256(in_slice, _mm256_set1_epi64x(0xffffffff));
  const __m256i element = _mm256_add_epi64(_mm256_mul_epu32(z, slice), in_slice);
  static_assert(sizeof(image::Texel) == 8);
  return _mm256_add_epi64(_mm256_blend_epi32(low, high, 0xaa), _mm256_slli_epi64(element, 3));
}

void find_places(const Weaks& w, const Place& at, Samples& s) {
  const __m256 point[3] = {w.real(kPointX), w.real(kPointY), w.real(kPointZ)};
  const __m256i level = (__m256i)w[kLevel];
  Whole8 strides[3] = {1 - Whole8{}}, low[3];
  for (int axis = 0; axis < 3; ++axis) {
    const auto size = (Whole8)_mm256_permutevar8x32_epi32(at.sizes[axis], level);
    const __m256 place = place_of_point(at.frame, axis, point, w.real(kShrink));
    const auto n = neighbours_of<EightNumbers>(place, size, strides[axis]);
    low[axis] = n.low;
    *reinterpret_cast<Whole8*>(s.step[axis]) = n.step;
    *reinterpret_cast<Real8*>(s.part[axis]) = n.part;
    if (axis < 2) strides[axis + 1] = strides[axis] * size;
  }
  const auto in_slice = (__m256i)(low[0] + low[1] * strides[1]);
  for (int odd = 0; odd < 2; ++odd) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(s.at[odd]),
        addresses(at, level, in_slice, (__m256i)strides[2], (__m256i)low[2], odd != 0));
  }
}

/// Returns intensity and gradient of one feature in the two planes around its place.
__m256 planes_of(const Samples& s, int k) {
  // Neighbours along x are read together: beyond the border the other one counts nothing. Their
  // difference is that of integers, which is exact.
  const auto row = [&](int y) {  // in both planes
    const auto load = [](const image::Texel* p) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    };
    const image::Texel* near = s.at[k % 2][k / 2] + y * s.step[1][k];
    const __m256i both = _mm256_set_m128i(load(near + s.step[2][k]), load(near));
    const __m256i pairs =
        _mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)));
    const __m256i first = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1));
    const __m256i rise = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x1ffff));  // -1 and 1
    return _mm256_cvtepi32_ps(first) + _mm256_cvtepi32_ps(rise) * s.part[0][k];
  };
  return between(row(0), row(1), s.part[1][k]);
}

void sample(Samples& s) {
  const __m256 part = *reinterpret_cast<const Real8*>(s.part[2]);
#pragma GCC unroll 4
  for (int k = 0; k < kLanes / 2; ++k) {
    const __m256 a = planes_of(s, k), b = planes_of(s, k + 4);
    const __m256 low = _mm256_permute2f128_ps(a, b, 0x20),
                 high = _mm256_permute2f128_ps(a, b, 0x31);
    s.values[k] = low + (high - low) * _mm256_permutevar_ps(part, _mm256_set1_epi32(k));
  }
}

/// The values of the features, as steerable_value has them.
__m256i values_of(const Weaks& w, const Place& at, const Samples& s) {
  const __m256 a = s.values[0], b = s.values[1], c = s.values[2], d = s.values[3];
  const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
  const __m256 ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
  const __m256 intensity = _mm256_shuffle_ps(ab, cd, 0x44), x = _mm256_shuffle_ps(ab, cd, 0xee),
               y = _mm256_shuffle_ps(ab_high, cd_high, 0x44),
               z = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
  const auto direction = [&](int axis) {
    return _mm256_permutevar8x32_ps(at.directions[axis], (__m256i)w[kDirection]);
  };
  const __m256 along = x * direction(0) + y * direction(1) + z * direction(2);
  const __m256 length = _mm256_sqrt_ps(x * x + y * y + z * z);
  const auto is = [&](SteerableType t) { return w[kType] == static_cast<int32_t>(t); };
  const __m256 plain = is(SteerableType::kIntensity)   ? intensity
                       : is(SteerableType::kMagnitude) ? length
                                                       : along;
  const __m256 value = is(SteerableType::kCosine) ? cosine_of(along, length) : plain * kValueScale;
  return _mm256_cvtps_epi32(value);  // rounded; none is beyond the limits of rounded()
}

/// The alphas with the signs of the votes; learning::FastVote for each lane.
Whole8 signed_alphas(const Weaks& w, __m256i value) {
  const auto column = [&](int c) { return (__m256i)w[c]; };
  const __m256i word = _mm256_set1_epi64x(0xffffffff);
  const __m256i x = _mm256_sub_epi32(_mm256_max_epi32(value, column(kLowest)), column(kLowest));
  const __m256i factor = column(kMultiplier), rest = column(kRemainder);
  const __m256i even = _mm256_add_epi64(_mm256_mul_epu32(x, factor), _mm256_and_si256(rest, word));
  const __m256i odd =
      _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(factor, 32)),
                       _mm256_srli_epi64(rest, 32));
  const __m256i code = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  const __m256i bin = _mm256_min_epu32(_mm256_srlv_epi32(code, column(kShift)),
                                       _mm256_set1_epi32(learning::kBins - 1));
  const __m256i above = _mm256_sub_epi32(bin, _mm256_set1_epi32(32));
  const auto bits = (Whole8)_mm256_or_si256(_mm256_srlv_epi32(column(kLowMask), bin),
                                            _mm256_srlv_epi32(column(kHighMask), above));
  return (bits & 1) != 0 ? w[kAlpha] : -w[kAlpha];
}

}  // namespace

int32_t FrameResponse::votes(const tree::TreeView& tree, const tree::FlatNode& node) const {
  // Several eights go from step to step together, so that a processor does not wait for one.
  constexpr int32_t kTogether = 6;
  const Place at(frame, images);
  const Whole8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  Whole8 votes{};
  for (int32_t left = node.n_weak, first = node.first; left > 0;) {
    Samples samples[kTogether];
    Weaks weaks[kTogether];
    int32_t n = 0;
    for (int32_t rest = left; n < kTogether && rest > 0; ++n, rest -= kLanes) {
      weaks[n] = {tree.columns + first + n * kLanes, tree.column_length};
      find_places(weaks[n], at, samples[n]);
    }
    for (int32_t i = 0; i < n; ++i) sample(samples[i]);
    for (int32_t i = 0; i < n; ++i, left -= kLanes, first += kLanes) {
      const Whole8 alphas = signed_alphas(weaks[i], values_of(weaks[i], at, samples[i]));
      votes += lane < left ? alphas : Whole8{};
    }
  }
  int32_t sum = 0;
  for (int k = 0; k < kLanes; ++k) sum += votes[k];
  return sum;
}

}  // namespace larch::features
