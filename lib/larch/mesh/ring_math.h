// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/core/team_math.h"
#include "larch/data/vec.h"

// One thread or a block of threads computes these on the rings of neighbours of a closed mesh:
// normals, and smoothing by the random-walk Laplacian L = I - D^-1 A, where A is the
// adjacency matrix and D the diagonal of the valences.
namespace larch::mesh {

constexpr int kMaximumNeighbours = 8;

/// The neighbours of a vertex, counter-clockwise seen from outside: the triangles around vertex v
/// are (v, neighbour i, neighbour i + 1).
struct Ring {
  uint16_t count = 0;
  uint16_t neighbours[kMaximumNeighbours]{};
};

/// Returns the sum of the normals of the triangles around a vertex, each as long as twice its area.
LARCH_HD Vec3d area_normal(const Ring& ring, const Vec3d* at, int v) {
  Vec3d sum{};
  for (int i = 0; i < ring.count; ++i) {
    const int j = i + 1 < ring.count ? i + 1 : 0;
    sum += cross(at[ring.neighbours[i]] - at[v], at[ring.neighbours[j]] - at[v]);
  }
  return sum;
}
/// The normal of a vertex has length 1; where the area is 0 it lies along x.
LARCH_HD Vec3d vertex_normal(const Ring& ring, const Vec3d* at, int v) {
  const Vec3d sum = area_normal(ring, at, v);
  const double length = norm(sum);
  return length > 0 ? sum / length : Vec3d{1, 0, 0};
}

template <class T>
LARCH_HD T sum_of_ring(const Ring& ring, const T* x) {
  T sum{};
  for (int i = 0; i < kMaximumNeighbours;
       ++i) {  // always so many, so that no read waits for another
    const T term = x[ring.neighbours[i]];
    if (i < ring.count) sum += term;
  }
  return sum;
}
/// (L x)(v): what a vertex differs from the mean of its neighbours by.
template <class T>
LARCH_HD T laplacian(const Ring& ring, const T* x, int v) {
  return x[v] - sum_of_ring(ring, x) * (1.0 / ring.count);
}

/// x <- (I + lambda L^order)^-1 x for order 1 or 2, by 24 steps of Richardson's iteration: with
/// lambda 1/2 and order 2 the error is below 1e-7 of the change; with a lambda far above that the
/// lowest frequencies are reached only in part. `start` and `part` hold `count` elements.
template <class Team>
LARCH_HD void implicit_step(const Team& team, const Ring* rings, int count, int order,
                            double lambda, Vec3d* x, Vec3d* start, Vec3d* part) {
  constexpr int kSteps = 24;
  if (lambda == 0) return;
  const double step = 1 / (order == 1 ? 1 + lambda : 1 + 2 * lambda);
  team.each(count, [&](int v) { start[v] = x[v]; });
  for (int k = 0; k < kSteps; ++k) {
    team.each(count, [&](int v) { part[v] = laplacian(rings[v], x, v); });
    team.each(count, [&](int v) {
      const Vec3d change = order == 1 ? part[v] : laplacian(rings[v], part, v);
      x[v] += step * (start[v] - x[v] - lambda * change);
    });
  }
}

/// Tells whether a triangle has a normal more than 90 degrees from the mean of those at its
/// corners.
LARCH_HD bool is_flipped(const Vec3d* x, const Vec3d* normals, int a, int b, int c) {
  return dot(cross(x[b] - x[a], x[c] - x[a]), normals[a] + normals[b] + normals[c]) <= 0;
}
/// Tells whether a triangle around a vertex is flipped.
LARCH_HD bool is_folded(const Ring& ring, const Vec3d* x, const Vec3d* normals, int v) {
  bool folded = false;
  for (int i = 0; i < ring.count; ++i) {
    const int next = ring.neighbours[i + 1 < ring.count ? i + 1 : 0];
    folded = folded || is_flipped(x, normals, v, ring.neighbours[i], next);
  }
  return folded;
}

/// Unfolds a mesh: vertices of flipped triangles and their neighbours go to the means of their
/// rings, again and again while there are any, up to 20 times. `normals`, `part` and `flags` hold
/// `count` elements.
template <class Team>
LARCH_HD void unfold(const Team& team, const Ring* rings, int count, Vec3d* x, Vec3d* normals,
                     Vec3d* part, double* flags) {
  constexpr int kSteps = 20;
  for (int k = 0; k < kSteps; ++k) {
    team.each(count, [&](int v) { normals[v] = vertex_normal(rings[v], x, v); });
    const double folded = team.sum(
        count, [&](int v) { return flags[v] = is_folded(rings[v], x, normals, v) ? 1 : 0; });
    if (folded == 0) return;
    team.each(count, [&](int v) {
      double near = flags[v];
      for (int i = 0; i < rings[v].count; ++i) near += flags[rings[v].neighbours[i]];
      part[v] = near > 0 ? x[v] - laplacian(rings[v], x, v) : x[v];
    });
    team.each(count, [&](int v) { x[v] = part[v]; });
  }
}

/// Returns the place of vertex `v`, which a finer level adds: as far from the mean of its parents
/// as in `shape`, where `turn` leads from the frame of `shape` to that of the mesh.
LARCH_HD Vec3d placed_child(const Vec3d* shape, const Mat3& turn, const Vec3d* at,
                            const uint16_t* parents, int v) {
  Vec3d mean{}, mean_of_shape{};
  for (int i = 0; i < 4; ++i) {
    mean += at[parents[i]];
    mean_of_shape += shape[parents[i]];
  }
  return mean * 0.25 + turn * (shape[v] - mean_of_shape * 0.25);
}

/// The arrays of smooth_displacements, of as many elements as there are vertices.
struct SmoothingScratch {
  double *residual = nullptr, *direction = nullptr, *product = nullptr, *inverse = nullptr;
};

/// Solves (D W + lambda (D - A)) x = D W t: displacements t along the normals of vertices, each
/// trusted by its weight w > 0, become smooth ones x. 64 steps of conjugate gradients with the
/// diagonal as preconditioner, so that the operations are the same everywhere; with weights of
/// 0.01 to 1 and lambda up to 10 fewer than 60 suffice.
template <class Team>
LARCH_HD void smooth_displacements(const Team& team, const Ring* rings, int count, double lambda,
                                   const double* weights, const double* wanted, double* x,
                                   const SmoothingScratch& scratch) {
  constexpr int kSteps = 64;
  double *r = scratch.residual, *p = scratch.direction, *q = scratch.product;
  double* inverse = scratch.inverse;  // of the diagonal; quotients are slow
  double now = team.sum(count, [&](int v) {
    inverse[v] = 1 / (rings[v].count * (weights[v] + lambda));
    x[v] = 0;
    r[v] = rings[v].count * weights[v] * wanted[v];
    p[v] = r[v] * inverse[v];
    return r[v] * r[v] * inverse[v];
  });
  for (int k = 0; k < kSteps; ++k) {
    const double curvature = team.sum(count, [&](int v) {
      q[v] = rings[v].count * (weights[v] + lambda) * p[v] - lambda * sum_of_ring(rings[v], p);
      return p[v] * q[v];
    });
    const double along = curvature > 0 ? now / curvature : 0;
    const double next = team.sum(count, [&](int v) {
      x[v] += along * p[v];
      r[v] -= along * q[v];
      return r[v] * r[v] * inverse[v];
    });
    const double share = now > 0 ? next / now : 0;
    now = next;
    team.each(count, [&](int v) { p[v] = r[v] * inverse[v] + share * p[v]; });
  }
}

}  // namespace larch::mesh
