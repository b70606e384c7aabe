// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/mesh/marching_cubes.h"

namespace larch::metrics {

/// Symmetric surface distance in mm.
struct SurfaceDistance {
  double mean_mm = 0;
  double median_mm = 0;
  double p95_mm = 0;
  double max_mm = 0;
};

/// Definition. The surface of a mask is the marching-cubes surface of its 0/1 field at 0.5, in
/// world space (mesh::marching_cubes). Its elements are the triangles, each with its area as
/// weight. The distance of an element is the exact Euclidean distance from its centroid to the
/// nearest point of the other surface. The elements of both surfaces are pooled (both directions);
/// the mean is weighted by area, and the q-quantile is the smallest distance d such that elements
/// with distance
/// <= d make up at least the share q of the total area. The maximum is over centroids.
///
/// Both surfaces empty: all 0. One empty: all NaN (null in JSON), because no distance exists.
/// The result does not depend on context.threads.
SurfaceDistance surface_distance(const Mesh& a, const Mesh& b, const Context& context);

/// Distances between two surfaces in mm by direction, then joined.
struct MeshDistance {
  double mssd_mm = 0;  ///< mean of the two directed means (mean symmetric surface distance)
  double rms_mm = 0;   ///< root of the mean of the two directed mean squares
  double hd95_mm = 0;  ///< the greater of the two directed 95 % quantiles
  double hd_mm = 0;    ///< the greater of the two directed maxima (Hausdorff distance)
};

/// Elements, distances and quantiles are those of surface_distance, but each direction has figures
/// of its own, and large triangles count with all of their area, not with their centroid alone:
/// they are cut into congruent pieces without an edge longer than a limit, which is 2 mm and then
/// halved until the first three figures change by less than 0.01 mm. It starts at 4 mm, 8 mm and so
/// on, with at most 2^18 pieces, for a surface that 2 mm would cut into more than 2^20, and is not
/// halved beyond 2^24; the figures are right within the limit in any case. Since centroids miss
/// corners, the maxima are over the corners of the triangles as well. Surfaces may be open.
///
/// Both surfaces empty: all 0. One empty: all NaN. One without area: its means are NaN. The result
/// does not depend on context.threads. Throws MemoryError if the pieces do not fit into memory.
MeshDistance mesh_distance(const Mesh& a, const Mesh& b, const Context& context);

/// Upper bound for the bytes that surface_distance takes for two masks with surfaces of these sizes
/// (mesh::surface_size) on a grid of `volume` voxels, beside the masks.
int64_t surface_distance_bytes(const mesh::SurfaceSize& a, const mesh::SurfaceSize& b,
                               const Vec3i& volume, int threads);

}  // namespace larch::metrics
