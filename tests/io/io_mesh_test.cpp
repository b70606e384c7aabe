// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fstream>

#include "larch/io/mesh/mesh_io.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

constexpr const char* kEndings[] = {".vtk", ".obj", ".gii", ".ply", ".stl"};

// A tetrahedron, faces counter-clockwise seen from outside.
Mesh tetrahedron() {
  return {{{-10.5, 20.25, 3}, {5, 20.25, 3}, {-10.5, 31, 3}, {-10.5, 20.25, 47.125}},
          {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}}};
}

// Six times the volume enclosed: positive if faces look outwards.
double signed_volume(const Mesh& mesh) {
  double sum = 0;
  for (const Vec3i& t : mesh.triangles) {
    const Vec3d a = mesh.vertices_mm[t.x], b = mesh.vertices_mm[t.y], c = mesh.vertices_mm[t.z];
    sum += dot(a, cross(b, c));
  }
  return sum;
}

std::string error_for(const TemporaryFolder& folder, const std::string& name,
                      const std::string& bytes) {
  write_file(folder / name, bytes);
  std::string message = message_of<InputError>([&] { read_mesh(folder / name); });
  CHECK_THAT(message, Catch::Contains(name));
  return message;
}

}  // namespace

TEST_CASE("meshes come back from every format") {
  const TemporaryFolder folder;
  const Mesh mesh = tetrahedron();
  for (const std::string ending : kEndings) {
    INFO(ending);
    write_mesh(folder / ("m" + ending), mesh);
    const Mesh back = read_mesh(folder / ("m" + ending));
    REQUIRE(back.vertices_mm.size() == 4);
    REQUIRE(back.triangles.size() == 4);
    CHECK(signed_volume(back) == Approx(signed_volume(mesh)));
    for (size_t t = 0; t < 4; ++t) {
      for (int corner = 0; corner < 3; ++corner) {
        const Vec3d a = mesh.vertices_mm[mesh.triangles[t][corner]];
        const Vec3d b = back.vertices_mm[back.triangles[t][corner]];
        CHECK(norm(a - b) < 1e-5);
      }
    }
    write_mesh(folder / ("again" + ending), back);
    if (ending != ".stl") {
      CHECK(read_file(folder / ("m" + ending)) == read_file(folder / ("again" + ending)));
    }
  }
  write_mesh(folder / "empty.vtk", Mesh{});
  CHECK(read_mesh(folder / "empty.vtk").vertices_mm.empty());
  CHECK_THROWS_AS(write_mesh(folder / "m.foo", mesh), UsageError);
  CHECK_THROWS_AS(require_mesh_extension("m.vtp"), UsageError);
  CHECK_THROWS_AS(read_mesh(folder / "m.foo"), InputError);
  CHECK_THROWS_AS(read_mesh(folder / "missing.vtk"), InputError);
  CHECK_THROWS_AS(write_mesh(folder / "no/m.vtk", mesh), OutputError);
}

