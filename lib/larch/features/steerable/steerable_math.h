// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/portable_math.h"
#include "larch/data/pose.h"
#include "larch/image/levels.h"

// Steerable features: intensities and gradients at the points of a pattern that is moved, turned
// and scaled with a box (Zheng, Barbu, Georgescu, Scheuering, Comaniciu, IEEE TMI 27(11), 2008).
// Single precision, no fused operations, one rounding at the end: the same integers on every
// device.
namespace larch::features {

constexpr int kPatternSide = 5;  ///< points along each axis of the box
constexpr int kPatternPoints = kPatternSide * kPatternSide * kPatternSide;
constexpr int kVertexDepth = 7;  ///< points along the normal of a vertex
constexpr int kVertexPoints = kPatternSide * kPatternSide * kVertexDepth;
constexpr double kPatternStep = 0.3;  ///< in edges of the box: the outermost points lie beyond it
constexpr int kSteerableLevels = 3;   ///< resolutions that features choose from

/// A measurement at a point. The first nine are the set base9; the others are the table of
/// US 2012/0069003 A1, figure 10, with its input direction d along the x axis of the box.
enum class SteerableType : uint8_t {
  kIntensity = 0,
  kMagnitude,  ///< |g|, of the gradient g
  kCosine,     ///< of the angle between g and the z axis of the box
  kGradientX,
  kGradientY,
  kGradientZ,  ///< along the axes of the image
  kAlongX,
  kAlongY,
  kAlongZ,  ///< of g along the axes of the box
  kRootI,
  kCubeRootI,
  kSquareI,
  kCubeI,
  kLogI,
  kSquareMagnitude,
  kAlongD,
  kAbsD,
  kRootD,
  kSquareD,
  kCubeD,
  kLogD,     ///< f = g . d and its modifications
  kAcrossD,  ///< the part of g across d
  kAngleD,
  kSquareAngleD,
  kCubeAngleD,
  kLogAngleD,
  kCount
};

struct SteerableFeature {
  SteerableType type = SteerableType::kIntensity;
  uint8_t level = 0;  ///< halvings below the resolution of the stage
  uint8_t point = 0;  ///< x + 5 (y + 5 z), each from 0 to 4; of vertices z is from 0 to 6
};

/// A box as features see it, in voxels of the stage's resolution.
struct SteerableFrame {
  Vec3f centre{};
  Vec3f axes[3]{};  ///< of length 1
  Vec3f steps{};    ///< voxels between points along each axis
};

/// `pose` in mm of the image's own axes, from its first voxel at the finest resolution.
LARCH_HD SteerableFrame frame_of(const Pose& pose, const image::LevelScale& scale) {
  const Mat3 turn = rotation_matrix(pose.rotation);
  SteerableFrame frame;
  for (int axis = 0; axis < 3; ++axis) {
    frame.centre[axis] = static_cast<float>(scale.voxel(pose.centre_mm[axis]));
    frame.axes[axis] = turn.column(axis).cast<float>();
    frame.steps[axis] = static_cast<float>(kPatternStep * pose.edges_mm[axis] / scale.spacing_mm);
  }
  return frame;
}

/// Returns the pattern at a vertex of a mesh: z is the normal, which points outwards, x is `along`,
/// an axis of the object, projected onto the tangent plane, or `across` where that is nearly the
/// normal. Points are two voxels apart in the plane and one along the normal, on which 3 of the 7
/// lie on either side of the vertex: the pattern begins one point farther inside than that of a
/// box.
LARCH_HD SteerableFrame frame_of_vertex(const Vec3d& at_mm, const Vec3d& normal, const Vec3d& along,
                                        const Vec3d& across, const image::LevelScale& scale) {
  const double slope = dot(along, normal);
  const Vec3d& axis = slope > 0.9 || slope < -0.9 ? across : along;
  const Vec3d flat = axis - normal * dot(axis, normal);
  const Vec3d x = flat / norm(flat);
  SteerableFrame frame;
  for (int a = 0; a < 3; ++a) {
    frame.centre[a] = static_cast<float>(scale.voxel(at_mm[a]) - normal[a]);
  }
  frame.axes[0] = x.cast<float>();
  frame.axes[1] = cross(normal, x).cast<float>();
  frame.axes[2] = normal.cast<float>();
  frame.steps = {2, 2, 1};
  return frame;
}
/// Returns the same pattern, moved along the normal by so many voxels.
LARCH_HD SteerableFrame moved_along_normal(SteerableFrame frame, float voxels) {
  frame.centre = frame.centre + frame.axes[2] * voxels;
  return frame;
}

/// The images of the stage's resolution and of the coarser ones.
struct SteerableImages {
  const image::Texel* texels[kSteerableLevels]{};
  Vec3i sizes[kSteerableLevels]{};
  float unit = 1;  ///< the integer that intensity 1 became, for the set of the patent
};

/// Interpolated between the eight voxels around a place; beyond the border the nearest place
/// counts.
struct SteerableSample {
  float intensity = 0;
  Vec3f gradient{};
};

template <bool kWithGradient>
LARCH_HD SteerableSample sample_texels(const image::Texel* texels, const Vec3i& size,
                                       const Vec3f& at) {
  int64_t low[3], step[3];
  float part[3];
  int64_t stride = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const auto last = static_cast<float>(size[axis] - 1);
    const float place = !(at[axis] > 0) ? 0.0F : at[axis] > last ? last : at[axis];
    const auto whole = static_cast<int>(place);
    part[axis] = place - static_cast<float>(whole);
    low[axis] = whole * stride;
    step[axis] = whole + 1 < size[axis] ? stride : 0;
    stride *= size[axis];
  }
  const image::Texel* base = texels + low[0] + low[1] + low[2];
  SteerableSample row[2], plane[2];
  const auto between = [](const SteerableSample& a, const SteerableSample& b, float t) {
    SteerableSample s;
    s.intensity = a.intensity + (b.intensity - a.intensity) * t;
    if (kWithGradient) s.gradient = a.gradient + (b.gradient - a.gradient) * t;
    return s;
  };
  const auto read = [&](int64_t offset) {
    const image::Texel texel = base[offset];
    SteerableSample s;
    s.intensity = texel.intensity;
    if (kWithGradient) {
      s.gradient = {static_cast<float>(texel.dx), static_cast<float>(texel.dy),
                    static_cast<float>(texel.dz)};
    }
    return s;
  };
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 2; ++y) {
      const int64_t offset = z * step[2] + y * step[1];
      row[y] = between(read(offset), read(offset + step[0]), part[0]);
    }
    plane[z] = between(row[0], row[1], part[1]);
  }
  return between(plane[0], plane[1], part[2]);
}

