// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/mesh/ring_math.h"

namespace larch::mesh {

constexpr int kTemplateLevels = 3;
constexpr int kTemplateVertices[kTemplateLevels] = {602, 1202, 2402};
constexpr int kMaximumTemplateVertices = kTemplateVertices[kTemplateLevels - 1];

/// The topology of the template at one level.
struct TemplateLevel {
  std::vector<Vec3i> triangles;  ///< counter-clockwise seen from outside
  std::vector<Ring> rings;       ///< by vertex
  /// Of the vertices that this level adds: the corners of the quad whose centre it is, or the ends
  /// of the edge whose middle it is, each twice.
  std::vector<std::array<uint16_t, 4>> parents;
};

/// A sphere of nested triangulations: a cube with 10 x 10 quads on each face, each cut into two
/// triangles (602 vertices), or into four about its centre (1202), which are halved at the middles
/// of the edges of the quads (2402). The vertices of a level are the first ones of the next. Lines
/// on a face lie at equal angles.
struct SphereTemplate {
  std::vector<Vec3d> unit;  ///< places on the sphere of radius 1
  std::array<TemplateLevel, kTemplateLevels> levels;
};

/// The one template, made at the first call.
const SphereTemplate& sphere_template();

/// Returns the level of the template that has exactly these triangles, or -1.
int template_level_of(const Mesh& mesh);

/// Adds the vertices of `level` to a mesh that has those of the level before: each lies in `shape`,
/// which has all of them, relative to the mean of its parents as it does in the mesh, where `turn`
/// leads from the frame of `shape` to that of the mesh.
void add_vertices(int level, const std::vector<Vec3d>& shape, const Mat3& turn,
                  std::vector<Vec3d>& vertices);

/// Returns the number of triangles of `level` whose normal is more than 90 degrees from the mean of
/// the normals at its vertices.
int flipped_triangles(int level, const std::vector<Vec3d>& vertices);

}  // namespace larch::mesh
