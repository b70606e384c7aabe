// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/triangle_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // No vector is passed to another file.

namespace larch::mesh {
namespace {

/// Holds a number of each of four triangles. Functions for AVX2 return vectors in another way than
/// others do, so those that return one are inlined.
using Doubles = double __attribute__((vector_size(32)));

template <class T>
[[gnu::always_inline]] inline T dot_of(const Vec3<T>& a, const Vec3<T>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
[[gnu::always_inline]] inline Vec3<T> times(const Vec3<T>& a, const T& s) {
  return {a.x * s, a.y * s, a.z * s};
}

/// Returns the share of the way from a to b.
template <class T>
[[gnu::always_inline]] inline NearestOf<T> nearest_on_segment(const Vec3<T>& p, const Vec3<T>& a,
                                                              const Vec3<T>& b) {
  const T zero{}, one = zero + 1.0;
  const Vec3<T> ab = b - a;
  const T length = dot_of(ab, ab), share = dot_of(p - a, ab) / length;
  const T up = share < zero ? zero : share, clamped = one < up ? one : up;
  const T t = length > zero ? clamped : zero;
  const Vec3<T> away = p - (a + times(ab, t));
  return {dot_of(away, away), {one - t, t, zero}};
}

/// Returns the place on a triangle, or those on four, found without branches.
template <class T>
[[gnu::always_inline]] inline NearestOf<T> nearest(const Vec3<T>& p, const Vec3<T>& a,
                                                   const Vec3<T>& b, const Vec3<T>& c) {
  const T zero{}, one = zero + 1.0;
  const Vec3<T> ab = b - a, ac = c - a, ap = p - a, bp = p - b, cp = p - c;
  const T d1 = dot_of(ab, ap), d2 = dot_of(ac, ap), d3 = dot_of(ab, bp), d4 = dot_of(ac, bp),
          d5 = dot_of(ab, cp), d6 = dot_of(ac, cp);
  // On an edge, or the triangle has no area: the nearest of the three edges.
  NearestOf<T> place = nearest_on_segment(p, a, b);
  const NearestOf<T> on_bc = nearest_on_segment(p, b, c), on_ca = nearest_on_segment(p, c, a);
  const Vec3<T>&bc = on_bc.weights, &ca = on_ca.weights;
  const auto choose = [&](const auto& is, const T& squared, const Vec3<T>& weights) {
    place.squared = is ? squared : place.squared;
    for (int k = 0; k < 3; ++k) place.weights[k] = is ? weights[k] : place.weights[k];
  };
  choose(on_bc.squared < place.squared, on_bc.squared, {zero, bc.x, bc.y});
  choose(on_ca.squared < place.squared, on_ca.squared, {ca.y, zero, ca.x});
  const T vc = d1 * d4 - d3 * d2, vb = d5 * d2 - d1 * d6, va = d3 * d6 - d5 * d4;
  const T sum = va + vb + vc;
  const Vec3<T> off = ap - (times(ab, vb / sum) + times(ac, vc / sum));
  choose((va > zero) & (vb > zero) & (vc > zero), dot_of(off, off), {va / sum, vb / sum, vc / sum});
  choose((d6 >= zero) & (d5 <= d6), dot_of(cp, cp), {zero, zero, one});
  choose((d3 >= zero) & (d4 <= d3), dot_of(bp, bp), {zero, one, zero});
  choose((d1 <= zero) & (d2 <= zero), dot_of(ap, ap), {one, zero, zero});
  return place;
}

/// Returns the square of the distance from the nearest of four triangles: corners[c][axis] are the
/// coordinates of corner c of each.
#ifdef __x86_64__
[[gnu::target_clones("avx2", "default")]]
#endif
double
least_squared(const Vec3d& p, const double (*corners)[3][4]) {
  Doubles t[9];
  for (int i = 0; i < 9; ++i) std::memcpy(&t[i], corners[i / 3][i % 3], sizeof(Doubles));
  const Vec3<Doubles> at{p.x + Doubles{}, p.y + Doubles{}, p.z + Doubles{}};
  const Doubles squared =
      nearest<Doubles>(at, {t[0], t[1], t[2]}, {t[3], t[4], t[5]}, {t[6], t[7], t[8]}).squared;
  return std::min(std::min(squared[0], squared[1]), std::min(squared[2], squared[3]));
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
  for (const Place& place : places) widen(low, high, place.at);
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
  return nearest(p, a, b, c);
}

TriangleTree::TriangleTree(const Mesh& surface, int threads) {
  if (surface.triangles.empty()) {
    throw InputError("no distance to a surface without triangles exists");
  }
  const std::vector<Vec3i> all = distinct(surface.triangles);
  std::vector<Place> places(all.size());
  const auto corner = [&](int32_t i, int c) {
    return surface.vertices_mm[all[static_cast<size_t>(i)][c]];
  };
  for (int32_t i = 0; i < static_cast<int32_t>(places.size()); ++i) {
    places[static_cast<size_t>(i)] = {(corner(i, 0) + corner(i, 1) + corner(i, 2)).cast<float>(),
                                      i};
  }
  arrange(places, std::bit_ceil(places.size()), threads);
  leaves_.resize((places.size() + 3) / 4);
  for (size_t i = 0; i < 4 * leaves_.size(); ++i) {
    for (int c = 0; c < 3; ++c) {
      const Vec3d at = corner(places[std::min(i, places.size() - 1)].triangle, c);
      for (int axis = 0; axis < 3; ++axis) {
        leaves_[i / 4].corners[c][axis][i % 4] = at[axis];
        error_mm_ = std::max(error_mm_, 4e-7F * std::abs(static_cast<float>(at[axis])));
      }
    }
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Four far = Four{} + kInfinity;
  size_t children = places.size();
  do {
    std::vector<Node> nodes((children + 3) / 4, {{far, far, far}, {-far, -far, -far}});
    constexpr int64_t kTogether = 1 << 12;  // children, those of whole nodes
    parallel_for_each(threads, static_cast<int64_t>(children), kTogether, [&](int64_t child) {
      const auto place = static_cast<size_t>(child / 4), lane = static_cast<size_t>(child % 4);
      for (int axis = 0; axis < 3; ++axis) {
        float low = kInfinity, high = -kInfinity;
        if (levels_.empty()) {
          for (const auto& corner : leaves_[place].corners) {
            low = std::min(low, rounded_down(corner[axis][lane]));
            high = std::max(high, -rounded_down(-corner[axis][lane]));
          }
        } else {
          const Node& of = levels_.back()[static_cast<size_t>(child)];
          for (int c = 0; c < 4; ++c) {
            low = std::min(low, of.low[axis][c]);
            high = std::max(high, of.high[axis][c]);
          }
        }
        nodes[place].low[axis][lane] = low;
        nodes[place].high[axis][lane] = high;
      }
    });
    children = nodes.size();
    levels_.push_back(std::move(nodes));
  } while (children > 1 || levels_.size() == 1);  // a node for what search() begins with
}

int64_t TriangleTree::bytes(int64_t triangles) {
  // Corners, and while they are arranged the triangles and their places; a node for three of them,
  // and one of each level.
  constexpr size_t kOfOne = sizeof(Node) / 3 + sizeof(Leaf) / 4 + sizeof(Place) + sizeof(Vec3i);
  constexpr size_t kOfAll = 16 * sizeof(Node) + sizeof(Leaf);
  return triangles * static_cast<int64_t>(kOfOne) + static_cast<int64_t>(kOfAll);
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

/// Calls visit(leaf, square of its least distance) for the leaves whose boxes are within `best`,
/// the square of a distance that may become smaller on the way, of the points in a box. The nearest
/// nodes come first.
template <class Visit>
void TriangleTree::search(const Vec3d& low, const Vec3d& high, const double& best,
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
    if (least > best) continue;
    const Node& node = levels_[static_cast<size_t>(level)][static_cast<size_t>(i)];
    const Four squared = least_squares(node, lows, highs);
    const int bottom = top;
    for (int c = 0; c < 4; ++c) {
      if (squared[c] > best) continue;
      if (level == 1) {
        visit(4 * i + c, squared[c]);
        continue;
      }
      int place = top++;
      for (; place > bottom && stack[place - 1].squared < squared[c]; --place) {
        stack[place] = stack[place - 1];
      }
      stack[place] = {level - 1, 4 * i + c, squared[c]};
    }
  }
}

double TriangleTree::distance_mm(const Vec3d& p, int32_t& hint, double most_mm) const {
  double mm = 0;
  distances_mm({&p, 1}, hint, most_mm, &mm);
  return mm;
}

void TriangleTree::distances_mm(std::span<const Vec3d> points_mm, int32_t& hint, double most_mm,
                                double* out) const {
  Vec3d low = points_mm[0], high = low;
  for (const Vec3d& p : points_mm) widen(low, high, p);
  const std::span<double> squares(out, points_mm.size());
  std::ranges::fill(squares, most_mm * most_mm);
  // The tree holds fewer triangles than a surface where some stand twice.
  const int32_t first = std::min(hint / 4, static_cast<int32_t>(leaves_.size()) - 1);
  double farthest = 0;
  const auto look = [&](int32_t leaf, float least) {
    farthest = 0;
    const auto place = static_cast<size_t>(leaf);
    for (size_t k = 0; k < squares.size(); ++k) {
      const Vec3f at = points_mm[k].cast<float>();
      const auto near = least_squares(levels_[0][place], at, at) <= static_cast<float>(squares[k]);
      if (least <= squares[k] && (near[0] | near[1] | near[2] | near[3]) != 0) {
        const double squared = least_squared(points_mm[k], leaves_[place].corners);
        if (squared < squares[k]) squares[k] = squared, hint = 4 * leaf;
      }
      farthest = std::max(farthest, squares[k]);
    }
  };
  look(first, 0);
  search(low, high, farthest, [&](int32_t leaf, float least) {
    if (leaf != first) look(leaf, least);
  });
  for (double& square : squares) square = std::min(std::sqrt(square), most_mm);
}

}  // namespace larch::mesh
