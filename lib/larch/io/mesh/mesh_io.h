// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "larch/data/mesh.h"

namespace larch {

/// Receives a sentence, which names the file, for each thing that was decided about its geometry.
using MeshWarn = std::function<void(const std::string&)>;

/// Reads a triangle surface; the format goes by the ending: .vtk (legacy PolyData, ASCII or binary,
/// versions 1 to 5), .obj, .gii (GIFTI), .ply (ASCII or binary), .stl (ASCII or binary, equal
/// vertices are merged). Polygons are cut into triangle fans; vertex normals, colours and
/// other attributes are ignored.
///
/// Frames: in memory all meshes are LPS mm. VTK, OBJ, PLY and STL files are taken to be LPS too,
/// unless the header of a VTK, PLY or STL file or a comment in an OBJ file says "SPACE=RAS" (3D
/// Slicer writes that). GIFTI is RAS by convention, and its data space names mesh.frame
/// (NIFTI_XFORM_SCANNER_ANAT and so on): x and y are negated on the way in and out, and the file's
/// coordinate transform matrix is applied where both of its spaces are scanner or unknown and the
/// points are not yet in scanner space. Points of FreeSurfer are moved to scanner space. `warn` is
/// told of both.
///
/// Throws InputError: unknown ending, damaged file, counts larger than the file can hold (checked
/// before memory is allocated), no triangle, indices out of range, coordinates beyond 10 km.
Mesh read_mesh(const std::string& path, const MeshWarn& warn = {});

/// A number for each vertex, such as a distance, by which viewers colour the surface. The name is
/// of letters, digits and underscores, and not x, y or z, which are coordinates in a PLY file.
struct VertexNumbers {
  std::string name;
  std::vector<float> values;
};

/// Writes a triangle surface by the ending of `path`: .vtk (legacy 4.2, binary, float), .obj,
/// .gii (base64, float32), .ply (binary little-endian, float), .stl (binary), .vtp (VTK XML,
/// base64, float32; not read). Coordinates are LPS mm except in GIFTI, see read_mesh. The file
/// appears under its name only when it is complete. `numbers` become scalars of the points in VTK
/// and float properties of the vertices in PLY; the other formats have no place for them and are
/// written without. Throws UsageError (unknown ending), InputError (another name than is allowed,
/// the same one twice, another count than that of the vertices), OutputError.
void write_mesh(const std::string& path, const Mesh& mesh,
                std::span<const VertexNumbers> numbers = {});

/// Tells whether `path` has an ending of a mesh.
bool has_mesh_extension(const std::string& path);

/// Throws UsageError with the list of known endings unless write_mesh knows the ending of `path`.
void require_mesh_extension(const std::string& path);

}  // namespace larch
