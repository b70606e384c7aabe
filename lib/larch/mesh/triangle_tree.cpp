// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/triangle_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::mesh {
namespace {

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

/// A triangle by the sum of its corners.
struct Place {
  Vec3f at;
  int32_t triangle;
};

/// Orders places so that each 4^k of them from a multiple of 4^k on are close together: they are
/// parted at half of `room`, a power of 2 and at least their number, along the longest axis of
/// their box.
void arrange(std::span<Place> places, size_t room, int threads) {
  while (room / 2 >= places.size()) room /= 2;
  if (room <= 4) return;
  Vec3f low = places[0].at, high = low;
  for (const Place& place : places) {
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], place.at[axis]);
      high[axis] = std::max(high[axis], place.at[axis]);
    }
  }
  const Vec3f extent = high - low;
  const int axis = extent.x >= extent.y && extent.x >= extent.z ? 0 : extent.y >= extent.z ? 1 : 2;
  const size_t half = room / 2;
  std::ranges::nth_element(places, places.begin() + static_cast<std::ptrdiff_t>(half), {},
                           [=](const Place& p) { return std::pair(p.at[axis], p.triangle); });
  constexpr size_t kAlone = 1 << 13;
  parallel_for_each(places.size() > kAlone ? threads : 1, 2, 1, [&](int64_t part) {
    arrange(part == 0 ? places.first(half) : places.subspan(half), half, threads);
  });
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

TriangleTree::TriangleTree(const Mesh& surface, int threads) {
  if (surface.triangles.empty()) {
    throw InputError("no distance to a surface without triangles exists");
  }
  const std::vector<Vec3i> all = distinct(surface.triangles);
  const auto corners_of = [&](int32_t i) {
    const Vec3i& t = all[static_cast<size_t>(i)];
    return Corners{surface.vertices_mm[t.x], surface.vertices_mm[t.y], surface.vertices_mm[t.z]};
  };
  std::vector<Place> places(all.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const Corners t = corners_of(static_cast<int32_t>(i));
    places[i] = {(t.a + t.b + t.c).cast<float>(), static_cast<int32_t>(i)};
  }
  arrange(places, std::bit_ceil(places.size()), threads);
  triangles_.reserve(places.size());
  for (const Place& place : places) triangles_.push_back(corners_of(place.triangle));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Four far = Four{} + kInfinity;
  size_t children = triangles_.size();
  do {
    std::vector<Node> nodes((children + 3) / 4, {{far, far, far}, {-far, -far, -far}});
    for (size_t child = 0; child < children; ++child) {
      Node& node = nodes[child / 4];
      for (int axis = 0; axis < 3; ++axis) {
        float low = kInfinity, high = -kInfinity;
        if (levels_.empty()) {
          const Corners& t = triangles_[child];
          low = rounded_down(std::min({t.a[axis], t.b[axis], t.c[axis]}));
          high = -rounded_down(-std::max({t.a[axis], t.b[axis], t.c[axis]}));
        } else {
          const Node& of = levels_.back()[child];
          for (int c = 0; c < 4; ++c) {
            low = std::min(low, of.low[axis][c]);
            high = std::max(high, of.high[axis][c]);
          }
        }
        node.low[axis][child % 4] = low;
        node.high[axis][child % 4] = high;
        error_mm_ = std::max({error_mm_, 4e-7F * std::abs(low), 4e-7F * std::abs(high)});
      }
    }
    children = nodes.size();
    levels_.push_back(std::move(nodes));
  } while (children > 1);
}

int64_t TriangleTree::bytes(int64_t triangles) {
  // Corners, and while they are arranged the triangles and their places; a node for three of them,
  // and one of each level.
  constexpr size_t kOfOne = sizeof(Node) / 3 + sizeof(Corners) + sizeof(Place) + sizeof(Vec3i);
  return triangles * static_cast<int64_t>(kOfOne) + 16 * static_cast<int64_t>(sizeof(Node));
}

