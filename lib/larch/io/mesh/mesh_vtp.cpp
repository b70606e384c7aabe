// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// PolyData of VTK as XML, as "VTK file formats" (Kitware) defines it.
#include "larch/io/mesh/mesh_formats.h"

namespace larch::io {
namespace {

/// An array whose bytes stand in base64 behind their count.
std::string data_array(const std::string& name, const char* type, int components,
                       const std::string& bytes) {
  std::string counted;
  put(counted, static_cast<uint64_t>(bytes.size()));
  return "<DataArray type=\"" + std::string(type) + "\" Name=\"" + name +
         "\" NumberOfComponents=\"" + std::to_string(components) + "\" format=\"binary\">" +
         base64(counted + bytes) + "</DataArray>\n";
}

}  // namespace

std::string format_vtp(const Mesh& mesh, std::span<const VertexNumbers> numbers) {
  std::string points, corners, ends, of_points;
  for (const Vec3d& v : mesh.vertices_mm) put(points, v.cast<float>());
  for (size_t i = 0; i < mesh.triangles.size(); ++i) {
    put(corners, mesh.triangles[i]);
    put(ends, static_cast<int32_t>(3 * (i + 1)));
  }
  for (const VertexNumbers& n : numbers) {
    std::string values;
    for (const float value : n.values) put(values, value);
    of_points += data_array(n.name, "Float32", 1, values);
  }
  // Slicer reads the frame from the field SPACE, whose letters are numbers.
  return "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\" "
         "byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PolyData>\n<FieldData>\n"
         "<Array type=\"String\" Name=\"SPACE\" NumberOfTuples=\"1\" format=\"ascii\">"
         "76 80 83 0</Array>\n</FieldData>\n<Piece NumberOfPoints=\"" +
         std::to_string(mesh.vertices_mm.size()) + "\" NumberOfVerts=\"0\" NumberOfLines=\"0\" " +
         "NumberOfStrips=\"0\" NumberOfPolys=\"" + std::to_string(mesh.triangles.size()) +
         "\">\n<PointData>\n" + of_points + "</PointData>\n<Points>\n" +
         data_array("Points", "Float32", 3, points) + "</Points>\n<Polys>\n" +
         data_array("connectivity", "Int32", 1, corners) + data_array("offsets", "Int32", 1, ends) +
         "</Polys>\n</Piece>\n</PolyData>\n</VTKFile>\n";
}

}  // namespace larch::io
