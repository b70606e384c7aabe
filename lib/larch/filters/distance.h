// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/volume.h"

namespace larch::filters {

/// Euclidean distance in mm from each voxel's centre to the centre of the nearest voxel of the
/// boundary layer of the mask, negative inside the mask. The boundary layer are the voxels of the
/// mask that have a voxel of the background among their 26 neighbours (2-D volumes: 8); the border
/// of the volume is none. The spacing counts; a direction that is not orthogonal is not taken into
/// account. Exact, by one lower envelope of parabolas per line and axis (Felzenszwalb,
/// Huttenlocher, Theory of Computing 8, 2012), and the same for any number of threads; ITK's
/// SignedMaurerDistanceMapImageFilter gives the same up to rounding. Needs 9 bytes per voxel beside
/// the result. Throws InputError if the mask is empty or full, because there is no boundary then.
Volume<float> signed_distance_mm(const Volume<uint8_t>& mask, int threads = 1);

/// Euclidean distance in mm from each voxel's centre to the nearest place at which a field changes
/// its sign on the line between the centres of two voxels that share a face, where it is linear
/// between the two; negative where the field is. So it is that to the vertices of the surface
/// marching_cubes(field, 0), but for those at the border of the volume, which is no surface. The
/// spacing counts; a direction that is not orthogonal is not taken into account. Exact, as above,
/// with a pass for the lines along each axis. Needs 8 bytes per voxel beside the result. Infinite
/// where the field has one sign. `field` is finite.
Volume<float> distance_to_zeros_mm(const Volume<float>& field, int threads = 1);

}  // namespace larch::filters
