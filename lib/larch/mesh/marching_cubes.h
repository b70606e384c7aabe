// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"

namespace larch::mesh {

/// Returns the surface between voxels with value >= iso (inside) and the rest, in LPS mm.
///
/// Marching cubes (Lorensen, Cline, SIGGRAPH 1987) whose 256 cases are derived, not tabulated by
/// hand: on an ambiguous face of a cell the inside corners are kept apart, the segments of the six
/// faces are linked to loops, and a loop is triangulated without an edge inside a face (each of the
/// 358 loops allows that). Both cells of a face apply the same rule, so for every input the surface
/// is closed, every edge belongs to exactly two triangles that run along it in opposite directions,
/// and vertices are shared. Outside of the volume counts as outside of the surface: a structure
/// that touches the border is closed half a voxel beyond the outermost voxel centre.
///
/// Vertices lie on the lines between neighbouring voxel centres, at the linearly interpolated place
/// but at least 1/1000 of the line from either end, so that no triangle degenerates to a point.
/// Voxels that are not finite count as outside. Triangles are counter-clockwise seen from outside
/// for right- and left-handed directions alike. The result does not depend on context.threads.
/// Throws MemoryError if the surface has more than 2^31 - 1 vertices or triangles.
Mesh marching_cubes(const Volume<float>& field, double iso, const Context& context);

/// Returns the surface of a mask (0 outside, anything else inside): field 0/1, iso 0.5. A mask may
/// be a part of a larger one: `first` is the index of its first voxel on that one's grid, of which
/// it has the geometry.
Mesh marching_cubes(const Volume<uint8_t>& mask, const Context& context, const Vec3i& first = {});

/// How large a surface is.
struct SurfaceSize {
  int64_t vertices = 0, triangles = 0;

  /// Of the mesh itself.
  int64_t bytes() const;
};

/// "120 vertices and 236 triangles".
std::string describe(const SurfaceSize& size);

/// Returns the size of marching_cubes(mask), exactly, without making it. Takes two bytes per voxel
/// of a slice and thread.
SurfaceSize surface_size(const Volume<uint8_t>& mask, const Context& context);

/// Upper bound for the bytes that marching_cubes takes for a surface of this size in a volume of
/// `volume` voxels, the mesh included.
int64_t marching_cubes_bytes(const SurfaceSize& size, const Vec3i& volume, int threads);

/// Throws MemoryError if less than the `bytes` that it takes to make such a surface are free.
void require_memory(const SurfaceSize& size, int64_t bytes);

}  // namespace larch::mesh
