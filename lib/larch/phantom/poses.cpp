// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/poses.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/noise_math.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {
namespace {

constexpr double kBackground = 1000, kContrast = 1000;
constexpr Vec3d kEdges{48, 32, 20};  // mm
/// Radii of the balls at the ends of x and y as shares of the semi-axis whose end they are at.
constexpr double kBallX = 5.0 / 24, kBallY = 4.0 / 16;
/// The others lie around the first object at the corners of a box with these half sides.
constexpr Vec3d kAround{22, 16, 24};  // mm
constexpr double kNoiseCell = 4;      // mm
constexpr double kRadians = 0.017453292519943295;
/// Draws of an object before all of them are drawn anew, and how often that is done.
constexpr uint64_t kTries = 32, kRounds = 256;

/// Draws of one object; those of its tries have indices of their own.
struct Draw {
  uint64_t seed, stream, attempt;
  double uniform(uint64_t k, double low, double high) const {
    return low + (high - low) * hash_unit(seed, stream, attempt * 32 + k);
  }
  double normal(uint64_t k) const { return draw_normal(seed, stream, attempt * 32 + 16 + k); }
  Vec3d normals(uint64_t k) const { return {normal(k), normal(k + 1), normal(k + 2)}; }
};

/// Returns the box around an object with its balls.
Pose outer_box(const PosesConfig& config, Pose pose) {
  if (config.balls) pose.edges_mm.x *= 1 + kBallX;
  if (config.balls) pose.edges_mm.y *= 1 + kBallY;
  return pose;
}

/// Returns the reach of a box from its centre along a direction, times the length of that.
double reach(const Pose& box, const Vec3d& along) {
  const Vec3d turned = rotate(conjugate(box.rotation), along);
  return 0.5 * (box.edges_mm.x * std::fabs(turned.x) + box.edges_mm.y * std::fabs(turned.y) +
                box.edges_mm.z * std::fabs(turned.z));
}

/// Two boxes are apart if their projections are, onto the normal of a face of either or onto a
/// direction that is perpendicular to an edge of each (the separating axis theorem).
bool are_apart(const Pose& a, const Pose& b) {
  const Mat3 of_a = rotation_matrix(a.rotation), of_b = rotation_matrix(b.rotation);
  const auto separates = [&](const Vec3d& along) {
    return std::fabs(dot(along, b.centre_mm - a.centre_mm)) > reach(a, along) + reach(b, along);
  };
  for (int i = 0; i < 3; ++i) {
    if (separates(of_a.column(i)) || separates(of_b.column(i))) return true;
    for (int j = 0; j < 3; ++j) {
      if (separates(cross(of_a.column(i), of_b.column(j)))) return true;
    }
  }
  return false;
}

/// Returns the most that the centre of a box may be away from that of the volume, along each axis.
Vec3d room_mm(const PosesConfig& config, const Pose& box) {
  Vec3d room;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<size_t>(axis);
    Vec3d along;
    along[axis] = 1;
    room[axis] = 0.5 * config.size[k] * config.spacing_mm[k] - reach(box, along);
  }
  return room;
}

/// Returns a pose for object `k`: the first, one that goes with the first, or a distractor.
Pose draw_pose(const PosesConfig& config, const Draw& draw, int k, const Pose* first) {
  const bool is_distractor = k >= config.structures;
  Pose pose;
  const double size = draw.uniform(0, config.scale[0], config.scale[1]) * (k == 0 ? 1 : 0.5);
  for (int axis = 0; axis < 3; ++axis) {
    const double stretch = draw.uniform(1 + static_cast<uint64_t>(axis), 0.95, 1.05);
    pose.edges_mm[axis] = config.object_scale * size * stretch * kEdges[axis];
  }
  const Vec3d v = draw.normals(0);
  if (k > 0 && !is_distractor) {
    // Opposite corners follow each other.
    const int corner = k % 2 == 1 ? 7 - k / 2 : k / 2 - 1;
    for (int axis = 0; axis < 3; ++axis) {
      pose.centre_mm[axis] = (corner >> axis & 1 ? 1 : -1) * config.object_scale * kAround[axis];
    }
    pose.centre_mm += draw.normals(3) * config.relative_sigma_mm;
    pose.rotation = from_rotation_vector(v * (config.relative_sigma_deg * kRadians));
    return compose(*first, pose);
  }
  const double angle = draw.uniform(7, 0, config.rotation_deg) * kRadians;
  pose.rotation = from_rotation_vector(v * (angle / norm(v)));
  const Vec3d room = room_mm(config, outer_box(config, pose));
  for (int axis = 0; axis < 3; ++axis) {
    const double most = is_distractor ? room[axis] : std::min(room[axis], config.shift_mm);
    pose.centre_mm[axis] = draw.uniform(4 + static_cast<uint64_t>(axis), -most, most);
  }
  return pose;
}

