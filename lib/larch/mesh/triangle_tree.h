// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "larch/data/mesh.h"

namespace larch::mesh {

/// The place on a triangle that is nearest to a point: the weights of the corners, and the square
/// of the distance (closest feature by Voronoi regions; Ericson, "Real-Time Collision Detection",
/// 2005, section 5.1.5). Degenerate triangles are allowed.
template <class T>
struct NearestOf {
  T squared{};
  Vec3<T> weights{};
};
using NearestPlace = NearestOf<double>;
NearestPlace nearest_place(const Vec3d& p, const Vec3d& a, const Vec3d& b, const Vec3d& c);

/// A bounding box tree over the triangles of a surface, for exact nearest distances.
class TriangleTree {
 public:
  /// Copies what it needs from the surface. Throws InputError if there is no triangle.
  explicit TriangleTree(const Mesh& surface, int threads = 1);

  /// Distance from `point_mm` to the nearest point of the surface. `hint` is a triangle to start
  /// from and receives one near the nearest: it makes a run of neighbouring queries fast and has no
  /// effect on the distance. Any value in [0, triangle count) is valid. Returns `most_mm` where the
  /// surface is as far away or farther.
  double distance_mm(const Vec3d& point_mm, int32_t& hint,
                     double most_mm = std::numeric_limits<double>::infinity()) const;

  /// Writes the distance of each of some points, at least one, to `out`. Points that are close
  /// together, such as neighbouring voxels, take less time together than one by one.
  void distances_mm(std::span<const Vec3d> points_mm, int32_t& hint, double most_mm,
                    double* out) const;

  /// Upper bound for the bytes that making a tree of so many triangles takes, itself included.
  static int64_t bytes(int64_t triangles);

 private:
  /// Holds the boxes of four children in mm, rounded outwards, so that they are compared side by
  /// side. Where there are fewer, the others are infinitely far away.
  using Four = float __attribute__((vector_size(16)));
  struct Node {
    Four low[3], high[3];
  };
  /// Holds the corners of four triangles; where there are fewer, the last one several times.
  struct Leaf {
    double corners[3][3][4];  // corner, axis, triangle
  };

  Four least_squares(const Node& node, const Vec3f& low, const Vec3f& high) const;
  template <class Visit>
  void search(const Vec3d& low, const Vec3d& high, const double& best, const Visit& visit) const;

  std::vector<Leaf> leaves_;  // near ones side by side
  /// Child c of node i is triangle c of leaf i, or the node 4 i + c of the level before.
  std::vector<std::vector<Node>> levels_;
  float error_mm_ = 0;  // that rounding of coordinates may add to distances
};

}  // namespace larch::mesh
