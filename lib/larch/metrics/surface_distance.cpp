// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/surface_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/triangle_tree.h"

namespace larch::metrics {
namespace {

struct Element {
  double distance_mm;
  double area_mm2;
};

constexpr double kRoundingMm = 1e-9;  // surfaces that coincide are nearer than this

/// The elements of `from`, with their distances to `to`, at out[0 .. triangles of from).
void measure(const Mesh& from, const Mesh& to, const Context& context, Element* out) {
  const mesh::TriangleTree tree(to);
  const auto body = [&](int64_t begin, int64_t end) {
    int32_t hint = 0;
    for (int64_t i = begin; i < end; ++i) {
      const Vec3i& t = from.triangles[i];
      const Vec3d &a = from.vertices_mm[t.x], &b = from.vertices_mm[t.y],
                  &c = from.vertices_mm[t.z];
      const double distance_mm = tree.distance_mm((a + b + c) / 3.0, hint);
      out[i] = {distance_mm < kRoundingMm ? 0 : distance_mm, norm(cross(b - a, c - a)) / 2};
    }
  };
  parallel_for(context.threads, static_cast<int64_t>(from.triangles.size()), 4096, body);
}

}  // namespace

SurfaceDistance surface_distance(const Mesh& a, const Mesh& b, const Context& context) {
  if (a.triangles.empty() && b.triangles.empty()) return {};
  if (a.triangles.empty() || b.triangles.empty()) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone, kNone, kNone};
  }
  std::vector<Element> elements(a.triangles.size() + b.triangles.size());
  measure(a, b, context, elements.data());
  measure(b, a, context, elements.data() + a.triangles.size());
  // Sorted by both members, the sums below have one order whatever the order of the triangles.
  std::sort(elements.begin(), elements.end(), [](const Element& p, const Element& q) {
    return p.distance_mm < q.distance_mm ||
           (p.distance_mm == q.distance_mm && p.area_mm2 < q.area_mm2);
  });
  double area = 0, moment = 0;
  for (const Element& e : elements) {
    area += e.area_mm2;
    moment += e.area_mm2 * e.distance_mm;
  }
  const auto quantile = [&](double share) {
    double below = 0;
    for (const Element& e : elements) {
      below += e.area_mm2;
      if (below >= share * area) return e.distance_mm;
    }
    return elements.back().distance_mm;
  };
  return {moment / area, quantile(0.5), quantile(0.95), elements.back().distance_mm};
}

SurfaceDistance surface_distance(const Volume<uint8_t>& a, const Volume<uint8_t>& b,
                                 const Context& context) {
  return surface_distance(mesh::marching_cubes(a, context), mesh::marching_cubes(b, context),
                          context);
}

int64_t surface_distance_bytes(const mesh::SurfaceSize& a, const mesh::SurfaceSize& b,
                               const Vec3i& volume, int threads) {
  const int64_t making = std::max(mesh::marching_cubes_bytes(a, volume, threads) + b.bytes(),
                                  mesh::marching_cubes_bytes(b, volume, threads) + a.bytes());
  const int64_t measuring = a.bytes() + b.bytes() +
                            static_cast<int64_t>(sizeof(Element)) * (a.triangles + b.triangles) +
                            mesh::TriangleTree::bytes(std::max(a.triangles, b.triangles));
  return std::max(making, measuring);
}

}  // namespace larch::metrics
