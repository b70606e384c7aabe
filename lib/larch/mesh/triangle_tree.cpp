// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/triangle_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "larch/core/error.h"

namespace larch::mesh {
namespace {

constexpr int32_t kLeafSize = 4;

double squared_norm(const Vec3d& v) {
  return dot(v, v);
}

/// Returns the share of the way from a to b.
NearestPlace nearest_on_segment(const Vec3d& p, const Vec3d& a, const Vec3d& b) {
  const Vec3d ab = b - a;
  const double length = squared_norm(ab);
  const double t = length > 0 ? std::clamp(dot(p - a, ab) / length, 0.0, 1.0) : 0.0;
  return {squared_norm(p - (a + t * ab)), {1 - t, t, 0}};
}

/// No tree can tell copies of a triangle apart: a search would go through all of them.
std::vector<Vec3i> distinct(std::vector<Vec3i> triangles) {
  std::sort(triangles.begin(), triangles.end(), [](const Vec3i& a, const Vec3i& b) {
    return std::tie(a.x, a.y, a.z) < std::tie(b.x, b.y, b.z);
  });
  triangles.erase(std::unique(triangles.begin(), triangles.end()), triangles.end());
  return triangles;
}

}  // namespace

NearestPlace nearest_place(const Vec3d& p, const Vec3d& a, const Vec3d& b, const Vec3d& c) {
  const Vec3d ab = b - a, ac = c - a, ap = p - a;
  const double d1 = dot(ab, ap), d2 = dot(ac, ap);
  if (d1 <= 0 && d2 <= 0) return {squared_norm(ap), {1, 0, 0}};
  const Vec3d bp = p - b;
  const double d3 = dot(ab, bp), d4 = dot(ac, bp);
  if (d3 >= 0 && d4 <= d3) return {squared_norm(bp), {0, 1, 0}};
  const Vec3d cp = p - c;
  const double d5 = dot(ab, cp), d6 = dot(ac, cp);
  if (d6 >= 0 && d5 <= d6) return {squared_norm(cp), {0, 0, 1}};
  const double vc = d1 * d4 - d3 * d2, vb = d5 * d2 - d1 * d6, va = d3 * d6 - d5 * d4;
  const bool interior = va > 0 && vb > 0 && vc > 0;
  if (interior) {
    const double sum = va + vb + vc;
    return {squared_norm(ap - (ab * (vb / sum) + ac * (vc / sum))), {va / sum, vb / sum, vc / sum}};
  }
  // On an edge, or the triangle has no area: the nearest of the three edges.
  NearestPlace nearest = nearest_on_segment(p, a, b);
  const NearestPlace on_bc = nearest_on_segment(p, b, c), on_ca = nearest_on_segment(p, c, a);
  const Vec3d bc = on_bc.weights, ca = on_ca.weights;
  if (on_bc.squared < nearest.squared) nearest = {on_bc.squared, {0, bc.x, bc.y}};
  if (on_ca.squared < nearest.squared) nearest = {on_ca.squared, {ca.y, 0, ca.x}};
  return nearest;
}

TriangleTree::TriangleTree(const Mesh& surface) {
  if (surface.triangles.empty()) {
    throw InputError("no distance to a surface without triangles exists");
  }
  std::vector<Corners> corners;
  corners.reserve(surface.triangles.size());
  for (const Vec3i& t : distinct(surface.triangles)) {
    corners.push_back(
        {surface.vertices_mm[t.x], surface.vertices_mm[t.y], surface.vertices_mm[t.z]});
  }
  std::vector<int32_t> order(corners.size());
  std::iota(order.begin(), order.end(), 0);
  nodes_.reserve(corners.size());
  build(order, corners, 0, static_cast<int32_t>(order.size()));
  triangles_.reserve(order.size());
  for (const int32_t t : order) triangles_.push_back(corners[t]);
}

int64_t TriangleTree::bytes(int64_t triangles) {
  // The corners twice, and their order, while they are sorted.
  return triangles * static_cast<int64_t>(sizeof(Node) + 2 * sizeof(Corners) + sizeof(int32_t));
}

void TriangleTree::build(std::vector<int32_t>& order, const std::vector<Corners>& corners,
                         int32_t begin, int32_t end) {
  Node node{corners[order[begin]].a, corners[order[begin]].a, begin, end - begin};
  for (int32_t i = begin; i < end; ++i) {
    const Corners& t = corners[order[i]];
    for (int axis = 0; axis < 3; ++axis) {
      node.low[axis] = std::min({node.low[axis], t.a[axis], t.b[axis], t.c[axis]});
      node.high[axis] = std::max({node.high[axis], t.a[axis], t.b[axis], t.c[axis]});
    }
  }
  const size_t self = nodes_.size();
  nodes_.push_back(node);
  if (end - begin <= kLeafSize) return;
  const Vec3d extent = node.high - node.low;
  const int axis = extent.x >= extent.y && extent.x >= extent.z ? 0 : extent.y >= extent.z ? 1 : 2;
  const auto centre = [&](int32_t i) {
    const Corners& t = corners[i];
    return t.a[axis] + t.b[axis] + t.c[axis];
  };
  const int32_t middle = begin + (end - begin) / 2;
  std::nth_element(order.begin() + begin, order.begin() + middle, order.begin() + end,
                   [&](int32_t i, int32_t j) {
                     const double a = centre(i), b = centre(j);
                     return a < b || (a == b && i < j);
                   });
  nodes_[self].count = 0;
  build(order, corners, begin, middle);
  nodes_[self].first = static_cast<int32_t>(nodes_.size());
  build(order, corners, middle, end);
}

double TriangleTree::distance_mm(const Vec3d& p, int32_t& hint, double most_mm) const {
  const auto to_box = [&](const Node& node) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const double d = std::max({node.low[axis] - p[axis], 0.0, p[axis] - node.high[axis]});
      sum += d * d;
    }
    return sum;
  };
  const auto to_triangle = [&](int32_t i) {
    return squared_distance(p, triangles_[i].a, triangles_[i].b, triangles_[i].c);
  };
  double best = std::min(to_triangle(hint), most_mm * most_mm);
  // A box is passed over only if rounding cannot have made it look farther than it is. So the
  // result is the minimum over all triangles, whatever the hint.
  constexpr double kSlack = 1 - 1e-9;
  struct Entry {
    int32_t node;
    double squared;
  };
  Entry stack[64];  // the tree is balanced: its depth is below 32
  int top = 0;
  stack[top++] = {0, to_box(nodes_[0])};
  while (top > 0) {
    const Entry entry = stack[--top];
    if (entry.squared * kSlack > best) continue;
    const Node& node = nodes_[entry.node];
    for (int32_t i = node.first; i < node.first + node.count; ++i) {
      const double squared = to_triangle(i);
      if (squared < best) {
        best = squared;
        hint = i;
      }
    }
    if (node.count > 0) continue;
    Entry near{entry.node + 1, to_box(nodes_[entry.node + 1])};
    Entry far{node.first, to_box(nodes_[node.first])};
    if (far.squared < near.squared) std::swap(near, far);
    stack[top++] = far;
    stack[top++] = near;
  }
  return std::min(std::sqrt(best), most_mm);
}

}  // namespace larch::mesh
