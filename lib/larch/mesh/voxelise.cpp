// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/voxelise.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::mesh {
namespace {

/// Side of the point (y, z) of the line a-b in the projection along x. It is computed from the
/// smaller vertex to the larger one, whichever way the triangle runs. A point on the line counts as
/// moved by a little along y and by much less along z, so that of the triangles that share an edge
/// or a vertex there exactly one contains it.
bool is_left(double y, double z, const Vec3d& a, const Vec3d& b, bool swapped) {
  const Vec3d &p = swapped ? b : a, &q = swapped ? a : b;
  double side = (q.y - p.y) * (z - p.z) - (q.z - p.z) * (y - p.y);
  if (side == 0) side = q.z != p.z ? p.z - q.z : q.y - p.y;
  return (side >= 0) != swapped;
}

struct Crossing {
  double x;
  int winding;
};

struct Slab {
  const std::vector<Vec3d>& vertices;  // continuous indices of the grid
  const std::vector<Vec3i>& triangles;
};

void add_crossings(const Slab& slab, const Vec3i& t, int z,
                   std::vector<std::vector<Crossing>>& rows) {
  const Vec3d &a = slab.vertices[t.x], &b = slab.vertices[t.y], &c = slab.vertices[t.z];
  const double low = std::min({a.y, b.y, c.y}), high = std::max({a.y, b.y, c.y});
  const double rows_end = static_cast<double>(rows.size());
  const int first = static_cast<int>(std::clamp(std::ceil(low), 0.0, rows_end));
  const int last = static_cast<int>(std::clamp(std::floor(high), -1.0, rows_end - 1));
  for (int y = first; y <= last; ++y) {
    const bool ab = is_left(y, z, a, b, t.x > t.y), bc = is_left(y, z, b, c, t.y > t.z),
               ca = is_left(y, z, c, a, t.z > t.x);
    if (ab != bc || bc != ca) continue;
    const Vec3d n = cross(b - a, c - a);
    if (n.x == 0) continue;
    const double x = a.x - (n.y * (y - a.y) + n.z * (z - a.z)) / n.x;
    rows[y].push_back({x, ab ? 1 : -1});
  }
}

void fill_row(std::vector<Crossing>& row, uint8_t* out, int size) {
  std::sort(row.begin(), row.end(), [](const Crossing& p, const Crossing& q) {
    return p.x < q.x || (p.x == q.x && p.winding < q.winding);
  });
  int winding = 0;
  for (size_t i = 0; i + 1 < row.size(); ++i) {
    winding += row[i].winding;
    if (winding == 0) continue;
    const double first = std::max(0.0, std::ceil(row[i].x));
    const double last = std::min(static_cast<double>(size), std::ceil(row[i + 1].x));
    if (last <= first) continue;
    for (int x = static_cast<int>(first); x < last; ++x) out[x] = 1;
  }
}

}  // namespace

Volume<uint8_t> voxelise(const Mesh& surface, const Grid& grid, const Context& context) {
  Volume<uint8_t> mask(grid, 0);
  std::vector<Vec3d> vertices(surface.vertices_mm.size());
  for (size_t v = 0; v < vertices.size(); ++v) {
    vertices[v] = index_from_world(grid, surface.vertices_mm[v]);
  }
  // Triangles by the slices that they reach.
  std::vector<std::vector<int32_t>> by_slice(grid.size.z);
  for (size_t i = 0; i < surface.triangles.size(); ++i) {
    const Vec3i& t = surface.triangles[i];
    const double a = vertices[t.x].z, b = vertices[t.y].z, c = vertices[t.z].z;
    const double low = std::max(0.0, std::ceil(std::min({a, b, c})));
    const double high = std::min(grid.size.z - 1.0, std::floor(std::max({a, b, c})));
    for (int z = static_cast<int>(std::min(low, 1e9)); z <= high; ++z) {
      by_slice[z].push_back(static_cast<int32_t>(i));
    }
  }
  const Slab slab{vertices, surface.triangles};
  parallel_for(context.threads, grid.size.z, 1, [&](int64_t begin, int64_t end) {
    std::vector<std::vector<Crossing>> rows(grid.size.y);
    for (int64_t z = begin; z < end; ++z) {
      for (auto& row : rows) row.clear();
      for (const int32_t i : by_slice[z]) {
        add_crossings(slab, surface.triangles[i], static_cast<int>(z), rows);
      }
      for (int y = 0; y < grid.size.y; ++y) {
        fill_row(rows[y], mask.data() + grid.linear({0, y, static_cast<int32_t>(z)}), grid.size.x);
      }
    }
  });
  return mask;
}

double signed_volume_mm3(const Mesh& surface) {
  if (surface.triangles.empty()) return 0;
  const auto at = [&](int v) { return surface.vertices_mm[static_cast<size_t>(v)]; };
  const Vec3d origin = at(surface.triangles[0].x);
  double sum = 0;
  for (const Vec3i& t : surface.triangles) {
    sum += dot(at(t.x) - origin, cross(at(t.y) - origin, at(t.z) - origin));
  }
  return sum / 6;
}

double area_mm2(const Mesh& surface) {
  const auto at = [&](int v) { return surface.vertices_mm[static_cast<size_t>(v)]; };
  double sum = 0;
  for (const Vec3i& t : surface.triangles) sum += norm(cross(at(t.y) - at(t.x), at(t.z) - at(t.x)));
  return sum / 2;
}

}  // namespace larch::mesh