TEST_CASE("numbers of vertices stand at their place in VTK and PLY, and elsewhere change nothing") {
  const TemporaryFolder folder;
  const Mesh mesh = tetrahedron();
  const std::vector<VertexNumbers> numbers{{"distance_mm", {0.5f, -1, 2, 1e-3f}},
                                           {"Step2", {1, 2, 3, 4}}};
  const auto floats = [](const std::vector<float>& values, bool big_endian) {
    std::string bytes;
    for (const float value : values) {
      char one[4];
      std::memcpy(one, &value, 4);
      if (big_endian) std::reverse(one, one + 4);
      bytes.append(one, 4);
    }
    return bytes;
  };
  for (const std::string ending : kEndings) {
    INFO(ending);
    write_mesh(folder / ("plain" + ending), mesh);
    write_mesh(folder / ("m" + ending), mesh, numbers);
    CHECK(read_mesh(folder / ("m" + ending)).vertices_mm ==
          read_mesh(folder / ("plain" + ending)).vertices_mm);
    CHECK(read_mesh(folder / ("m" + ending)).triangles ==
          read_mesh(folder / ("plain" + ending)).triangles);
    if (ending != ".vtk" && ending != ".ply") {
      CHECK(read_file(folder / ("m" + ending)) == read_file(folder / ("plain" + ending)));
    }
  }
  CHECK(read_file(folder / "m.vtk") ==
        read_file(folder / "plain.vtk") +
            "POINT_DATA 4\nSCALARS distance_mm float 1\nLOOKUP_TABLE default\n" +
            floats(numbers[0].values, true) + "\nSCALARS Step2 float 1\nLOOKUP_TABLE default\n" +
            floats(numbers[1].values, true) + "\n");
  // Without numbers the files are what they always were.
  const std::string start =
      "ply\nformat binary_little_endian 1.0\ncomment Larch surface, SPACE=LPS, mm\n"
      "element vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 4\n"
      "property list uchar int vertex_indices\nend_header\n";
  CHECK(read_file(folder / "plain.ply").substr(0, start.size()) == start);
  CHECK(read_file(folder / "plain.ply").size() == start.size() + 4 * 12 + 4 * 13);
  const std::string ply = read_file(folder / "m.ply"), end_of_header = "end_header\n";
  CHECK_THAT(ply, Catch::Contains("property float z\nproperty float distance_mm\n"
                                  "property float Step2\nelement face 4\n"));
  std::string vertices;
  for (size_t v = 0; v < 4; ++v) {
    const Vec3f at = mesh.vertices_mm[v].cast<float>();
    vertices += floats({at.x, at.y, at.z, numbers[0].values[v], numbers[1].values[v]}, false);
  }
  CHECK(ply.substr(ply.find(end_of_header) + end_of_header.size(), vertices.size()) == vertices);
}

TEST_CASE("numbers of vertices are refused by a bad name or count") {
  const TemporaryFolder folder;
  const auto error = [&](const std::vector<VertexNumbers>& numbers) {
    return message_of<InputError>([&] { write_mesh(folder / "m.stl", tetrahedron(), numbers); });
  };
  const std::vector<float> four(4);
  for (const char* name : {"", "two words", "a-b", "line\n", "x", "z"}) {
    CHECK_THAT(error({{name, four}}), Catch::Contains("m.stl") && Catch::Contains("name"));
  }
  CHECK_THAT(error({{"a", four}, {"a", four}}), Catch::Contains("'a'"));
  CHECK_THAT(error({{"a", {1, 2, 3}}}), Catch::Contains("3 for 4 vertices"));
}

TEST_CASE("GIFTI is RAS and names its frame, the other formats are LPS and say so") {
  const TemporaryFolder folder;
  Mesh mesh = tetrahedron();
  write_mesh(folder / "m.vtk", mesh);
  write_mesh(folder / "m.ply", mesh);
  for (const auto& [frame, name] : {std::pair{WorldFrame::kScanner, "NIFTI_XFORM_SCANNER_ANAT"},
                                    std::pair{WorldFrame::kAligned, "NIFTI_XFORM_ALIGNED_ANAT"},
                                    std::pair{WorldFrame::kMni152, "NIFTI_XFORM_MNI_152"},
                                    std::pair{WorldFrame::kUnknown, "NIFTI_XFORM_UNKNOWN"}}) {
    mesh.frame = frame;
    write_mesh(folder / "m.gii", mesh);
    const std::string text = read_file(folder / "m.gii");
    CHECK_THAT(text, Catch::Contains(std::string("<DataSpace>") + name + "<"));
    CHECK_THAT(text, Catch::Contains(std::string("<TransformedSpace>") + name + "<"));
    const Mesh back = read_mesh(folder / "m.gii");
    CHECK(back.frame == frame);
    CHECK(back.vertices_mm == mesh.vertices_mm);
  }
  for (const char* ending : {".vtk", ".obj", ".ply", ".stl"}) {
    write_mesh(folder / ("m" + std::string(ending)), mesh);
    CHECK_THAT(read_file(folder / ("m" + std::string(ending))), Catch::Contains("SPACE=LPS, mm"));
  }
}