bool fits(const PosesConfig& config, const Pose& box, const std::vector<PlacedObject>& objects) {
  const Vec3d room = room_mm(config, box);
  for (int axis = 0; axis < 3; ++axis) {
    if (!(std::fabs(box.centre_mm[axis]) <= room[axis])) return false;
  }
  return std::all_of(objects.begin(), objects.end(), [&](const PlacedObject& other) {
    return are_apart(box, outer_box(config, other.pose));
  });
}

/// Adds object `k`; false if it finds no place.
bool add_object(const PosesConfig& config, Draw draw, int k, std::vector<PlacedObject>& objects) {
  for (uint64_t i = 0; i < kTries; ++i, ++draw.attempt) {
    const Pose pose = draw_pose(config, draw, k, k == 0 ? nullptr : &objects[0].pose);
    if (!fits(config, outer_box(config, pose), objects)) continue;
    objects.push_back({pose, k < config.structures ? k + 1 : 0});
    return true;
  }
  return false;
}

/// Distance to the surface of the ellipsoid to first order, negative inside.
double ellipsoid_mm(const Pose& pose, const Vec3d& world_mm) {
  const Vec3d q = box_from_world(pose, world_mm) * 2;
  Vec3d slope;
  for (int axis = 0; axis < 3; ++axis) slope[axis] = q[axis] / (0.5 * pose.edges_mm[axis]);
  const double length = norm(q), steepness = norm(slope);
  return steepness < 1e-6 ? -0.5 * pose.edges_mm.z : (length - 1) * length / steepness;
}

/// Distance to the nearer of the two balls.
double balls_mm(const Pose& pose, const Vec3d& world_mm) {
  const Vec3d p = box_mm_from_world(pose, world_mm);
  const double x = 0.5 * pose.edges_mm.x, y = 0.5 * pose.edges_mm.y;
  return std::min(norm(p - Vec3d{x, 0, 0}) - kBallX * x, norm(p - Vec3d{0, y, 0}) - kBallY * y);
}

}  // namespace

void check(const PosesConfig& config) {
  if (config.scale[0] > config.scale[1]) {
    throw UsageError("poses.scale: the first factor is larger than the second; exchange them");
  }
  if (config.distractors > 0 && config.structures < 2) {
    throw UsageError(
        "poses.distractors are copies of the objects after the first; give "
        "poses.structures of at least 2");
  }
}

std::vector<PlacedObject> place_objects(const PosesConfig& config, uint64_t seed, int number) {
  check(config);
  const int count = config.structures + (config.structures - 1) * config.distractors;
  for (uint64_t round = 0; round < kRounds; ++round) {
    std::vector<PlacedObject> objects;
    int k = 0;
    while (k < count &&
           add_object(config,
                      {seed, static_cast<uint64_t>(number) * 1000 + 700 + static_cast<uint64_t>(k),
                       round * kTries},
                      k, objects)) {
      ++k;
    }
    if (k == count) return objects;
  }
  throw UsageError("case " + std::to_string(number) + ": no places were found for " +
                   std::to_string(count) +
                   " objects; give a larger poses.size, or smaller poses.object_scale, "
                   "poses.structures or poses.distractors");
}

PosesCase make_poses(const PosesConfig& config, uint64_t seed, int number, int threads) {
  const std::vector<PlacedObject> objects = place_objects(config, seed, number);
  const Grid grid = centred_grid(config.size, config.spacing_mm);
  PosesCase out = blank_case<PosesCase>(grid);
  const double edge_mm = *std::max_element(config.spacing_mm.begin(), config.spacing_mm.end());
  // The squares of the shares of smoothed and white noise make 1.
  const double smooth = 0.8 * kContrast / config.snr;
  const double white = 0.6 * kContrast / config.snr;
  const uint64_t stream = static_cast<uint64_t>(number) * 1000 + 690;
  parallel_for_each(threads, grid.voxels(), 8192, [&](int64_t i) {
    const Vec3d p = world_from_index(grid, grid.voxel(i).cast<double>());
    double value = kBackground;
    for (const PlacedObject& object : objects) {
      const Pose& pose = object.pose;
      if (norm(p - pose.centre_mm) > norm(pose.edges_mm) + edge_mm) continue;
      const double core_mm = ellipsoid_mm(pose, p);
      const double object_mm = config.balls ? std::min(core_mm, balls_mm(pose, p)) : core_mm;
      value = blend(value, kBackground + kContrast, object_mm, edge_mm);
      if (core_mm < 0) out.labels[i] = object.label;
    }
    value += smooth * spline_noise(seed, stream, p / kNoiseCell) +
             white * draw_normal(seed, stream + 1, static_cast<uint64_t>(i));
    out.image[i] = static_cast<int16_t>(std::nearbyint(std::clamp(value, -32768.0, 32767.0)));
  });
  return out;
}

LabelTable poses_label_table(int structures) {
  LabelTable table;
  for (int k = 1; k <= structures; ++k) {
    const auto colour = [&](uint64_t part) {
      return static_cast<uint8_t>(60 + hash_below(0, static_cast<uint64_t>(k), part, 190));
    };
    table.push_back({k, "object_" + std::to_string(k), {colour(0), colour(1), colour(2)}});
  }
  return table;
}

}  // namespace larch::phantom
