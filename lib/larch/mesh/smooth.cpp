// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/smooth.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::mesh {
namespace {

/// The neighbours of vertex v are list[first[v]] up to, not including, list[last[v]], ascending.
struct Neighbours {
  std::vector<int64_t> first, last;
  std::vector<int32_t> list;
};

Neighbours find_neighbours(const Mesh& surface) {
  const size_t vertices = surface.vertices_mm.size();
  Neighbours out;
  out.first.assign(vertices + 1, 0);
  for (const Vec3i& t : surface.triangles) {
    for (int k = 0; k < 3; ++k) out.first[t[k] + 1] += 2;
  }
  for (size_t v = 0; v < vertices; ++v) out.first[v + 1] += out.first[v];
  out.list.resize(out.first.back());
  out.last.assign(out.first.begin(), out.first.end() - 1);
  for (const Vec3i& t : surface.triangles) {
    for (int k = 0; k < 3; ++k) {
      out.list[out.last[t[k]]++] = t[(k + 1) % 3];
      out.list[out.last[t[k]]++] = t[(k + 2) % 3];
    }
  }
  for (size_t v = 0; v < vertices; ++v) {
    const auto begin = out.list.begin() + out.first[v], end = out.list.begin() + out.last[v];
    std::sort(begin, end);
    out.last[v] = std::unique(begin, end) - out.list.begin();
  }
  return out;
}

}  // namespace

Mesh smooth(Mesh surface, const SmoothConfig& config, const Context& context) {
  if (config.iterations == 0) return surface;
  const Neighbours neighbours = find_neighbours(surface);
  const double mu = 1 / (config.pass_band - 1 / config.lambda);
  std::vector<Vec3d> moved(surface.vertices_mm.size());
  for (int step = 0; step < 2 * config.iterations; ++step) {
    const double share = step % 2 == 0 ? config.lambda : mu;
    const auto body = [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        const Vec3d at = surface.vertices_mm[v];
        const int64_t first = neighbours.first[v], last = neighbours.last[v];
        Vec3d sum{};
        for (int64_t i = first; i < last; ++i) sum += surface.vertices_mm[neighbours.list[i]];
        const bool alone = first == last;
        moved[v] = alone ? at : at + share * (sum / static_cast<double>(last - first) - at);
      }
    };
    parallel_for(context.threads, static_cast<int64_t>(moved.size()), 4096, body);
    std::swap(moved, surface.vertices_mm);
  }
  return surface;
}

int64_t smooth_bytes(const SurfaceSize& size, const SmoothConfig& config) {
  if (config.iterations == 0) return size.bytes();
  // The moved vertices, where the neighbours of each begin and end, and six per triangle.
  const int64_t per_vertex = sizeof(Vec3d) + 2 * sizeof(int64_t);
  const int64_t per_triangle = 6 * sizeof(int32_t);
  return size.bytes() + per_vertex * (size.vertices + 1) + per_triangle * size.triangles;
}

}  // namespace larch::mesh
