// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/pose.h"

// Sets of hypotheses of marginal space learning: rotations and scales that a detector tries at
// every candidate of the stage before it. All are relative to what is expected there.
namespace larch::pose {

/// The choice of the rotations that are tried.
enum class RotationSet : uint8_t {
  kBall = 0,  ///< a grid of rotation vectors inside a ball
  kUniform,   ///< all rotations, evenly
  kExamples,  ///< those that occur in training
};
constexpr auto enum_names(RotationSet*) {
  return std::to_array<EnumName<RotationSet>>({{RotationSet::kBall, "ball"},
                                               {RotationSet::kUniform, "uniform"},
                                               {RotationSet::kExamples, "examples"}});
}

/// Rotation vectors on a body-centred cubic grid of the step inside the radius, the identity first;
/// all in radians. Throws UsageError for more than kMaximumRotations.
std::vector<Quaternion> ball_of_rotations(double radius, double step);
constexpr size_t kMaximumRotations = 40000;

/// A super-Fibonacci spiral (Alexa, CVPR 2022) of `count` rotations.
std::vector<Quaternion> uniform_rotations(size_t count);

/// Of `rotations`, in their order, each that lies farther than `radius` (radians) from all that
/// were taken before: every one has a taken one within the radius.
std::vector<Quaternion> cover_rotations(std::span<const Quaternion> rotations, double radius);

/// Distances in radians from rotations, drawn by hash, to the nearest of a set.
struct Covering {
  double mean = 0, p95 = 0, most = 0;
};
/// From rotations inside a ball of the radius about the identity; pi or more: from all.
Covering measure_covering(std::span<const Quaternion> set, double radius, size_t draws = 4000);

/// Logarithms of factors along the three axes: a grid of the step from low to high (low and high
/// lie on it, or beyond it by less than a step), the middle of it at the middle between them.
std::vector<Vec3d> scale_grid(const Vec3d& low, const Vec3d& high, double step);
constexpr size_t kMaximumScales = 512;

/// Of logarithms of factors, in their order, each that differs from all that were taken before by
/// more than `step` along an axis.
std::vector<Vec3d> cover_scales(std::span<const Vec3d> log_scales, double step);

}  // namespace larch::pose