LARCH_HD int32_t rounded(float value) {
  constexpr float kMaximum = 1073741824.0F;
  const float clamped = value > kMaximum ? kMaximum : value < -kMaximum ? -kMaximum : value;
  return static_cast<int32_t>(rintf(clamped));
}

/// Returns the features of the patent: a datum, then a modification of it. Intensities and
/// gradients are divided by `unit`; logarithms and roots of what is not positive take 0.001 and 0.
LARCH_HD int32_t seed_value(SteerableType type, const SteerableSample& s, const Vec3f& direction,
                            float unit) {
  constexpr double kMinimum = 1e-3, kScale = 65536;
  const auto log_of_datum = [](double v) { return log_of(v > kMinimum ? v : kMinimum); };
  const double i = static_cast<double>(s.intensity) / unit, positive = i > 0 ? i : 0;
  const Vec3d g = s.gradient.cast<double>() / static_cast<double>(unit);
  const double f = dot(g, direction.cast<double>()), square = dot(g, g);
  const double abs_f = f < 0 ? -f : f;
  const auto angle = [&] {
    return square > 1e-12 ? acos_of(f / sqrt(square)) : 1.5707963267948966;
  };
  double value = 0;
  switch (type) {
    case SteerableType::kRootI:
      value = sqrt(positive);
      break;
    case SteerableType::kCubeRootI:
      value = positive > 0 ? exp_of(log_of(positive) / 3) : 0;
      break;
    case SteerableType::kSquareI:
      value = i * i;
      break;
    case SteerableType::kCubeI:
      value = i * i * i;
      break;
    case SteerableType::kLogI:
      value = log_of_datum(i);
      break;
    case SteerableType::kSquareMagnitude:
      value = square;
      break;
    case SteerableType::kAlongD:
      value = f;
      break;
    case SteerableType::kAbsD:
      value = abs_f;
      break;
    case SteerableType::kRootD:
      value = sqrt(abs_f);
      break;
    case SteerableType::kSquareD:
      value = f * f;
      break;
    case SteerableType::kCubeD:
      value = abs_f * f * f;
      break;
    case SteerableType::kLogD:
      value = log_of_datum(abs_f);
      break;
    case SteerableType::kAcrossD:
      value = square > f * f ? sqrt(square - f * f) : 0;
      break;
    case SteerableType::kAngleD:
      value = angle();
      break;
    case SteerableType::kSquareAngleD:
      value = angle() * angle();
      break;
    case SteerableType::kCubeAngleD:
      value = angle() * angle() * angle();
      break;
    case SteerableType::kLogAngleD:
      value = log_of_datum(angle());
      break;
    default:
      break;
  }
  return rounded(static_cast<float>(value * kScale));
}