TEST_CASE("nibabel reads our GIFTI in RAS and we read nibabel's") {
  if (!has_nibabel()) {
    WARN("skipped: python3-nibabel is not installed");
    return;
  }
  const TemporaryFolder folder;
  write_mesh(folder / "m.gii", tetrahedron());
  write_file(folder / "check.py",
             "import nibabel, numpy, sys\n"
             "image = nibabel.load(sys.argv[1])\n"
             "points = image.agg_data('pointset'); triangles = image.agg_data('triangle')\n"
             "assert points.shape == (4, 3) and points.dtype == numpy.float32\n"
             "assert (points[1] == [-5, -20.25, 3]).all(), points\n"
             "assert image.darrays[0].coordsys.xform.shape == (4, 4)\n"
             "assert (triangles[2] == [1, 2, 3]).all(), triangles\n"
             "from nibabel import gifti\n"
             "def surface(encoding, points):\n"
             "    g = gifti.GiftiImage()\n"
             "    g.add_gifti_data_array(gifti.GiftiDataArray(points.astype(numpy.float32),\n"
             "        'NIFTI_INTENT_POINTSET', 'NIFTI_TYPE_FLOAT32', encoding))\n"
             "    g.add_gifti_data_array(gifti.GiftiDataArray(triangles.astype(numpy.int32),\n"
             "        'NIFTI_INTENT_TRIANGLE', 'NIFTI_TYPE_INT32', encoding))\n"
             "    return g\n"
             "nibabel.save(surface('GIFTI_ENCODING_ASCII', points), sys.argv[2])\n"
             "nibabel.save(surface('GIFTI_ENCODING_B64BIN', points), sys.argv[3])\n"
             "nibabel.save(surface('GIFTI_ENCODING_B64GZ', points), sys.argv[4])\n"
             "moved = surface('GIFTI_ENCODING_B64GZ', points - [7, 0, 0])\n"
             "system = gifti.GiftiCoordSystem('NIFTI_XFORM_UNKNOWN', 'NIFTI_XFORM_SCANNER_ANAT')\n"
             "system.xform[0, 3] = 7\n"
             "moved.darrays[0].coordsys = system\n"
             "nibabel.save(moved, sys.argv[5])\n");
  std::string command = "/usr/bin/python3 '" + (folder / "check.py") + "'";
  for (const char* name : {"m.gii", "a.gii", "b.gii", "c.gii", "d.gii"}) {
    command += " '" + (folder / name) + "'";
  }
  REQUIRE(shell(command));
  for (const char* name : {"a.gii", "b.gii", "c.gii", "d.gii"}) {
    INFO(name);
    const Mesh back = read_mesh(folder / name);
    REQUIRE(back.vertices_mm.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(norm(back.vertices_mm[i] - tetrahedron().vertices_mm[i]) < 1e-4);
    }
    CHECK(back.triangles == tetrahedron().triangles);
  }
}

TEST_CASE("variants that other programs write are read") {
  const TemporaryFolder folder;
  write_file(folder / "a.vtk",
             "# vtk DataFile Version 3.0\nSPACE=RAS\nASCII\nDATASET POLYDATA\nPOINTS 4 double\n"
             "0 0 0 1 0 0 1 1 0 0 1 0\n\nPOLYGONS 1 5\n4 0 1 2 3\n\nPOINT_DATA 4\nSCALARS s int\n");
  Mesh mesh = read_mesh(folder / "a.vtk");
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}, {0, 2, 3}});
  CHECK(mesh.vertices_mm[2] == Vec3d{-1, -1, 0});  // RAS turned to LPS
  write_file(folder / "five.vtk",
             "# vtk DataFile Version 5.1\nx\nASCII\nDATASET POLYDATA\nPOINTS 3 float\n"
             "0 0 0 1 0 0 1 1 0\nMETADATA\nINFORMATION 0\n\nPOLYGONS 2 3\nOFFSETS vtktypeint64\n"
             "0 3\nCONNECTIVITY vtktypeint64\n0 1 2\n");
  CHECK(read_mesh(folder / "five.vtk").triangles.size() == 1);
  write_file(folder / "strip.vtk",
             "# vtk DataFile Version 2.0\nx\nASCII\nDATASET POLYDATA\nPOINTS 4 float\n"
             "0 0 0 1 0 0 0 1 0 1 1 0\nTRIANGLE_STRIPS 1 5\n4 0 1 2 3\n");
  CHECK(read_mesh(folder / "strip.vtk").triangles == std::vector<Vec3i>{{0, 1, 2}, {2, 1, 3}});
  write_file(folder / "a.obj",
             "# x\r\nv 0 0 0\r\nv 1 0 0\nv 0 1 0 1.0\nvn 0 0 1\nf 1//1 2//1 -1//1\n");
  CHECK(read_mesh(folder / "a.obj").triangles == std::vector<Vec3i>{{0, 1, 2}});
  write_file(
      folder / "a.ply",
      "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
      "property float z\nproperty uchar red\nelement face 1\n"
      "property list uchar int vertex_index\nend_header\n0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n");
  CHECK(read_mesh(folder / "a.ply").vertices_mm[1] == Vec3d{1, 0, 0});
  write_file(folder / "a.stl",
             "solid any name\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
             "vertex 0 1 0\nendloop\nendfacet\nfacet normal 0 0 1\nouter loop\nvertex 1 0 0\n"
             "vertex 1 1 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid any name\n");
  mesh = read_mesh(folder / "a.stl");
  CHECK(mesh.vertices_mm.size() == 4);  // merged
  CHECK(mesh.triangles.size() == 2);
}

