// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/hypotheses.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/core/random_math.h"

namespace larch::pose {
namespace {

constexpr double kPi = 3.141592653589793;
constexpr uint64_t kCoveringStream = 0x636f766572;  // "cover"

/// Returns the largest |a . b| with a rotation of the set: the cosine of half the distance to the
/// nearest.
double nearest_cosine(std::span<const Quaternion> set, const Quaternion& q) {
  double best = 0;
  for (const Quaternion& member : set) best = std::max(best, std::abs(dot(member, q)));
  return best;
}

/// Uniform among all rotations (Shoemake 1992), or of rotation vectors inside the ball.
Quaternion draw_rotation(double radius, uint64_t index) {
  const auto unit = [&](uint64_t k) { return hash_unit(0, kCoveringStream, 64 * index + k); };
  if (radius >= kPi) {
    const double u = unit(0), a = unit(1), b = unit(2), low = std::sqrt(1 - u), high = std::sqrt(u);
    return canonical({low * sine_of_turns(a), low * cosine_of_turns(a), high * sine_of_turns(b),
                      high * cosine_of_turns(b)});
  }
  for (uint64_t k = 0;; k += 3) {  // a point of the cube lies in the ball with probability 0.52
    const Vec3d v{2 * unit(k) - 1, 2 * unit(k + 1) - 1, 2 * unit(k + 2) - 1};
    if (dot(v, v) <= 1 || k > 57) return from_rotation_vector(v * radius);
  }
}

}  // namespace

std::vector<Quaternion> ball_of_rotations(double radius, double step) {
  const int most = static_cast<int>(std::ceil(radius / step)) + 1;
  const auto refuse = [] {
    throw UsageError("a ball of rotations has more than " + std::to_string(kMaximumRotations) +
                     " in such steps: give a larger rotation_step_deg, or rotations uniform");
  };
  if (std::pow(2.0 * most + 1, 3) > 64.0 * kMaximumRotations) refuse();
  std::vector<std::pair<double, Vec3d>> vectors;
  for (const double offset : {0.0, 0.5})
    for (int z = -most; z <= most; ++z)
      for (int y = -most; y <= most; ++y)
        for (int x = -most; x <= most; ++x) {
          const Vec3d v = Vec3d{x + offset, y + offset, z + offset} * step;
          if (norm(v) <= radius * (1 + 1e-9)) vectors.emplace_back(dot(v, v), v);
        }
  if (vectors.size() > kMaximumRotations) refuse();
  std::ranges::stable_sort(vectors, {}, [](const auto& one) { return one.first; });
  std::vector<Quaternion> set;
  set.reserve(vectors.size());
  for (const auto& [square, v] : vectors) set.push_back(from_rotation_vector(v));
  return set;
}

std::vector<Quaternion> uniform_rotations(size_t count) {
  constexpr double kPhi = 1.4142135623730951, kPsi = 1.533751168755204288;
  std::vector<Quaternion> set;
  for (size_t i = 0; i < count; ++i) {
    const double s = static_cast<double>(i) + 0.5, t = s / static_cast<double>(count);
    const double r = std::sqrt(t), other = std::sqrt(1 - t);
    set.push_back(canonical({other * cosine_of_turns(s / kPsi), r * sine_of_turns(s / kPhi),
                             r * cosine_of_turns(s / kPhi), other * sine_of_turns(s / kPsi)}));
  }
  return set;
}

std::vector<Quaternion> cover_rotations(std::span<const Quaternion> rotations, double radius) {
  const double cosine = cosine_of_turns(radius / 2 / (2 * kPi));
  std::vector<Quaternion> taken;
  for (const Quaternion& q : rotations) {
    if (nearest_cosine(taken, q) < cosine) taken.push_back(q);
  }
  return taken;
}

Covering measure_covering(std::span<const Quaternion> set, double radius, size_t draws) {
  std::vector<double> distances;
  double sum = 0;
  for (size_t i = 0; i < draws; ++i) {
    distances.push_back(2 * acos_of(nearest_cosine(set, draw_rotation(radius, i))));
    sum += distances.back();
  }
  std::ranges::sort(distances);
  return {sum / static_cast<double>(draws), distances[draws * 95 / 100], distances.back()};
}

std::vector<Vec3d> scale_grid(const Vec3d& low, const Vec3d& high, double step) {
  Vec3i count;
  for (int axis = 0; axis < 3; ++axis) {
    count[axis] =
        1 + static_cast<int>(std::ceil(std::min((high[axis] - low[axis]) / step - 1e-9, 1e6)));
    count[axis] = std::max(count[axis], 1);
  }
  if (int64_t{count.x} * count.y * count.z > int64_t{1} << 24) {
    throw UsageError("the scales of the structure vary too much for a grid of this step");
  }
  std::vector<Vec3d> grid;
  for (int z = 0; z < count.z; ++z)
    for (int y = 0; y < count.y; ++y)
      for (int x = 0; x < count.x; ++x) {
        const Vec3d at{x - (count.x - 1) / 2.0, y - (count.y - 1) / 2.0, z - (count.z - 1) / 2.0};
        grid.push_back((low + high) * 0.5 + at * step);
      }
  return grid;
}

std::vector<Vec3d> cover_scales(std::span<const Vec3d> log_scales, double step) {
  std::vector<Vec3d> taken;
  const auto near = [&](const Vec3d& a, const Vec3d& b) {
    const Vec3d d = a - b;
    return std::abs(d.x) <= step && std::abs(d.y) <= step && std::abs(d.z) <= step;
  };
  for (const Vec3d& s : log_scales) {
    const bool covered =
        std::ranges::any_of(taken, [&](const Vec3d& other) { return near(other, s); });
    if (!covered) taken.push_back(s);
  }
  return taken;
}

}  // namespace larch::pose
