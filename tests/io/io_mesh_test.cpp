// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <tuple>

#include "larch/io/bytes/zstream.h"
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
  CHECK_THROWS_AS(write_mesh(folder / "m.foo", mesh), UsageError);
  CHECK_THROWS_AS(require_mesh_extension("m.vtu"), UsageError);
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
  check("a.vtk", {{"x", "not a legacy VTK"},
                  {vtk + "POINTS 99999999999 float\n0 0 0\n", "more than it can hold"},
                  {vtk + "POINTS 1 float\n0 0 nan\nPOLYGONS 1 4\n3 0 0 0\n", "finite"},
                  {point + "POLYGONS 1 4\n3 0 0 7\n", "vertex 7"},
                  {point + "POLYGONS 1 4\n9 0 0 0\n", "more corners"},
                  {start + "STRUCTURED_POINTS\n", "POLYDATA"}});
  check("a.obj", {{"v 0 0 0\nf 1 2 3\n", "vertex 1"}, {"v 0 0 zero\n", "zero"}});
  check("a.ply", {{"ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\n"
                   "property float x\nproperty float y\nproperty float z\nend_header\n",
                   "more than it can hold"}});
  check("a.stl", {{std::string(80, ' ') + "\xff\xff\xff\x7f", "more than it can hold"},
                  {"solid x\nfacet normal 0 0 1\nvertex 0 0 0\n", "truncated"}});
  check("a.gii", {{"<GIFTI><DataArray", "XML"},
                  {"<a/>", "GIFTI"},
                  {"<!DOCTYPE GIFTI [<!ENTITY a 'x'>]><GIFTI>&a;</GIFTI>", "entities"},
                  {std::string(2000, '<') + "a>", "XML"}});
}

