// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What stands before ITK's readers of VTK, GIPL, MRC and BioRad: headers that they would take for
// something else than they say, or could not bear.
#include <algorithm>
#include <array>

#include "larch/data/grid.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

const std::string kScalars = "SCALARS scalars unsigned_char 1\nLOOKUP_TABLE default\n";

struct VtkText {
  std::string start = "# vtk DataFile Version 3.0\ntitle\n", kind = "BINARY\n",
              dataset = "DATASET STRUCTURED_POINTS\n", size = "DIMENSIONS 5 4 3\n",
              place = "SPACING 1 1.5 2\nORIGIN -3 4 5\n", points = "POINT_DATA 60\n",
              array = kScalars;
  std::string text() const { return start + kind + dataset + size + place + points + array; }
};

template <class T>
std::string number(T value, bool swapped = false) {
  std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

/// 5 x 4 x 3 voxels.
std::string gipl_header(uint16_t type, std::array<uint16_t, 4> size = {5, 4, 3, 1}) {
  std::string bytes(256, '\0');
  for (size_t i = 0; i < 4; ++i) bytes.replace(2 * i, 2, number(size[i], true));
  bytes.replace(8, 2, number(type, true));
  for (size_t i = 0; i < 4; ++i) bytes.replace(10 + 4 * i, 4, number(1.0F, true));
  return bytes.replace(252, 4, number(uint32_t{0xefffe9b0}, true));
}

std::string mrc_header(bool swapped = false) {
  std::string bytes(1024, '\0');
  const int32_t whole[] = {5, 4, 3, 1, 0, 0, 0, 5, 4, 3};
  for (size_t i = 0; i < 10; ++i) bytes.replace(4 * i, 4, number(whole[i], swapped));
  const float lengths[] = {5, 6, 6, 90, 90, 90};
  for (size_t i = 0; i < 6; ++i) bytes.replace(40 + 4 * i, 4, number(lengths[i], swapped));
  for (size_t i = 0; i < 3; ++i) {
    bytes.replace(64 + 4 * i, 4, number(static_cast<int32_t>(i + 1), swapped));
  }
  bytes.replace(208, 4, "MAP ");
  return bytes.replace(212, 2, swapped ? "\x11\x11" : "\x44\x44");
}

std::string error_of(const TemporaryFolder& folder, const std::string& name,
                     const std::string& bytes) {
  write_file(folder / name, bytes);
  return message_of<InputError>([&] { read_volume<float>(folder / name); });
}

}  // namespace

TEST_CASE("a VTK header of which a line could be taken for another is refused") {
  const TemporaryFolder folder;
  const std::string data(4 * 60, '\1');
  const auto error = [&](const VtkText& text) {
    return error_of(folder, "a.vtk", text.text() + data);
  };
  write_file(folder / "sound.vtk", VtkText{}.text() + data);
  CHECK(read_volume<uint8_t>(folder / "sound.vtk").size() == Vec3i{5, 4, 3});
  // ITK's reader passes over empty lines, and looks for "ascii" anywhere in the line.
  CHECK_THAT(error({.kind = "\nASCII\n"}), Catch::Contains("as text"));
  CHECK_THAT(error({.kind = "xASCII\n"}), Catch::Contains("is damaged or not supported"));
  // Numbers that are not there it takes from memory nobody wrote, and of too large ones a part.
  CHECK_THAT(error({.size = "DIMENSIONS 5 4\n"}), Catch::Contains("is damaged or not supported"));
  CHECK_THAT(error({.size = "DIMENSIONS 5 4 4294967299\n"}), Catch::Contains("a size of"));
  CHECK_THAT(error({.size = "DIMENSIONS 5 4 -3\n"}), Catch::Contains("a size of '-3'"));
  CHECK_THAT(error({.place = "SPACING 1 1\n"}), Catch::Contains("'spacing 1 1' is damaged"));
  CHECK_THAT(error({.place = "ORIGIN 1 x 1\n"}), Catch::Contains("'origin 1 x 1' is damaged"));
  CHECK_THAT(error({.points = "POINT_DATA 61\n"}), Catch::Contains("'point_data 61' is damaged"));
  CHECK_THAT(error({.points = ""}), Catch::Contains("is damaged or not supported"));
  // Values of the cells between the points, which it would read as those of points.
  CHECK_THAT(error({.points = "CELL_DATA 24\n"}), Catch::Contains("'cell_data 24'"));
  CHECK_THAT(error({.array = "SCALARS a\nLOOKUP_TABLE default\n"}), Catch::Contains("'scalars a'"));
  CHECK_THAT(error({.array = "SCALARS a float\n"}), Catch::Contains("a line of its header"));
  // The name of an array is a keyword: bytes for floats, vectors for scalars, a line of spacings.
  for (const char* name : {"color_scalars", "vector_length", "spacing", "my_origin"}) {
    const std::string array = "SCALARS " + std::string(name) + " float 1\nLOOKUP_TABLE default\n";
    CHECK_THAT(error({.array = array}), Catch::Contains("holds a keyword of the format"));
  }
  CHECK_THAT(error({.array = "TENSORS a float\n"}), Catch::Contains("is damaged or not supported"));
  const std::string cut = VtkText{}.text();
  CHECK_THAT(error_of(folder, "a.vtk", cut.substr(0, cut.size() - 1)),
             Catch::Contains("truncated"));
}

