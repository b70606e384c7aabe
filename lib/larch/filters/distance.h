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

}  // namespace larch::filters
