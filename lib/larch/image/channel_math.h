// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/data/volume.h"

namespace larch::image {

/// Scalar images derived from the input, so that they are the same on every device: by integer
/// rules, and by the filters of filter_math.h, which have a sigma.
enum class ChannelKind : uint16_t {
  kIntensity = 0,
  kGaussian = 1,           ///< binomial 1-4-6-4-1 along each axis (sigma 1 voxel), rounded
  kGradientMagnitude = 2,  ///< floor of the norm of central differences (of 2 voxels' distance)
  kLaplacian = 3,          ///< sum of the six neighbours - 6 * centre
  kDerivativeX = 4,        ///< v(x + 1) - v(x - 1)
  kDerivativeY = 5,
  kDerivativeZ = 6,
  kSmooth = 7,  ///< Gaussian of a sigma
  kSmoothDerivativeX = 8,
  kSmoothDerivativeY = 9,
  kSmoothDerivativeZ = 10,
  kLaplacianOfGaussian = 11,
  kSmoothGradient = 12,  ///< norm of the three derivatives
  kLocalScore = 13,      ///< (v - local mean) / local standard deviation
};
constexpr ChannelKind kLastChannelKind = ChannelKind::kLocalScore;

/// Tells whether a channel is made by a filter with a sigma.
LARCH_HD bool is_filter(ChannelKind kind) {
  return kind >= ChannelKind::kSmooth;
}

/// Says what lies outside the volume.
enum class Padding : uint8_t {
  kClamp = 0,  ///< the nearest voxel, as far as the model reaches
  kZero = 1,   ///< 0, by which a classifier can tell where the border of a crop is
};

/// Outside the volume the nearest voxel counts; otherwise nothing does.
LARCH_HD bool repeats_border(Padding padding) {
  return padding != Padding::kZero;
}

LARCH_HD int32_t clamp_index(int32_t i, int32_t n) {
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

LARCH_HD int32_t clamped_voxel(const VolumeView<const int16_t>& v, int x, int y, int z) {
  return v({clamp_index(x, v.size.x), clamp_index(y, v.size.y), clamp_index(z, v.size.z)});
}

/// Returns the largest r with r * r <= n, by the digit method: integers only.
LARCH_HD int32_t integer_sqrt(uint32_t n) {
  uint32_t root = 0;
  for (uint32_t bit = 1u << 30; bit != 0; bit >>= 2) {
    if (n >= root + bit) {
      n -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return static_cast<int32_t>(root);
}

LARCH_HD int32_t binomial_smoothed(const VolumeView<const int16_t>& v, int x, int y, int z) {
  constexpr int kWeights[5] = {1, 4, 6, 4, 1};
  int32_t sum = 0;
  for (int k = -2; k <= 2; ++k)
    for (int j = -2; j <= 2; ++j)
      for (int i = -2; i <= 2; ++i)
        sum += kWeights[i + 2] * kWeights[j + 2] * kWeights[k + 2] *
               clamped_voxel(v, x + i, y + j, z + k);
  return (sum + 2048) >> 12;
}

/// Value of a channel at a voxel inside the volume; neighbours beyond the border are clamped.
LARCH_HD int32_t channel_value(const VolumeView<const int16_t>& v, ChannelKind kind, int x, int y,
                               int z) {
  if (kind == ChannelKind::kIntensity) return v({x, y, z});
  if (kind == ChannelKind::kGaussian) return binomial_smoothed(v, x, y, z);
  const int32_t xm = clamped_voxel(v, x - 1, y, z), xp = clamped_voxel(v, x + 1, y, z);
  if (kind == ChannelKind::kDerivativeX) return xp - xm;
  const int32_t ym = clamped_voxel(v, x, y - 1, z), yp = clamped_voxel(v, x, y + 1, z);
  if (kind == ChannelKind::kDerivativeY) return yp - ym;
  const int32_t zm = clamped_voxel(v, x, y, z - 1), zp = clamped_voxel(v, x, y, z + 1);
  if (kind == ChannelKind::kDerivativeZ) return zp - zm;
  if (kind == ChannelKind::kLaplacian) return xm + xp + ym + yp + zm + zp - 6 * v({x, y, z});
  // Differences are at most 65535, so halving before squaring keeps the sum inside 32 bits only for
  // 14-bit input; 64-bit products avoid the question.
  const int64_t dx = xp - xm, dy = yp - ym, dz = zp - zm;
  const int64_t squared = dx * dx + dy * dy + dz * dz;
  // Beyond 32 bits the root is taken of a quarter and doubled, exact to one unit.
  if (squared > 0xffffffffLL) return 2 * integer_sqrt(static_cast<uint32_t>(squared >> 2));
  return integer_sqrt(static_cast<uint32_t>(squared));
}

/// The name of a channel; voxels that an integer rule reads to each side along an axis.
struct ChannelRule {
  const char* name;
  int radius;
};
constexpr ChannelRule rule_of(ChannelKind kind) {
  constexpr ChannelRule kRules[] = {{"intensity", 0},           {"gaussian", 2},
                                    {"gradient-magnitude", 1},  {"laplacian", 1},
                                    {"derivative-x", 1},        {"derivative-y", 1},
                                    {"derivative-z", 1},        {"smooth", 0},
                                    {"smooth-derivative-x", 0}, {"smooth-derivative-y", 0},
                                    {"smooth-derivative-z", 0}, {"laplacian-of-gaussian", 0},
                                    {"smooth-gradient", 0},     {"local-score", 0}};
  return kRules[static_cast<size_t>(kind)];
}

/// Local scores are counted in 1/128, and cut at 16.
constexpr int32_t kLargestScore = 2048;

/// Largest absolute value a channel can have for voxels within [lo, hi].
LARCH_HD int64_t channel_bound(ChannelKind kind, int32_t lo, int32_t hi) {
  const int64_t span = static_cast<int64_t>(hi) - lo;
  const int64_t peak = hi > -lo ? hi : -static_cast<int64_t>(lo);
  switch (kind) {
    case ChannelKind::kIntensity:
    case ChannelKind::kGaussian:
      return peak;
    case ChannelKind::kGradientMagnitude:
      return 2 * span;  // sqrt(3) * span, rounded up
    case ChannelKind::kLaplacian:
      return 6 * span;
    case ChannelKind::kSmooth:
      return peak + 1;
    case ChannelKind::kLaplacianOfGaussian:
    case ChannelKind::kSmoothGradient:
      return 3 * span;
    case ChannelKind::kLocalScore:
      return kLargestScore;
    default:
      return span;
  }
}

/// Voxel of pyramid level l + 1 from level l: the rounded mean of 2x2x2, odd borders clamped.
LARCH_HD int16_t pyramid_voxel(const VolumeView<const int16_t>& fine, int x, int y, int z) {
  int32_t sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    sum += clamped_voxel(fine, 2 * x + (corner & 1), 2 * y + ((corner >> 1) & 1),
                         2 * z + (corner >> 2));
  }
  return static_cast<int16_t>((sum + 4) >> 3);
}

LARCH_HD Vec3i pyramid_size(const Vec3i& fine) {
  return {(fine.x + 1) / 2, (fine.y + 1) / 2, (fine.z + 1) / 2};
}

/// Value of a channel's image at a position that may lie outside of it.
template <class T>
LARCH_HD int32_t padded_value(const VolumeView<const T>& image, Padding padding, int x, int y,
                              int z) {
  const int cx = clamp_index(x, image.size.x), cy = clamp_index(y, image.size.y),
            cz = clamp_index(z, image.size.z);
  if (!repeats_border(padding) && (cx != x || cy != y || cz != z)) return 0;
  return image({cx, cy, cz});
}

constexpr auto enum_names(ChannelKind*) {
  std::array<EnumName<ChannelKind>, static_cast<size_t>(kLastChannelKind) + 1> names{};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<ChannelKind>(i);
    names[i] = {kind, rule_of(kind).name};
  }
  return names;
}
constexpr auto enum_names(Padding*) {
  return std::to_array<EnumName<Padding>>({{Padding::kClamp, "clamp"}, {Padding::kZero, "zero"}});
}

}  // namespace larch::image
