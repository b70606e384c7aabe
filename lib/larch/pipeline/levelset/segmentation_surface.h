// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/mesh.h"
#include "larch/levelset/segment.h"

// The surface of level sets as a mesh, and distances from it. A surface is a volume that is
// negative inside and 0 on the surface (levelset/place_surface.h).
namespace larch::pipeline {

/// The surface of all structures together: negative inside of any.
Volume<float> surface_of_all(const levelset::SegmentResult& result);

/// The mesh where a surface is 0, by marching cubes. On the line between the centres of neighbours
/// with the values a and b the surface is taken to be bent by m, the smaller of the second
/// differences at both ends, or 0 where they have two signs, and no more than a - b: it lies where
/// a + (b - a) t - m t (1 - t) / 2 = 0. So the spread of a ball's radii does not grow with the
/// square of the spacing. Throws MemoryError, before it is made, if it takes more than is free,
/// with `more` bytes for each triangle.
Mesh mesh_of(const Volume<float>& surface, int threads, int64_t more = 0);

/// The distance of every voxel's centre in mm from a surface, negative inside. Up to `exact_mm` it
/// is that to the mesh, which goes on beyond the border of the image; further away that to the
/// places between neighbours (filters::distance_to_zeros_mm), which is longer by less than half the
/// square of a cell's diagonal over the distance. The diagonal of the image where `surface` has one
/// sign. Throws as mesh_of.
Volume<float> distance_of(const Volume<float>& surface, double exact_mm, int threads);

}  // namespace larch::pipeline
