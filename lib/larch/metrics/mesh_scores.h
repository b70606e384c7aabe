// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/metrics/scores.h"

namespace larch::metrics {

/// The scores of a mesh, as those of the structure "surface": mssd_mm, rms_mm, hd95_mm, hd_mm
/// (mesh_distance), then surface_mean_mm and so on of the meshes as they are (surface_distance),
/// those of detection_scores, by which a mesh without triangles is nothing, and dice, which is NaN
/// since there is no grid. Meshes are in mm of one world space. Throws MemoryError as mesh_distance
/// does.
StructureScores score_mesh(const Mesh& prediction, const Mesh& reference, const Context& context);

/// The same against the surface of a mask (marching_cubes), with the Dice coefficient of the mask
/// and the mesh on its grid (voxelise).
StructureScores score_mesh(const Mesh& prediction, const Volume<uint8_t>& reference,
                           const Context& context);

}  // namespace larch::metrics
