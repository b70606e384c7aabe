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

struct Box {
  Vec3d low, high;
};
template <class Corners>
Box box_of(const std::vector<int32_t>& order, const std::vector<Corners>& corners, int32_t begin,
           int32_t end) {
  Box box{corners[order[begin]].a, corners[order[begin]].a};
  for (int32_t i = begin; i < end; ++i) {
    const Corners& t = corners[order[i]];
    for (int axis = 0; axis < 3; ++axis) {
      box.low[axis] = std::min({box.low[axis], t.a[axis], t.b[axis], t.c[axis]});
      box.high[axis] = std::max({box.high[axis], t.a[axis], t.b[axis], t.c[axis]});
    }
  }
  return box;
}

/// Parts a range of triangles at the median along the longest axis of their box. Returns where.
template <class Corners>
int32_t split(std::vector<int32_t>& order, const std::vector<Corners>& corners, int32_t begin,
              int32_t end) {
  if (end - begin <= kLeafSize) return end;
  const Box box = box_of(order, corners, begin, end);
  const Vec3d extent = box.high - box.low;
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
  return middle;
}

float rounded_down(double value) {
  const auto near = static_cast<float>(value);
  return near > value ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near;
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
  nodes_.reserve(corners.size() / 3 + 1);  // a node is of five triangles at least, or of nodes
  build(order, corners, 0, static_cast<int32_t>(order.size()));
  triangles_.reserve(order.size());
  for (const int32_t t : order) triangles_.push_back(corners[t]);
}

int64_t TriangleTree::bytes(int64_t triangles) {
  // The corners twice, and their order, while they are sorted, and a node for three of them.
  return triangles * static_cast<int64_t>(sizeof(Node) / 3 + 2 * sizeof(Corners) + sizeof(int32_t));
}

int32_t TriangleTree::build(std::vector<int32_t>& order, const std::vector<Corners>& corners,
                            int32_t begin, int32_t end) {
  const int32_t middle = split(order, corners, begin, end);
  const int32_t cuts[] = {begin, split(order, corners, begin, middle), middle,
                          middle < end ? split(order, corners, middle, end) : end, end};
  const auto self = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({});
  for (int k = 0; k < 4; ++k) {
    const int32_t first = cuts[k], size = cuts[k + 1] - first;
    if (size == 0) continue;
    const Box box = box_of(order, corners, first, first + size);
    const int32_t inner = size > kLeafSize ? build(order, corners, first, first + size) : -1;
    Node& node = nodes_[static_cast<size_t>(self)];
    const int32_t c = node.children++;
    for (int axis = 0; axis < 3; ++axis) {
      node.low[axis][c] = rounded_down(box.low[axis]);
      node.high[axis][c] = -rounded_down(-box.high[axis]);
      farthest_mm_ = std::max({farthest_mm_, std::abs(box.low[axis]), std::abs(box.high[axis])});
    }
    node.first[c] = inner < 0 ? first : inner;
    node.count[c] = inner < 0 ? size : 0;
  }
  return self;
}

double TriangleTree::distance_mm(const Vec3d& p, int32_t& hint, double most_mm) const {
  const auto to_triangle = [&](int32_t i) {
    return squared_distance(p, triangles_[i].a, triangles_[i].b, triangles_[i].c);
  };
  double best = std::min(to_triangle(hint), most_mm * most_mm);
  // A box is passed over only if rounding cannot have made it look farther than it is. So the
  // result is the minimum over all triangles, whatever the hint.
  constexpr float kSlack = 1 - 1e-6F;
  const double coordinate = std::max({farthest_mm_, std::abs(p.x), std::abs(p.y), std::abs(p.z)});
  const auto error = static_cast<float>(coordinate * 4e-7);
  const float at[3] = {static_cast<float>(p.x), static_cast<float>(p.y), static_cast<float>(p.z)};
  struct Entry {
    int32_t first, count;
    float squared;
  };
  Entry stack[64];  // three wait at a level; the tree is balanced, its depth below 16
  int top = 0;
  stack[top++] = {0, 0, 0};
  while (top > 0) {
    const Entry entry = stack[--top];
    if (double{entry.squared} > best) continue;
    for (int32_t i = entry.first; i < entry.first + entry.count; ++i) {
      const double squared = to_triangle(i);
      if (squared < best) {
        best = squared;
        hint = i;
      }
    }
    if (entry.count > 0) continue;
    const Node& node = nodes_[static_cast<size_t>(entry.first)];
    Four squared{};
    for (int axis = 0; axis < 3; ++axis) {
      const Four before = node.low[axis] - at[axis], behind = at[axis] - node.high[axis];
      const Four d = (before > behind ? before : behind) - error;
      const Four outside = d > 0.0F ? d : Four{};
      squared += outside * outside;
    }
    const int bottom = top;
    for (int c = 0; c < node.children; ++c) {
      const float least = squared[c] * kSlack;
      if (double{least} > best) continue;
      int place = top++;
      for (; place > bottom && stack[place - 1].squared < least; --place) {
        stack[place] = stack[place - 1];
      }
      stack[place] = {node.first[c], node.count[c], least};
    }
  }
  return std::min(std::sqrt(best), most_mm);
}

}  // namespace larch::mesh