/// Returns the value of a feature at a box.
LARCH_HD int32_t steerable_value(const SteerableFeature& feature, const SteerableFrame& frame,
                                 const SteerableImages& images) {
  constexpr float kScale = 16, kCosineScale = 8192;
  const int p = feature.point;
  constexpr int kMiddle = kPatternSide / 2;
  const auto part = [](int k) { return static_cast<float>(k - kMiddle); };
  const Vec3f x = frame.axes[0] * (frame.steps.x * part(p % kPatternSide)),
              y = frame.axes[1] * (frame.steps.y * part(p / kPatternSide % kPatternSide)),
              z = frame.axes[2] * (frame.steps.z * part(p / (kPatternSide * kPatternSide)));
  const float shrink = feature.level == 0 ? 1.0F : feature.level == 1 ? 0.5F : 0.25F;
  const float shift = 0.5F * (1 - shrink);  // a halving moves the first voxel by half a voxel
  const Vec3f at = (frame.centre + x + y + z) * shrink - Vec3f{shift, shift, shift};
  const image::Texel* texels = images.texels[feature.level];
  const Vec3i& size = images.sizes[feature.level];
  if (feature.type == SteerableType::kIntensity) {
    return rounded(sample_texels<false>(texels, size, at).intensity * kScale);
  }
  const SteerableSample s = sample_texels<true>(texels, size, at);
  const Vec3f& g = s.gradient;
  switch (feature.type) {
    case SteerableType::kMagnitude:
      return rounded(norm(g) * kScale);
    case SteerableType::kCosine: {
      const float length = norm(g);
      return length > 0.01F ? rounded(dot(g, frame.axes[2]) / length * kCosineScale) : 0;
    }
    case SteerableType::kGradientX:
      return rounded(g.x * kScale);
    case SteerableType::kGradientY:
      return rounded(g.y * kScale);
    case SteerableType::kGradientZ:
      return rounded(g.z * kScale);
    case SteerableType::kAlongX:
      return rounded(dot(g, frame.axes[0]) * kScale);
    case SteerableType::kAlongY:
      return rounded(dot(g, frame.axes[1]) * kScale);
    case SteerableType::kAlongZ:
      return rounded(dot(g, frame.axes[2]) * kScale);
    default:
      return seed_value(feature.type, s, frame.axes[0], images.unit);
  }
}

/// The response of columns or chosen features at listed boxes, for training (response_source.h).
struct SteerableResponse {
  const SteerableFeature* features = nullptr;
  const SteerableFrame* frames = nullptr;  ///< by sample
  const SteerableImages* images = nullptr;
  const uint32_t* image_of = nullptr;  ///< of each sample; null: all are of images[0]

  LARCH_HD int32_t operator()(uint32_t feature, size_t sample) const {
    const uint32_t image = image_of == nullptr ? 0 : image_of[sample];
    return steerable_value(features[feature], frames[sample], images[image]);
  }
};

}  // namespace larch::features