/// Returns the squares of the least distances of the points in a box from the children of a node. A
/// child is passed over only if rounding cannot have made it look farther than it is, so that what
/// is found is the minimum over all triangles: the rounding of a coordinate of a point is at most
/// that of the farthest of the surface, and that of the distance itself.
[[gnu::always_inline]] inline TriangleTree::Four TriangleTree::least_squares(
    const Node& node, const Vec3f& low, const Vec3f& high) const {
  constexpr float kSlack = 1 - 1e-6F;
  Four squared{};
  for (int axis = 0; axis < 3; ++axis) {
    const Four before = node.low[axis] - high[axis], behind = low[axis] - node.high[axis];
    const Four d = (before > behind ? before : behind) - error_mm_;
    const Four outside = d > 0.0F ? d : Four{};
    squared += outside * outside;
  }
  return squared * kSlack;
}

/// Looks whether a triangle is nearer than the square of `best`.
void TriangleTree::improve(const Vec3d& p, int32_t triangle, double& best, int32_t& hint) const {
  const Corners& t = triangles_[static_cast<size_t>(triangle)];
  const double squared = squared_distance(p, t.a, t.b, t.c);
  if (squared >= best) return;
  best = squared;
  hint = triangle;
}

/// Visits the nodes of the level `last`, of -1 the triangles, whose boxes are within `best`, the
/// square of a distance that may become smaller on the way, of the points. The nearest come first.
template <class Visit>
void TriangleTree::search(const Vec3d& low, const Vec3d& high, int32_t last, const double& best,
                          const Visit& visit) const {
  const Vec3f lows = low.cast<float>(), highs = high.cast<float>();
  struct Entry {
    int32_t level, i;
    float squared;
  };
  Entry stack[64];  // three wait at a level, of which there are 16 at most
  int top = 0;
  stack[top++] = {static_cast<int32_t>(levels_.size()) - 1, 0, 0};
  while (top > 0) {
    const auto [level, i, least] = stack[--top];
    if (double{least} > best) continue;
    if (level == last) {
      visit(i);
      continue;
    }
    const Node& node = levels_[static_cast<size_t>(level)][static_cast<size_t>(i)];
    const Four squared = least_squares(node, lows, highs);
    const int bottom = top;
    for (int c = 0; c < 4; ++c) {
      if (double{squared[c]} > best) continue;
      int place = top++;
      for (; place > bottom && stack[place - 1].squared < squared[c]; --place) {
        stack[place] = stack[place - 1];
      }
      stack[place] = {level - 1, 4 * i + c, squared[c]};
    }
  }
}

double TriangleTree::distance_mm(const Vec3d& p, int32_t& hint, double most_mm) const {
  double best = most_mm * most_mm;
  improve(p, hint, best, hint);
  search(p, p, -1, best, [&](int32_t i) { improve(p, i, best, hint); });
  return std::min(std::sqrt(best), most_mm);
}

void TriangleTree::distances_mm(std::span<const Vec3d> points_mm, int32_t& hint, double most_mm,
                                double* out) const {
  Vec3d low = points_mm[0], high = low;
  for (const Vec3d& p : points_mm) {
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], p[axis]);
      high[axis] = std::max(high[axis], p[axis]);
    }
  }
  // No point is farther from the surface than this: nodes that are farther from all are left out.
  const double radius = norm(high - low) / 2;
  const double middle = distance_mm((low + high) * 0.5, hint, most_mm + radius);
  const double farthest = std::min(middle + radius, most_mm), bound = farthest * farthest;
  std::vector<int32_t> near;
  search(low, high, 0, bound, [&](int32_t i) { near.push_back(i); });
  for (const Vec3d& p : points_mm) {
    const Vec3f at = p.cast<float>();
    double best = most_mm * most_mm;
    improve(p, hint, best, hint);
    for (const int32_t i : near) {
      const Four squared = least_squares(levels_[0][static_cast<size_t>(i)], at, at);
      for (int c = 0; c < 4; ++c) {
        if (double{squared[c]} <= best && 4 * i + c != hint) improve(p, 4 * i + c, best, hint);
      }
    }
    *out++ = std::min(std::sqrt(best), most_mm);
  }
}

}  // namespace larch::mesh
