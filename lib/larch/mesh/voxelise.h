// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"

namespace larch::mesh {

/// 1 at the voxels whose centre lies inside the closed surface (winding number not 0), else 0.
/// A centre exactly on the surface falls on one side by a fixed rule, so that surfaces that share
/// triangles do not overlap. Surfaces that are not closed leave streaks along x.
Volume<uint8_t> voxelise(const Mesh& surface, const Grid& grid, const Context& context);

/// Returns the volume (mm^3) inside a closed surface: negative where it is turned inside out.
double signed_volume_mm3(const Mesh& surface);
double area_mm2(const Mesh& surface);

}  // namespace larch::mesh
