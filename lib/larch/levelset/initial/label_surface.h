// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/volume.h"

namespace larch::levelset {

/// Signed distance in mm from each voxel's centre to the surface of the voxels of a mask, which
/// runs along their faces: half a spacing beside a face, negative inside. Exact within `most_mm`,
/// and held there: the distance to a box is separable. The border of the image is no surface. The
/// spacing counts; a direction that is not orthogonal is not taken into account. Time and memory (8
/// bytes per voxel beside the result) are linear in the voxels, time also in most_mm / spacing.
Volume<float> distance_to_faces(const Volume<uint8_t>& mask, double most_mm, int threads);

}  // namespace larch::levelset
