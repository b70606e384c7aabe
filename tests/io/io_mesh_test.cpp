// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

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

Mesh mesh_of(const TemporaryFolder& folder, const std::string& name, const std::string& bytes) {
  write_file(folder / name, bytes);
  return read_mesh(folder / name);
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
    for (size_t t = 0; t < 4; ++t) {  // in their order, so that faces look the same way
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
    const std::string bare = folder / ("plain" + ending), with = folder / ("m" + ending);
    write_mesh(bare, mesh);
    write_mesh(with, mesh, numbers);
    CHECK(read_mesh(with).vertices_mm == read_mesh(bare).vertices_mm);
    CHECK(read_mesh(with).triangles == read_mesh(bare).triangles);
    CHECK((read_file(with) == read_file(bare)) == (ending != ".vtk" && ending != ".ply"));
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
  if (!has_nibabel()) return;
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
  REQUIRE(shell("cd '" + folder.string() +
                "' && /usr/bin/python3 check.py m.gii a.gii b.gii c.gii d.gii"));
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
  const auto vtk = [&](const std::string& start, const std::string& rest) {
    return mesh_of(folder, "a.vtk",
                   "# vtk DataFile Version " + start + "\nASCII\nDATASET POLYDATA\n" + rest);
  };
  Mesh mesh = vtk("3.0\nSPACE=RAS",
                  "POINTS 4 double\n0 0 0 1 0 0 1 1 0 0 1 0\n\nPOLYGONS 1 5\n"
                  "4 0 1 2 3\n\nPOINT_DATA 4\nSCALARS s int\n");
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}, {0, 2, 3}});
  CHECK(mesh.vertices_mm[2] == Vec3d{-1, -1, 0});  // RAS turned to LPS
  mesh = vtk("5.1\nx",
             "POINTS 3 float\n0 0 0 1 0 0 1 1 0\nMETADATA\nINFORMATION 0\n\nPOLYGONS 2 3\n"
             "OFFSETS vtktypeint64\n0 3\nCONNECTIVITY vtktypeint64\n0 1 2\n");
  CHECK(mesh.triangles.size() == 1);
  mesh = vtk("2.0\nx", "POINTS 4 float\n0 0 0 1 0 0 0 1 0 1 1 0\nTRIANGLE_STRIPS 1 5\n4 0 1 2 3\n");
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}, {2, 1, 3}});
  mesh = mesh_of(folder, "a.obj",
                 "# x\r\nv 0 0 0\r\nv 1 0 0\nv 0 1 0 1.0\nvn 0 0 1\nf 1//1 2//1 -1//1\n");
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}});
  mesh = mesh_of(
      folder, "a.ply",
      "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
      "property float z\nproperty uchar red\nelement face 1\n"
      "property list uchar int vertex_index\nend_header\n0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n");
  CHECK(mesh.vertices_mm[1] == Vec3d{1, 0, 0});
  mesh = mesh_of(folder, "a.stl",
                 "solid any name\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
                 "vertex 0 1 0\nendloop\nendfacet\nfacet normal 0 0 1\nouter loop\nvertex 1 0 0\n"
                 "vertex 1 1 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid any name\n");
  CHECK(mesh.vertices_mm.size() == 4);  // merged
  CHECK(mesh.triangles.size() == 2);
}

TEST_CASE("damaged meshes are errors that say what is wrong") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& name, const std::vector<Refusal>& rows) {
    check_refusals(
        [&](const std::string& bytes) {
          std::string message = message_of<InputError>([&] { mesh_of(folder, name, bytes); });
          CHECK_THAT(message, Catch::Contains(name));
          return message;
        },
        rows);
  };
  const std::string start = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET ";
  const std::string vtk = start + "POLYDATA\n", point = vtk + "POINTS 1 float\n0 0 0\n";
  check("a.vtk", {{"", "not a legacy VTK"},
                  {vtk + "POINTS 99999999999 float\n0 0 0\n", "more than it can hold"},
                  {vtk + "POINTS 1 float\n0 0 nan\n", "finite"},
                  {point + "POLYGONS 1 4\n3 0 0 7\n", "vertex 7"},
                  {point + "POLYGONS 1 4\n9 0 0 0\n", "more corners"},
                  {start + "STRUCTURED_POINTS\n", "POLYDATA"}});
  check("a.obj", {{"v 0 0 0\nf 1 2 3\n", "vertex 1"}, {"v 0 0 zero\n", "zero"}});
  check("a.ply", {{"ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\n"
                   "property float x\nend_header\n",
                   "more than it can hold"}});
  check("a.stl", {{std::string(80, ' ') + "\xff\xff\xff\x7f", "more than it can hold"},
                  {"solid x\nfacet normal 0 0 1\nvertex 0 0 0\n", "truncated"}});
  check("a.gii", {{"<GIFTI><DataArray", "XML"}, {"<a/>", "GIFTI"}});
}

TEST_CASE("no truncation and no flipped byte of a mesh crashes its reader") {
  const TemporaryFolder folder;
  for (const std::string ending : kEndings) {
    INFO(ending);
    const std::string path = folder / ("m" + ending);
    const auto is_sound = [&] {
      const Mesh mesh = read_mesh(path);
      return std::all_of(mesh.triangles.begin(), mesh.triangles.end(), [&](const Vec3i& t) {
        return static_cast<size_t>(std::max({t.x, t.y, t.z})) < mesh.vertices_mm.size();
      });
    };
    write_mesh(path, tetrahedron());
    const std::string bytes = read_file(path);
    CHECK(errors_of_flipped_bytes(path, {0x01, 0x20, 0x80}, 1, is_sound) > 10);
    for (size_t length = 0; length < bytes.size(); ++length) {
      write_file(path, bytes.substr(0, length));
      try {
        const bool sound = is_sound();
        CHECK(sound);
      } catch (const InputError&) {
      }
    }
  }
}
