// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/data/pose.h"
#include "larch/tree/train/samples.h"

namespace larch::fixtures {

/// Steerable features, the smallest that deserve the name: the gradient magnitude of a volume at
/// the points of a grid of 5 x 5 x 5 that is turned and scaled with a candidate's box. Sums,
/// products, square roots and rounding of doubles, without fused operations: the same integers
/// everywhere.
struct GradientAtPose {
  static constexpr uint32_t kSide = 5;
  const int16_t* voxels = nullptr;  ///< of 1 mm, x fastest
  Vec3i size{};
  const Pose* poses = nullptr;

  LARCH_HD int32_t operator()(uint32_t column, size_t sample) const {
    const auto part = [](uint32_t k) { return (k % kSide) * 0.25 - 0.5; };
    const Vec3d at = world_from_box(
        poses[sample], {part(column), part(column / kSide), part(column / kSide / kSide)});
    const Vec3i v{nearest(at.x, size.x), nearest(at.y, size.y), nearest(at.z, size.z)};
    const int dx = value({v.x + 1, v.y, v.z}) - value({v.x - 1, v.y, v.z});
    const int dy = value({v.x, v.y + 1, v.z}) - value({v.x, v.y - 1, v.z});
    const int dz = value({v.x, v.y, v.z + 1}) - value({v.x, v.y, v.z - 1});
    const double square =
        static_cast<double>(int64_t{dx} * dx + int64_t{dy} * dy + int64_t{dz} * dz);
    return static_cast<int32_t>(std::floor(std::sqrt(square) + 0.5));
  }
  /// An index with a neighbour on either side.
  LARCH_HD static int nearest(double at, int count) {
    const double index = std::floor(at + 0.5);
    return index < 1 ? 1 : index > count - 2 ? count - 2 : static_cast<int>(index);
  }
  LARCH_HD int value(const Vec3i& v) const {
    return voxels[v.x + int64_t{size.x} * (v.y + int64_t{size.y} * v.z)];
  }
};

inline Quaternion normalized(const Quaternion& q) {
  const double length = std::sqrt(dot(q, q));
  return canonical({q.w / length, q.x / length, q.y / length, q.z / length});
}

/// A bright, turned ellipsoid in noise, and candidates for its pose: one half near it, the others
/// displaced, turned and scaled.
struct PoseScene {
  Vec3i size{48, 40, 36};
  std::vector<int16_t> voxels;
  std::vector<Pose> poses;
  tree::Samples samples;

  explicit PoseScene(size_t count, uint64_t seed) {
    const Pose truth{{23, 20, 17}, normalized({0.9, 0.2, -0.3, 0.25}), {26, 16, 12}};
    for (int64_t i = 0; i < int64_t{size.x} * size.y * size.z; ++i) {
      const int64_t row = i / size.x, plane = row / size.y;
      const Vec3d at{static_cast<double>(i % size.x), static_cast<double>(row % size.y),
                     static_cast<double>(plane)};
      const double far = norm(box_from_world(truth, at));
      const auto noise = static_cast<int>(hash_below(7, 1, static_cast<uint64_t>(i), 120));
      voxels.push_back(static_cast<int16_t>((far < 0.5 ? 600 : 200) + noise));
    }
    for (uint64_t i = 0; i < count; ++i) {
      const auto draw = [&](uint64_t stream) { return 2 * hash_unit(seed, stream, i) - 1; };
      const bool positive = i % 2 == 0;
      const double by = positive ? 0.04 : 0.5;
      Pose pose = truth;
      pose.centre_mm = pose.centre_mm + Vec3d{draw(1), draw(2), draw(3)} * (12 * by);
      pose.rotation =
          (normalized({truth.rotation.w + by * draw(4), truth.rotation.x + by * draw(5),
                       truth.rotation.y + by * draw(6), truth.rotation.z + by * draw(7)}));
      for (int axis = 0; axis < 3; ++axis) {
        pose.edges_mm[axis] *= 1 + by * draw(8 + static_cast<uint64_t>(axis));
      }
      poses.push_back(pose);
      samples.id.push_back(i);
      samples.positive.push_back(positive ? 1 : 0);
      samples.mass.push_back(uint64_t{1} << 32);
    }
  }
};

}  // namespace larch::fixtures
