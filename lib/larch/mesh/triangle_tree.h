// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "larch/data/mesh.h"

namespace larch::mesh {

/// The place on a triangle that is nearest to a point: the weights of the corners, and the square
/// of the distance (closest feature by Voronoi regions; Ericson, "Real-Time Collision Detection",
/// 2005, section 5.1.5). Degenerate triangles are allowed.
struct NearestPlace {
  double squared = 0;
  Vec3d weights{};
};
NearestPlace nearest_place(const Vec3d& p, const Vec3d& a, const Vec3d& b, const Vec3d& c);
inline double squared_distance(const Vec3d& p, const Vec3d& a, const Vec3d& b, const Vec3d& c) {
  return nearest_place(p, a, b, c).squared;
}

/// A bounding box tree over the triangles of a surface, for exact nearest distances.
class TriangleTree {
 public:
  /// Copies what it needs from the surface. Throws InputError if there is no triangle.
  explicit TriangleTree(const Mesh& surface);

  /// Distance from `point_mm` to the nearest point of the surface. `hint` is a triangle to start
  /// from and receives the nearest one: it makes a run of neighbouring queries fast and has no
  /// effect on the distance. Any value in [0, triangle count) is valid. Returns `most_mm` where the
  /// surface is as far away or farther.
  double distance_mm(const Vec3d& point_mm, int32_t& hint,
                     double most_mm = std::numeric_limits<double>::infinity()) const;

  /// Upper bound for the bytes that making a tree of so many triangles takes, itself included.
  static int64_t bytes(int64_t triangles);

 private:
  /// Holds four children, so that their boxes are compared side by side.
  using Four = float __attribute__((vector_size(16)));
  struct Node {
    Four low[3], high[3];  // boxes in mm, rounded outwards
    int32_t first[4];      // leaf: first triangle; inner node: its index
    int32_t count[4];      // leaf: number of triangles; inner node: 0
    int32_t children;
  };
  struct Corners {
    Vec3d a, b, c;
  };
  int32_t build(std::vector<int32_t>& order, const std::vector<Corners>& corners, int32_t begin,
                int32_t end);

  std::vector<Node> nodes_;
  double farthest_mm_ = 0;          // of a coordinate
  std::vector<Corners> triangles_;  // in the order of the leaves
};

}  // namespace larch::mesh
