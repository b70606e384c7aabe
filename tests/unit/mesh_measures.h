// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Volume, area and topology of surfaces, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "larch/data/mesh.h"

namespace larch::mesh {

/// Every edge of every triangle as (smaller vertex, larger vertex, 1 if it runs from larger to
/// smaller) packed into 64 bits, sorted.
inline std::vector<uint64_t> sorted_edges(const Mesh& surface) {
  std::vector<uint64_t> edges;
  edges.reserve(3 * surface.triangles.size());
  for (const Vec3i& t : surface.triangles) {
    for (int k = 0; k < 3; ++k) {
      const uint64_t a = static_cast<uint32_t>(t[k]), b = static_cast<uint32_t>(t[(k + 1) % 3]);
      edges.push_back(a < b ? a << 32 | b << 1 : b << 32 | a << 1 | 1);
    }
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

/// Enclosed volume by the divergence theorem; negative if triangles are clockwise seen from
/// outside. Meaningful for closed surfaces.
inline double volume_mm3(const Mesh& surface) {
  if (surface.triangles.empty()) return 0;
  // Relative to a vertex, so that a far origin costs no digits.
  const Vec3d origin = surface.vertices_mm[surface.triangles[0].x];
  double six_volumes = 0;
  for (const Vec3i& t : surface.triangles) {
    const Vec3d a = surface.vertices_mm[t.x] - origin, b = surface.vertices_mm[t.y] - origin,
                c = surface.vertices_mm[t.z] - origin;
    six_volumes += dot(a, cross(b, c));
  }
  return six_volumes / 6;
}

inline double area_mm2(const Mesh& surface) {
  double two_areas = 0;
  for (const Vec3i& t : surface.triangles) {
    const Vec3d a = surface.vertices_mm[t.x];
    two_areas += norm(cross(surface.vertices_mm[t.y] - a, surface.vertices_mm[t.z] - a));
  }
  return two_areas / 2;
}

/// True when every edge belongs to exactly two triangles that run along it in opposite directions:
/// the surface is watertight and consistently oriented. The empty surface is closed.
inline bool is_closed(const Mesh& surface) {
  const std::vector<uint64_t> edges = sorted_edges(surface);
  if (edges.size() % 2 != 0) return false;
  for (size_t i = 0; i < edges.size(); i += 2) {
    const bool opposite = (edges[i] & 1) == 0 && edges[i + 1] == (edges[i] | 1);
    const bool repeated = i + 2 < edges.size() && edges[i + 2] >> 1 == edges[i] >> 1;
    const bool loop = edges[i] >> 32 == (edges[i] & 0xffffffff) >> 1;
    if (!opposite || repeated || loop) return false;
  }
  return true;
}

/// Vertices - edges + triangles, over the vertices that some triangle uses: 2 for each sphere, 0
/// for each torus.
inline int64_t euler_characteristic(const Mesh& surface) {
  std::vector<uint64_t> edges = sorted_edges(surface);
  for (uint64_t& edge : edges) edge >>= 1;
  const auto distinct_edges = std::unique(edges.begin(), edges.end()) - edges.begin();
  std::vector<bool> used(surface.vertices_mm.size(), false);
  for (const Vec3i& t : surface.triangles) used[t.x] = used[t.y] = used[t.z] = true;
  const auto vertices = std::count(used.begin(), used.end(), true);
  return vertices - distinct_edges + static_cast<int64_t>(surface.triangles.size());
}

}  // namespace larch::mesh
