// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_surface.h"

#include <algorithm>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/filters/distance.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/triangle_tree.h"

namespace larch::pipeline {
namespace {

/// A surface that goes on `mm` and more beyond the border of the image, where its mesh is closed.
Volume<float> extended(const Volume<float>& surface, double mm) {
  Grid grid = surface.grid();
  Vec3i more{};
  for (int axis = 0; axis < 3; ++axis) {
    more[axis] = static_cast<int32_t>(std::ceil(mm / grid.spacing_mm[axis])) + 1;
    grid.size[axis] += 2 * more[axis];
  }
  grid.origin_mm = world_from_index(grid, (more * -1).cast<double>());
  auto wide = Volume<float>::unfilled(grid);
  const Vec3i last = surface.size() - Vec3i{1, 1, 1};
  for (int64_t i = 0; i < wide.voxels(); ++i) {
    const Vec3i at = grid.voxel(i) - more;
    wide[i] = surface(
        {std::clamp(at.x, 0, last.x), std::clamp(at.y, 0, last.y), std::clamp(at.z, 0, last.z)});
  }
  return wide;
}

/// Returns at which part of the way from one voxel to the next along an axis a surface lies.
double crossing(const Volume<float>& surface, const Vec3i& from, int axis) {
  const auto value = [&](int32_t steps) {
    Vec3i at = from;
    at[axis] = std::clamp(at[axis] + steps, 0, surface.size()[axis] - 1);
    return double{surface(at)};
  };
  const double a = value(0), b = value(1);
  const double bent_a = value(-1) - 2 * a + b, bent_b = a - 2 * b + value(2);
  double m = std::abs(bent_a) < std::abs(bent_b) ? bent_a : bent_b;
  m = bent_a * bent_b > 0 ? std::clamp(m, -std::abs(a - b), std::abs(a - b)) : 0;
  // This root of a + p t + q t^2 = 0 is the one on the way; the form avoids cancellation.
  const double q = m / 2, p = b - a - q;
  const double t = 2 * a / (-p - std::copysign(std::sqrt(std::max(p * p - 4 * q * a, 0.0)), p));
  constexpr double kMargin = 1e-3;  // Marching cubes keeps vertices so far from voxels.
  return std::clamp(t, kMargin, 1 - kMargin);
}

/// Moves the vertices of marching cubes, each on the line between two voxels, along that line.
void move_vertices(Mesh& mesh, const Volume<float>& surface, int threads) {
  const Grid& grid = surface.grid();
  const auto count = static_cast<int64_t>(mesh.vertices_mm.size());
  parallel_for(threads, count, 1 << 10, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      Vec3d& vertex_mm = mesh.vertices_mm[static_cast<size_t>(v)];
      Vec3d index = index_from_world(grid, vertex_mm);
      int axis = 0;
      const auto off = [&](int k) { return std::abs(index[k] - std::round(index[k])); };
      for (int k = 1; k < 3; ++k) axis = off(k) > off(axis) ? k : axis;
      Vec3i from{};
      for (int k = 0; k < 3; ++k) {
        index[k] = k == axis ? std::floor(index[k]) : std::round(index[k]);
        from[k] = static_cast<int32_t>(index[k]);
      }
      Vec3i to = from;
      ++to[axis];
      if (!grid.contains(from) || !grid.contains(to)) continue;
      index[axis] += crossing(surface, from, axis);
      vertex_mm = world_from_index(grid, index);
    }
  });
}

}  // namespace

Volume<float> surface_of_all(const levelset::SegmentResult& result) {
  Volume<float> all = result.by_label.at(0).surface;
  for (size_t f = 1; f < result.by_label.size(); ++f) {
    const Volume<float>& other = result.by_label[f].surface;
    for (int64_t i = 0; i < all.voxels(); ++i) all[i] = std::min(all[i], other[i]);
  }
  return all;
}

Mesh mesh_of(const Volume<float>& surface, int threads, int64_t more) {
  Context context;
  context.threads = threads;
  const auto inside = mapped<uint8_t>(surface, [](float value) { return value < 0; });
  const mesh::SurfaceSize size = mesh::surface_size(inside, context);
  mesh::require_memory(
      size, mesh::marching_cubes_bytes(size, surface.size(), threads) + more * size.triangles);
  Mesh mesh = mesh::marching_cubes(inside, context);
  move_vertices(mesh, surface, threads);
  return mesh;
}

Volume<float> distance_of(const Volume<float>& surface, double exact_mm, int threads) {
  const Grid& grid = surface.grid();
  Volume<float> distance_mm = filters::distance_to_zeros_mm(surface, threads);
  if (std::isinf(distance_mm[0])) {
    Vec3d sides{};
    for (int axis = 0; axis < 3; ++axis) sides[axis] = grid.size[axis] * grid.spacing_mm[axis];
    return Volume<float>(grid, static_cast<float>(std::copysign(norm(sides), surface[0])));
  }
  // The place between neighbours nearest to a voxel is at most a cell further than the mesh.
  const double near_mm = exact_mm + norm(grid.spacing_mm);
  const mesh::TriangleTree tree(
      mesh_of(extended(surface, near_mm), threads, mesh::TriangleTree::bytes(1)));
  parallel_for(threads, surface.voxels(), 1 << 10, [&](int64_t begin, int64_t end) {
    int32_t hint = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (std::abs(distance_mm[i]) > static_cast<float>(near_mm)) continue;
      const Vec3d at = grid.voxel(i).cast<double>();
      const double mm = tree.distance_mm(world_from_index(grid, at), hint);
      distance_mm[i] = static_cast<float>(surface[i] < 0 ? -mm : mm);
    }
  });
  return distance_mm;
}

}  // namespace larch::pipeline