TEST_CASE("damaged meshes are errors that say what is wrong") {
  const TemporaryFolder folder;
  const std::string vtk = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\n";
  CHECK_THAT(error_for(folder, "a.vtk", ""), Catch::Contains("not a legacy VTK"));
  CHECK_THAT(error_for(folder, "b.vtk", vtk + "POINTS 99999999999 float\n0 0 0\n"),
             Catch::Contains("more than it can hold"));
  CHECK_THAT(error_for(folder, "c.vtk", vtk + "POINTS 1 float\n0 0 nan\n"),
             Catch::Contains("finite"));
  CHECK_THAT(error_for(folder, "d.vtk", vtk + "POINTS 1 float\n0 0 0\nPOLYGONS 1 4\n3 0 0 7\n"),
             Catch::Contains("vertex 7"));
  CHECK_THAT(error_for(folder, "e.vtk", vtk + "POINTS 1 float\n0 0 0\nPOLYGONS 1 4\n9 0 0 0\n"),
             Catch::Contains("more corners"));
  CHECK_THAT(error_for(folder, "f.vtk",
                       "# vtk DataFile Version 3.0\nx\nASCII\nDATASET "
                       "STRUCTURED_POINTS\n"),
             Catch::Contains("POLYDATA"));
  CHECK_THAT(error_for(folder, "a.obj", "v 0 0 0\nf 1 2 3\n"), Catch::Contains("vertex 1"));
  CHECK_THAT(error_for(folder, "b.obj", "v 0 0 zero\n"), Catch::Contains("zero"));
  CHECK_THAT(error_for(folder, "a.ply",
                       "ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\n"
                       "property float x\nend_header\n"),
             Catch::Contains("more than it can hold"));
  std::string stl(80, ' ');
  stl += std::string("\xff\xff\xff\x7f", 4);
  CHECK_THAT(error_for(folder, "a.stl", stl), Catch::Contains("more than it can hold"));
  CHECK_THAT(error_for(folder, "b.stl", "solid x\nfacet normal 0 0 1\nvertex 0 0 0\n"),
             Catch::Contains("truncated"));
  CHECK_THAT(error_for(folder, "a.gii", "<GIFTI><DataArray"), Catch::Contains("XML"));
  CHECK_THAT(error_for(folder, "b.gii", "<a/>"), Catch::Contains("GIFTI"));
}

TEST_CASE("no truncation and no flipped byte of a mesh crashes its reader") {
  const TemporaryFolder folder;
  for (const std::string ending : kEndings) {
    write_mesh(folder / ("m" + ending), tetrahedron());
    const std::string bytes = read_file(folder / ("m" + ending));
    const std::string path = folder / ("x" + ending);
    int errors = 0;
    const auto attempt = [&](const std::string& damaged) {
      std::ofstream(path, std::ios::binary) << damaged;
      try {
        const Mesh mesh = read_mesh(path);
        for (const Vec3i& t : mesh.triangles) {
          for (int corner = 0; corner < 3; ++corner) {
            CHECK(static_cast<size_t>(t[corner]) < mesh.vertices_mm.size());
          }
        }
      } catch (const InputError&) {
        ++errors;
      }
    };
    for (size_t length = 0; length < bytes.size(); ++length) attempt(bytes.substr(0, length));
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int mask : {0x01, 0x20, 0x80}) {
        std::string flipped = bytes;
        flipped[at] = static_cast<char>(flipped[at] ^ mask);
        attempt(flipped);
      }
    }
    INFO(ending);
    CHECK(errors > 20);
  }
}
