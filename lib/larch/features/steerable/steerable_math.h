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

/// One number. Lanes that take several at a time have types of their own in its place.
struct OneNumber {
  using Real = float;
  using Whole = int32_t;
  LARCH_HD static Whole whole(Real value) { return static_cast<Whole>(value); }
  LARCH_HD static Real real(Whole value) { return static_cast<Real>(value); }
};

/// Returns where a point of the pattern, in steps from its middle, lies along an axis of an image
/// that is `shrink` times as large as that of the frame.
template <class Real>
LARCH_HD Real place_of_point(const SteerableFrame& frame, int axis, const Real* point,
                             const Real& shrink) {
  const auto& [x, y, z] = frame.axes;
  const Real place = frame.centre[axis] + x[axis] * (frame.steps.x * point[0]) +
                     y[axis] * (frame.steps.y * point[1]) + z[axis] * (frame.steps.z * point[2]);
  return place * shrink - 0.5F * (1 - shrink);  // a halving moves the first voxel
}

/// The two voxels around a place along an axis; beyond the border the nearest place counts.
template <class N>
struct Neighbours {
  typename N::Whole low, step;  ///< `step`: elements from one to the other
  typename N::Real part;        ///< of the way to the other
};
template <class N>
LARCH_HD Neighbours<N> neighbours_of(const typename N::Real& at, const typename N::Whole& size,
                                     const typename N::Whole& stride) {
  const typename N::Real last = N::real(size - 1), none{};
  const typename N::Real place = !(at > none) ? none : at > last ? last : at;
  const typename N::Whole low = N::whole(place);
  return {low, low + 1 < size ? stride : typename N::Whole{}, place - N::real(low)};
}

/// Holds what is interpolated between voxels.
struct SteerableSample {
  float intensity = 0;
  Vec3f gradient{};
};

template <class Value>
LARCH_HD Value between(const Value& a, const Value& b, float t) {
  return a + (b - a) * t;
}
LARCH_HD SteerableSample between(const SteerableSample& a, const SteerableSample& b, float t) {
  return {between(a.intensity, b.intensity, t), between(a.gradient, b.gradient, t)};
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
  const auto value = [&]() -> double {
    switch (type) {
      case SteerableType::kRootI:
        return sqrt(positive);
      case SteerableType::kCubeRootI:
        return positive > 0 ? exp_of(log_of(positive) / 3) : 0;
      case SteerableType::kSquareI:
        return i * i;
      case SteerableType::kCubeI:
        return i * i * i;
      case SteerableType::kLogI:
        return log_of_datum(i);
      case SteerableType::kSquareMagnitude:
        return square;
      case SteerableType::kAlongD:
        return f;
      case SteerableType::kAbsD:
        return abs_f;
      case SteerableType::kRootD:
        return sqrt(abs_f);
      case SteerableType::kSquareD:
        return f * f;
      case SteerableType::kCubeD:
        return abs_f * f * f;
      case SteerableType::kLogD:
        return log_of_datum(abs_f);
      case SteerableType::kAcrossD:
        return square > f * f ? sqrt(square - f * f) : 0;
      case SteerableType::kAngleD:
        return angle();
      case SteerableType::kSquareAngleD:
        return angle() * angle();
      case SteerableType::kCubeAngleD:
        return angle() * angle() * angle();
      case SteerableType::kLogAngleD:
        return log_of_datum(angle());
      default:
        return 0;
    }
  };
  return rounded(static_cast<float>(value() * kScale));
}

constexpr float kValueScale = 16, kCosineScale = 8192;

/// Returns a cosine, from the projection of a gradient on the axis and its length.
template <class Real>
LARCH_HD Real cosine_of(const Real& along, const Real& length) {
  return length > 0.01F ? along / length * kCosineScale : Real{};
}

/// The point of a feature.
struct PatternPoint {
  float steps[3];  ///< from the middle of the pattern along its axes
  float shrink;    ///< of its level
};
LARCH_HD PatternPoint point_of(const SteerableFeature& feature) {
  const int p = feature.point;
  const auto part = [](int k) {
    const int from_middle = k - kPatternSide / 2;
    return static_cast<float>(from_middle);
  };
  return {{part(p % kPatternSide), part(p / kPatternSide % kPatternSide),
           part(p / (kPatternSide * kPatternSide))},
          feature.level == 0   ? 1.0F
          : feature.level == 1 ? 0.5F
                               : 0.25F};
}

/// Returns the value of a feature at a box.
LARCH_HD int32_t steerable_value(const SteerableFeature& feature, const SteerableFrame& frame,
                                 const SteerableImages& images) {
  const PatternPoint point = point_of(feature);
  const Vec3i& size = images.sizes[feature.level];
  const int32_t stride[3] = {1, size.x, size.x * size.y};
  const image::Texel* base = images.texels[feature.level];
  int32_t step[3];
  float part[3];
  for (int axis = 0; axis < 3; ++axis) {
    const float at = place_of_point(frame, axis, point.steps, point.shrink);
    const auto n = neighbours_of<OneNumber>(at, size[axis], stride[axis]);
    base += int64_t{n.low} * stride[axis];
    step[axis] = n.step;
    part[axis] = n.part;
  }
  const auto sample = [&](const auto& read) {
    decltype(read(base[0])) plane[2];
    for (int z = 0; z < 2; ++z) {
      const auto row = [&](int y) {
        const image::Texel* at = base + (y * step[1] + z * step[2]);
        return between(read(at[0]), read(at[step[0]]), part[0]);
      };
      plane[z] = between(row(0), row(1), part[1]);
    }
    return between(plane[0], plane[1], part[2]);
  };
  if (feature.type == SteerableType::kIntensity) {
    const auto read = [](const image::Texel& t) { return static_cast<float>(t.intensity); };
    return rounded(sample(read) * kValueScale);
  }
  const SteerableSample s = sample([](const image::Texel& t) {
    return SteerableSample{static_cast<float>(t.intensity),
                           Vec3<int16_t>{t.dx, t.dy, t.dz}.cast<float>()};
  });
  const Vec3f& g = s.gradient;
  switch (feature.type) {
    case SteerableType::kMagnitude:
      return rounded(norm(g) * kValueScale);
    case SteerableType::kCosine:
      return rounded(cosine_of(dot(g, frame.axes[2]), norm(g)));
    case SteerableType::kGradientX:
      return rounded(g.x * kValueScale);
    case SteerableType::kGradientY:
      return rounded(g.y * kValueScale);
    case SteerableType::kGradientZ:
      return rounded(g.z * kValueScale);
    case SteerableType::kAlongX:
      return rounded(dot(g, frame.axes[0]) * kValueScale);
    case SteerableType::kAlongY:
      return rounded(dot(g, frame.axes[1]) * kValueScale);
    case SteerableType::kAlongZ:
      return rounded(dot(g, frame.axes[2]) * kValueScale);
    default:
      return seed_value(feature.type, s, frame.axes[0], images.unit);
  }
}

/// The response of columns or chosen features at listed boxes, for training (response_source.h).
struct SteerableResponse {
  const SteerableFeature* features = nullptr;
  const SteerableFrame* frames = nullptr;  ///< by sample
  SteerableImages images{};

  LARCH_HD int32_t operator()(uint32_t feature, size_t sample) const {
    return steerable_value(features[feature], frames[sample], images);
  }
};

}  // namespace larch::features
