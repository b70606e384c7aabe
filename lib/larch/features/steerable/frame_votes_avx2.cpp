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

  Whole8 operator[](WeakColumn c) const {
    return *reinterpret_cast<const Whole8*>(first + c * length);
  }
  __m256 real(WeakColumn c) const { return _mm256_castsi256_ps((__m256i)(*this)[c]); }
};

/// A frame in its images.
struct Place {
  const SteerableFrame& frame;
  const SteerableImages& images;
  __m256 directions[3];
  __m256i sizes[3];
  int64_t slices[kSteerableLevels];

  Place(const SteerableFrame& f, const SteerableImages& i) : frame(f), images(i) {
    const auto& [x, y, z] = f.axes;
    const Vec3i* s = i.sizes;
    for (int a = 0; a < 3; ++a) {
      directions[a] = _mm256_setr_ps(a == 0, a == 1, a == 2, x[a], y[a], z[a], 0, 0);
      sizes[a] = _mm256_setr_epi32(s[0][a], s[1][a], s[2][a], 0, 0, 0, 0, 0);
      slices[a] = int64_t{s[a].x} * s[a].y;
    }
  }
};

/// Eight features on their way.
struct Samples {
  int32_t low[3][kLanes], step[3][kLanes];
  float part[3][kLanes];
  __m128 values[kLanes];  ///< intensity and gradient
};

void find_places(const Weaks& w, const Place& at, Samples& s) {
  const __m256 point[3] = {w.real(kPointX), w.real(kPointY), w.real(kPointZ)};
  const __m256i level = (__m256i)w[kLevel];
  Whole8 stride = 1 - Whole8{};
  for (int axis = 0; axis < 3; ++axis) {
    const auto size = (Whole8)_mm256_permutevar8x32_epi32(at.sizes[axis], level);
    const __m256 place = place_of_point(at.frame, axis, point, w.real(kShrink));
    const auto n = neighbours_of<EightNumbers>(place, size, stride);
    *reinterpret_cast<Whole8*>(s.low[axis]) = axis == 1 ? n.low * stride : n.low;
    *reinterpret_cast<Whole8*>(s.step[axis]) = n.step;
    *reinterpret_cast<Real8*>(s.part[axis]) = n.part;
    stride *= size;
  }
}

void sample(const Weaks& w, const Place& at, Samples& s) {
  const int32_t* level = w.first + kLevel * w.length;
#pragma GCC unroll 8
  for (int k = 0; k < kLanes; ++k) {
    const image::Texel* base = at.images.texels[level[k]] + at.slices[level[k]] * s.low[2][k] +
                               (s.low[0][k] + s.low[1][k]);
    const auto read = [&](int x, int y) {  // in both planes
      const image::Texel* near = base + x * s.step[0][k] + y * s.step[1][k];
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(near));
      const __m128 both =
          _mm_loadh_pi((__m128)low, reinterpret_cast<const __m64*>(near + s.step[2][k]));
      return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32((__m128i)both));
    };
    const __m256 planes = between_rows(read, s.part[0][k], s.part[1][k]);
    s.values[k] =
        between(_mm256_castps256_ps128(planes), _mm256_extractf128_ps(planes, 1), s.part[2][k]);
  }
}

/// The values of the features, as steerable_value has them.
__m256i values_of(const Weaks& w, const Place& at, const Samples& s) {
  const auto pair = [&](int k) { return _mm256_set_m128(s.values[k + 4], s.values[k]); };
  const __m256 a = pair(0), b = pair(1), c = pair(2), d = pair(3);
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

/// The alphas with the signs of the votes; learning::fast_vote for each lane.
Whole8 signed_alphas(const Weaks& w, __m256i value) {
  const auto column = [&](WeakColumn c) { return (__m256i)w[c]; };
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
    for (int32_t i = 0; i < n; ++i) sample(weaks[i], at, samples[i]);
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
