// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/mesh/marching_cubes.h"

namespace larch::metrics {

/// Agreement of two masks on one grid.
struct Overlap {
  int64_t prediction_voxels = 0;
  int64_t reference_voxels = 0;
  int64_t common_voxels = 0;
  double prediction_mm3 = 0;
  double reference_mm3 = 0;
  double dice = 1;     ///< 2 |A and B| / (|A| + |B|); 1 if both are empty
  double jaccard = 1;  ///< |A and B| / |A or B|; 1 if both are empty
  /// Voxels on which the masks agree, inside and outside, over all voxels; 1 if there are none.
  double total_correct_fraction = 1;
  double sensitivity = 0, precision = 0;  ///< |A and B| / |B| and / |A|; NaN where that is empty
  double volume_difference_mm3 = 0;       ///< prediction - reference
  /// Difference over reference; 0 if both are empty, NaN if only the reference is.
  double relative_volume_difference = 0;
};

/// Returns the agreement of structures with so many voxels, of `voxels` in all.
Overlap overlap(int64_t prediction, int64_t reference, int64_t common, int64_t voxels,
                double voxel_mm3);

/// Holds what two label maps hold of a label: its voxels, and the box from `low` to `high`, both
/// included, with those of both.
struct LabelCount {
  int32_t label = 0;
  int64_t prediction = 0, reference = 0, common = 0;
  Vec3i low{INT32_MAX, INT32_MAX, INT32_MAX}, high{-1, -1, -1};

  void include(const Vec3i& first, const Vec3i& last) {
    low = {std::min(low.x, first.x), std::min(low.y, first.y), std::min(low.z, first.z)};
    high = {std::max(high.x, last.x), std::max(high.y, last.y), std::max(high.z, last.z)};
  }
};

/// Labels that occur, ascending, 0 too.
struct LabelCounts {
  int64_t voxels = 0;  ///< that count
  std::vector<LabelCount> labels{};
};

/// Counts all labels in one pass, without the voxels in which the reference has one of `ignore`.
/// Throws InputError, which says what differs, if the grids are not the same (require_on_grid).
LabelCounts count_labels(const LabelVolume& prediction, const LabelVolume& reference,
                         std::span<const int32_t> ignore = {});

/// 1 where the label is one of `values`.
Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values);

/// Throws InputError, which says what differs, if the grids are not the same (require_on_grid).
Overlap overlap(const Volume<uint8_t>& prediction, const Volume<uint8_t>& reference);

/// Volume of the intersection of two boxes over that of their union, 0 to 1: exact but for
/// rounding.
double box_iou(const Pose& a, const Pose& b);

/// Symmetric surface distance in mm.
struct SurfaceDistance {
  double mean_mm = 0;
  double median_mm = 0;
  double p95_mm = 0;
  double max_mm = 0;
  double hd95_mm = 0;       ///< the greater of the two directed 95 % quantiles
  double surface_dice = 1;  ///< share of the area of both that is within the tolerance of the other
};

/// Definition. The surface of a mask is the marching-cubes surface of its 0/1 field at 0.5, in
/// world space (mesh::marching_cubes). Its elements are the triangles, each with its area as
/// weight. The distance of an element is the exact Euclidean distance from its centroid to the
/// nearest point of the other surface. The elements of both surfaces are pooled (both directions);
/// the mean is weighted by area, and the q-quantile is the smallest distance d such that elements
/// with distance <= d make up at least the share q of the total area. The maximum is over
/// centroids. Of the 95 % quantile of each surface by itself, hd95_mm is the greater. surface_dice
/// is the share of the pooled area whose elements have a distance <= tolerance_mm.
///
/// Both surfaces empty: all distances 0. One empty: all NaN (null in JSON), because no distance
/// exists, and surface_dice 0. The result does not depend on context.threads.
SurfaceDistance surface_distance(const Mesh& a, const Mesh& b, const Context& context,
                                 double tolerance_mm = 0);

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
