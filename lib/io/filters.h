// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/volume.h"

namespace larch {

/// Number of connected components of the voxels that are not 0; neighbours share a face (in 2-D
/// volumes: an edge).
int64_t count_components(const Volume<uint8_t>& mask);

/// The `n` largest connected components (face neighbours) as 1, the rest as 0. Of components of
/// equal size the one whose first voxel comes first in memory counts as larger.
Volume<uint8_t> keep_largest_component(const Volume<uint8_t>& mask, int n = 1);

/// 1 where the mask is not 0 or where background is enclosed by it: not connected through faces to
/// the border of the volume (2-D volumes: through edges, in the plane).
Volume<uint8_t> fill_holes(const Volume<uint8_t>& mask);

/// Euclidean distance in mm from each voxel's centre to the nearest voxel of the boundary layer of
/// the mask, negative inside (Maurer, Qi, Raghavan, PAMI 25(2), 2003, as ITK implements it). The
/// spacing counts; a direction that is not orthogonal is not taken into account.
/// Throws InputError if the mask is empty or full, because there is no boundary then.
Volume<float> signed_distance_mm(const Volume<uint8_t>& mask);

}  // namespace larch