TEST_CASE("what would be read as another surface is refused") {
  const TemporaryFolder folder;
  write_mesh(folder / "m.gii", tetrahedron());
  const std::string gii = read_file(folder / "m.gii"), nothing(size_t{12} << 20, '\0');
  const auto packed_text = [&](const std::string& bytes) {
    write_file(folder / "raw", io::packed(bytes, io::Packing::kZlib, ""));
    REQUIRE(shell("base64 -w0 '" + folder / "raw" + "' >'" + folder / "text" + "'"));
    return read_file(folder / "text");
  };
  const auto gifti = [&](const std::string& from, const std::string& to) {
    std::string text = gii;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string vtk = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\n",
                    points = "POINTS 3 float\n0 0 0 9 0 0 0 9 0\n",
                    face = "POLYGONS 1 4\n3 0 1 2\n", obj = "v 0 0 0\nv 9 0 0\nv 0 9 0\n",
                    ply = "ply\nformat ascii 1.0\n",
                    of_ply =
                        "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
                        "0 0 0\n9 0 0\n0 9 0\n";
  const auto vertex = [](const std::string& names) {
    std::string text = "element vertex 3\n";
    for (const char name : names) text += std::string("property float ") + name + "\n";
    return text;
  };
  const std::vector<std::tuple<const char*, std::string, std::string>> rows{
      {"a.stl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"},
      {"a.gii", "<!DOCTYPE html>\n<html><body>Sign in</body></html>", "HTML"},
      {"a.ply", "", "empty"},
      {"a.vtk", vtk + points + face + "POINTS 1 float\n0 0 0\n", "'POINTS' stands there twice"},
      {"a.vtk", vtk + points + face + face, "'POLYGONS' stands there twice"},
      {"a.vtk", vtk + points, "truncated"},
      {"a.vtk", vtk + points + "LINES 1 3\n2 0 1\n", "no surface"},
      {"a.vtk", vtk + points + "POLYGONS 0 0\n", "no triangle"},
      {"a.vtk", vtk + points + "POLYGONS 1 4\n3 0 1.9 2\n", "no index"},
      {"a.vtk", vtk + points + "POLYGONS 1 8\n3 0 1 2 3 0 1 2\n", "more than its cells"},
      {"a.vtk", vtk + points + "POLYGONS 2 3\nOFFSETS int\n0 2.5\nCONNECTIVITY int\n0 1 2\n",
       "not in order"},
      {"a.vtk", vtk + points + "TRIANGLE_STRIPS 1 3\n2 0 1\n", "fewer than three"},
      {"a.obj", "v 1e400 0 0\n" + obj + "f 1 2 3\n", "1e400"},
      {"a.obj", "v 4e38 0 0\n" + obj + "f 1 2 3\n", "10 km"},
      {"a.obj", obj, "no triangle"},
      {"a.obj", obj + "f 1 2 -9\n", "vertex -9"},
      {"a.ply", ply + vertex("wyz") + of_ply + "3 0 1 2\n", "property x exactly once"},
      {"a.ply", ply + vertex("xyy") + of_ply + "3 0 1 2\n", "property y exactly once"},
      {"a.ply", ply + vertex("xyz") + of_ply + "3 0 1 -0.9\n", "no index"},
      {"a.ply", ply + vertex("xyz") + of_ply + "2.9 0 1 2\n", "no sound length"},
      {"a.ply", ply + vertex("xyz") + vertex("xyz") + of_ply, "two elements"},
      {"a.ply", "ply\n" + vertex("xyz") + of_ply + "3 0 1 2\n", "format"},
      {"a.stl", std::string(80, ' ') + std::string("\1\0\0\0", 4) + std::string(100, '\0'),
       "more than its 1 triangles"},
      {"a.gii", gifti("LittleEndian", "MiddleEndian"), "Endian 'MiddleEndian'"},
      {"a.gii", gifti("RowMajorOrder", "AnyOrder"), "AnyOrder"},
      {"a.gii", gifti("Dim0=\"4\"", "Dim0=\"3\""), "more data than 3 rows"},
      {"a.gii", gifti("INTENT_TRIANGLE", "INTENT_POINTSET"), "two arrays"},
      {"a.gii",
       "<GIFTI><DataArray Intent='NIFTI_INTENT_POINTSET' DataType='NIFTI_TYPE_FLOAT32' "
       "Dimensionality='2' Dim0='1048576' Dim1='3' Encoding='GZipBase64Binary' "
       "Endian='LittleEndian'><Data>" +
           packed_text(nothing) + "</Data></DataArray>" + gii.substr(gii.rfind("  <DataArray")),
       "32 times"},
      {"a.gii",
       "<GIFTI>" +
           [] {
             std::string deep;
             for (int i = 0; i < 100; ++i) deep += "<a>";
             return deep;
           }(),
       "in one another"}};
  for (const auto& [name, bytes, message] : rows) {
    INFO(name << ": " << bytes.substr(0, 300));
    CHECK_THAT(
        message_of<InputError>([&, file = name, text = bytes] { mesh_of(folder, file, text); }),
        Catch::Contains(message));
  }
}

TEST_CASE("unsigned numbers, field data before the points and continued lines are read") {
  const TemporaryFolder folder;
  const std::string binary = "# vtk DataFile Version 5.1\nx\nBINARY\nDATASET POLYDATA\n";
  const std::string face = std::string("\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\2\n", 17);
  Mesh mesh = mesh_of(folder, "a.vtk",
                      binary +
                          "FIELD FieldData 2\nwords 1 2 string\n\xc2"
                          "ab\x80\1c\nn 1 1 vtkIdType\n" +
                          std::string("\0\0\0\4\nMETADATA\nINFORMATION 0\n\n", 29) +
                          "POINTS 3 unsigned_char\n" + std::string("\0\0\0\xc8\0\0\0\xc8\0\n", 10) +
                          "POLYGONS 1 4\n" + face);
  CHECK(mesh.vertices_mm[1] == Vec3d{200, 0, 0});
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}});
  mesh = mesh_of(folder, "a.vtk",
                 "# vtk DataFile Version 4.2\nx\nASCII\nDATASET POLYDATA\nFIELD FieldData 2\n"
                 "name 1 1 string\nPOINTS%20of%20a\nf 1 2 float\n3 4\nPOINTS 3 float\n"
                 "0 0 0 7 0 0 0 7 0\nPOLYGONS 1 4\n3 0 1 2\n");
  CHECK(mesh.vertices_mm[1] == Vec3d{7, 0, 0});
  mesh = mesh_of(folder, "a.obj", "f 1 \\\r\n 2\\\n 3\nv 0 0 0\nv 1 \\\n0 0\nv 0 1 1e-400\n");
  CHECK(mesh.triangles == std::vector<Vec3i>{{0, 1, 2}});
  CHECK(mesh.vertices_mm == std::vector<Vec3d>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
}

