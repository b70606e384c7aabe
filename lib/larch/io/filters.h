// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/volume.h"

namespace larch {

/// Euclidean distance in mm from each voxel's centre to the nearest voxel of the boundary layer of
/// the mask, negative inside (Maurer, Qi, Raghavan, PAMI 25(2), 2003, as ITK implements it). The
/// spacing counts; a direction that is not orthogonal is not taken into account.
/// Throws InputError if the mask is empty or full, because there is no boundary then.
Volume<float> signed_distance_mm(const Volume<uint8_t>& mask);

}  // namespace larch