TEST_CASE("a single slice of VTK keeps its place along the third axis") {
  const TemporaryFolder folder;
  const VtkText text{.size = "DIMENSIONS 5 12 1\n", .place = "SPACING 1 1.5 2\nORIGIN -3 4 5\n"};
  write_file(folder / "a.vtk", text.text() + std::string(60, '\1'));
  const Grid grid = read_volume<uint8_t>(folder / "a.vtk").grid();
  CHECK(grid.size == Vec3i{5, 12, 1});
  CHECK(grid.spacing_mm == Vec3d{1, 1.5, 2});
  CHECK(grid.origin_mm == Vec3d{-3, 4, 5});
  const VtkText colours{.array = "COLOR_SCALARS color_scalars 3\n"};
  write_file(folder / "a.vtk", colours.text() + std::string(180, '\7'));
  CHECK(read_volume<uint8_t>(folder / "a.vtk")[59] == 7);
}

TEST_CASE("vectors and several scalars of VTK are no colours") {
  const TemporaryFolder folder;
  std::string values;
  for (int i = 0; i < 180; ++i) values += number(static_cast<float>(i), true);
  for (const char* array :
       {"VECTORS vectors float\n", "SCALARS a float 3\nLOOKUP_TABLE default\n"}) {
    CHECK_THAT(error_of(folder, "a.vtk", VtkText{.array = array}.text() + values),
               Catch::Contains("3 components per voxel"));
  }
}

TEST_CASE("label maps are read through ITK, and fractions are no labels") {
  const TemporaryFolder folder;
  std::string voxels(60, '\0');
  voxels[7] = 2;
  write_file(folder / "a.gipl", gipl_header(8) + voxels);
  CHECK(read_labels(folder / "a.gipl")[7] == 2);
  write_file(folder / "a.vtk", VtkText{}.text() + voxels);
  CHECK(read_labels(folder / "a.vtk")[7] == 2);
  Grid grid;
  grid.size = {3, 2, 1};
  write_volume(folder / "a.tif", Volume<uint8_t>(grid, 5));
  CHECK(read_labels(folder / "a.tif")[0] == 5);
  write_volume(folder / "half.tif", Volume<float>(grid, 0.5F));
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "half.tif"); }),
             Catch::Contains("not whole numbers"));
}

TEST_CASE("GIPL that its reader would read as zeros or not at all is refused") {
  const TemporaryFolder folder;
  const std::string voxels(60, '\1');
  CHECK_THAT(error_of(folder, "a.gipl", gipl_header(8, {0, 0, 0, 0}) + voxels),
             Catch::Contains("a size of 0"));
  CHECK_THAT(error_of(folder, "a.gipl", gipl_header(8, {0, 4, 3, 1}) + voxels),
             Catch::Contains("a size of 0"));
  CHECK_THAT(error_of(folder, "a.gipl", gipl_header(8, {65535, 65535, 2, 1}) + voxels),
             Catch::Contains("more than 2^32 voxels"));
  // Compressed bytes under the name of a file that is not, which the reader goes by.
  write_volume(folder / "a.nii.gz", Volume<uint8_t>(Grid{}, 1));
  CHECK_THAT(error_of(folder, "a.gipl", read_file(folder / "a.nii.gz") + std::string(300, '\0')),
             Catch::Contains("a.gipl"));
}

TEST_CASE("MRC that its reader would place wrongly or not bear is refused") {
  const TemporaryFolder folder;
  const std::string voxels(120, '\1');
  const auto error = [&](const std::string& header) {
    return error_of(folder, "a.mrc", header + voxels);
  };
  for (const bool swapped : {false, true}) {
    const std::string sound = mrc_header(swapped);
    const auto changed = [&](size_t at, auto value) {
      std::string header = sound;
      return header.replace(at, sizeof value, number(value, swapped));
    };
    write_file(folder / "sound.mrc", sound + voxels);
    std::string told;
    ReadOptions options;
    options.warn = [&](const std::string& text) { told += text; };
    const auto volume = read_volume<int16_t>(folder / "sound.mrc", options);
    CHECK(volume.grid().spacing_mm == Vec3d{1, 1.5, 2});
    CHECK(volume[59] == 257);
    CHECK_THAT(told, Catch::Contains("angstroms"));
    CHECK_THAT(error(changed(64, int32_t{2})), Catch::Contains("in the order x, y, z"));
    CHECK_THAT(error(changed(60, 120.0F)), Catch::Contains("not perpendicular"));
    CHECK_THAT(error(changed(20, int32_t{-3})), Catch::Contains("a part of a larger grid"));
    std::string bytes = changed(12, int32_t{0});
    bytes.replace(76, 4, number(-5.0F, swapped));
    CHECK_THAT(error(bytes), Catch::Contains("its bytes are signed"));
    // FEI: the reader turns four times the bytes of the extended header.
    std::string fei = changed(92, int32_t{128 * 1024});
    fei.replace(130, 2, number(int16_t{32}, swapped));
    write_file(folder / "fei.mrc", fei + std::string(128 * 1024, '\0') + voxels);
    if (swapped) {
      CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "fei.mrc"); }),
                 Catch::Contains("of FEI"));
    } else {
      CHECK(read_volume<int16_t>(folder / "fei.mrc")[0] == 257);
    }
  }
}