TEST_CASE("GIFTI of FreeSurfer lies in scanner space, and matrices that only inform move nothing") {
  const TemporaryFolder folder;
  Mesh mesh = tetrahedron();
  mesh.frame = WorldFrame::kUnknown;
  write_mesh(folder / "m.gii", mesh);
  const std::string plain = read_file(folder / "m.gii"), unknown = "NIFTI_XFORM_UNKNOWN",
                    scanner = "NIFTI_XFORM_SCANNER_ANAT", talairach = "NIFTI_XFORM_TALAIRACH";
  const auto value = [](const char* name, const char* number) {
    return std::string("<MD><Name><![CDATA[VolGeom") + name + "]]></Name><Value>" + number +
           "</Value></MD>";
  };
  const std::string centre = value("C_R", "5") + value("C_A", "18") + value("C_S", "-9");
  // The volume lies turned by a quarter about the axis from foot to head.
  const std::string axes = value("X_R", "0") + value("X_A", "-1") + value("X_S", "0") +
                           value("Y_R", "0") + value("Y_A", "0") + value("Y_S", "-1") +
                           value("Z_R", "-1") + value("Z_A", "0") + value("Z_S", "0");
  const std::string one = "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1",
                    to_centre = "1 0 0 5 0 1 0 18 0 0 1 -9 0 0 0 1",
                    back = "1 0 0 -5 0 1 0 -18 0 0 1 9 0 0 0 1";
  const Vec3d at{5, 20.25, 3};  // LPS, that is RAS (-5, -20.25, 3)
  const Vec3d moved{0, 2.25, -6}, turned{-25.25, -13, -6};
  struct Row {
    std::string from, to, matrix, meta;
    Vec3d expected;
    WorldFrame frame;
    std::string said;
  };
  const Row rows[] = {
      {scanner, scanner, one, "", at, WorldFrame::kScanner, ""},
      {scanner, unknown, back, centre, at, WorldFrame::kScanner, ""},
      {unknown, talairach, to_centre, centre, moved, WorldFrame::kScanner, "FreeSurfer"},
      {unknown, scanner, to_centre, centre, moved, WorldFrame::kScanner, "FreeSurfer"},
      {unknown, unknown, one, centre + axes, turned, WorldFrame::kScanner, "FreeSurfer"},
      {unknown, talairach, to_centre, "", at, WorldFrame::kUnknown, "is not applied"},
      {unknown, scanner, to_centre, "", moved, WorldFrame::kScanner, "matrix moves"},
      {unknown, unknown, to_centre, "", moved, WorldFrame::kUnknown, "matrix moves"},
      {talairach, scanner, to_centre, centre, at, WorldFrame::kTalairach, ""},
  };
  const auto file = [&](const Row& row) {
    std::string text = plain;
    const auto swap = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    swap("<DataSpace>" + unknown, "<DataSpace>" + row.from);
    swap("<TransformedSpace>" + unknown, "<TransformedSpace>" + row.to);
    swap(one, row.matrix);
    swap("    <MetaData/>", "<MetaData>" + row.meta + "</MetaData>");
    write_file(folder / "a.gii", text);
  };
  for (const Row& row : rows) {
    INFO(row.from << " to " << row.to << " " << row.meta);
    file(row);
    std::string said;
    const Mesh back_again =
        read_mesh(folder / "a.gii", [&](const std::string& text) { said += text; });
    CHECK(norm(back_again.vertices_mm[1] - row.expected) < 1e-5);
    CHECK(back_again.frame == row.frame);
    CHECK(said.empty() == row.said.empty());
    CHECK_THAT(said, Catch::Contains(row.said));
  }
  const auto refused = [&](const Row& row) {
    file(row);
    return message_of<InputError>([&] { read_mesh(folder / "a.gii"); });
  };
  CHECK_THAT(refused({unknown, scanner, back, centre, {}, {}, ""}),
             Catch::Contains("which counts"));
  CHECK_THAT(refused({unknown, unknown, one, value("C_R", "5"), {}, {}, ""}),
             Catch::Contains("not finite"));
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
