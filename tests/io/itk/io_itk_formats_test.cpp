// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// ITK is the reference: what it reads right has the same voxels and geometry here, format by
// format, fields of vectors and sequences of pictures too.
#include <algorithm>
#include <numeric>

#include <itkVector.h>

#include "larch/io/image/image.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/itk/itk_reference.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// `picture`: the spacing of resolution tags is not that of a volume, and Larch takes 1 mm.
void compare_with_itk(const std::string& path, bool picture = false) {
  INFO(path);
  const Volume<float> volume = read_volume<float>(path);
  const auto itk = read_file_by_itk<itk::Image<float, 3>>(path);
  const Grid grid = grid_of_itk(*itk);
  REQUIRE(volume.size() == grid.size);
  if (!picture) CHECK_THAT(describe_difference(volume.grid(), grid, 1e-3), Catch::Equals(""));
  CHECK(std::equal(volume.begin(), volume.end(), itk->GetBufferPointer()));
}

/// Writes values of the type T by ITK, and compares what is read.
template <class T>
void check_written_by_itk(const std::string& path, const Grid& grid) {
  write_file_by_itk(path, random_volume<T>(grid, 0, 120));
  compare_with_itk(path);
}

/// The values that ITK reads of a file with so many axes.
template <unsigned kAxes>
std::vector<int16_t> values_of_itk(const std::string& path, double& spacing_of_last) {
  const auto image = read_file_by_itk<itk::Image<int16_t, kAxes>>(path);
  const auto pixels = image->GetLargestPossibleRegion().GetNumberOfPixels();
  spacing_of_last = image->GetSpacing()[kAxes - 1];
  return {image->GetBufferPointer(), image->GetBufferPointer() + pixels};
}

VectorField made_field(const Grid& grid) {
  VectorField field(grid);
  for (int64_t i = 0; i < field.voxels(); ++i) {
    const auto value = static_cast<float>(i);
    field[i] = {value, -0.5F * value, 100 + value / 7};
  }
  return field;
}

}  // namespace

TEST_CASE("what ITK writes in the formats of Larch's own readers is read as ITK reads it") {
  const TemporaryFolder folder;
  for (const bool left_handed : {false, true}) {
    for (const char* ending : {".nii", ".nii.gz", ".nrrd", ".nhdr", ".mha", ".mhd", ".hdr"}) {
      // ITK's reader of NIfTI takes a.nii for a.nii.gz where both are there.
      const std::string path = folder / (std::string(ending).substr(1, 20) + ending);
      check_written_by_itk<uint8_t>(path, oblique_grid({5, 4, 3}, left_handed));
      check_written_by_itk<int16_t>(path, oblique_grid({5, 4, 3}, left_handed));
      check_written_by_itk<float>(path, oblique_grid({5, 4, 3}, left_handed));
    }
  }
}

TEST_CASE("what Larch writes is read by ITK as by Larch") {
  const TemporaryFolder folder;
  for (const char* ending : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    const std::string path = folder / (std::string(ending).substr(1, 20) + ending);
    write_volume(path, random_volume<int16_t>(oblique_grid({5, 4, 3}), -900, 900));
    compare_with_itk(path);
    write_volume(path, random_volume<float>(oblique_grid({5, 4, 3}, true), -9, 9));
    compare_with_itk(path);
  }
  for (const char* ending : {".png", ".tif"}) {
    const std::string path = folder / ("b" + std::string(ending));
    Grid grid;
    grid.size = {7, 5, 1};
    write_volume(path, random_volume<uint8_t>(grid, 0, 255));
    compare_with_itk(path, /*picture=*/true);
  }
}

TEST_CASE("a DICOM series is read as ITK reads it") {
  const TemporaryFolder folder;
  MadeSlice s;
  s.row = {0.8, 0.6, 0};
  s.column = {0, 0, -1};
  for (int k = 0; k < 4; ++k) {
    s.position = Vec3d{-10, 20, 5} + cross(s.row, s.column) * (2.5 * ((k + 2) % 4));
    s.thickness = "2.5";
    s.first_value = 10 * k;
    write_file(folder / (std::to_string(k) + ".dcm"), made_dicom(s));
  }
  compare_with_itk(folder.string());
  compare_with_itk(folder / "2.dcm");
}

TEST_CASE("real data are read as ITK reads them") {
  const std::string data = data_folder();
  if (data.empty()) return;
  for (const char* kind : {"images", "labels"}) {
    compare_with_itk(data + "/hippocampus/" + kind + "/hippocampus_001.nii.gz");
  }
}

TEST_CASE("fields of vectors are written, and ITK reads the same") {
  const TemporaryFolder folder;
  const VectorField field = made_field(oblique_grid({4, 3, 5}));
  for (const char* name : {"a.nii.gz", "a.nii", "a.mha", "a.nrrd"}) {
    const std::string path = folder / name;
    INFO(name);
    write_vector_field(path, field);
    CHECK(probe_image(path).components == 3);
    CHECK(probe_image(path).frames == 1);
    CHECK_THAT(refusal(path), Catch::Contains("3 components per voxel"));
    const auto itk = read_file_by_itk<itk::Image<itk::Vector<float, 3>, 3>>(path);
    CHECK(describe_difference(grid_of_itk(*itk), field.grid(), 1e-3).empty());
    const auto* vectors = itk->GetBufferPointer();
    for (int64_t i = 0; i < field.voxels(); ++i) {
      const Vec3f v{vectors[i][0], vectors[i][1], vectors[i][2]};
      REQUIRE(v == field[i]);
    }
  }
}

TEST_CASE("fields of vectors are refused where a volume is needed, and by formats that hold none") {
  const TemporaryFolder folder;
  const std::string axes =
      "kinds: vector domain domain domain\n"
      "space: LPS\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\n";
  check_refusals(
      [&](const std::string& lines) {
        return reading_error(folder, nrrd_of("3 2 2 2", axes + lines, counted(24)), "a.nrrd");
      },
      {{"", "3 components per voxel"},
       {"measurement frame: (0,1) (1,0,0)\n", "measurement frame"}});
  const VectorField field = made_field(oblique_grid({2, 2, 2}));
  write_vector_field(folder / "c.nii", field);
  write_file(folder / "c.nii", with(read_file(folder / "c.nii"), 68, int16_t{1006}));
  CHECK_THAT(message_of<InputError>([&] { probe_image(folder / "c.nii"); }),
             Catch::Contains("about whose axes readers differ"));
  CHECK_THROWS_AS(write_vector_field(folder / "b.tif", field), UsageError);
  CHECK_THROWS_AS(write_vector_field(folder / "b.png", field), UsageError);
}

TEST_CASE("ITK reads the sequences that are written in batches") {
  const TemporaryFolder folder;
  SequenceHeader header;
  header.grid.size = {5, 4, 1};
  header.grid.spacing_mm = {0.5, 0.25, 1};
  header.frames = 3;
  header.times_ms = {0, 40, 80};
  std::vector<int16_t> values(60);
  std::iota(values.begin(), values.end(), int16_t{-20});
  for (const std::string ending : {".mha", ".nrrd", ".nii", ".nii.gz"}) {
    INFO(ending);
    const std::string path = folder / ("a" + ending);
    SequenceWriter writer(path, header);
    writer.write(std::span<const int16_t>(values).first(20));
    writer.write(std::span<const int16_t>(values).subspan(20));
    writer.finish();
    double step = 0;
    const bool four = ending[2] == 'i';
    CHECK((four ? values_of_itk<4>(path, step) : values_of_itk<3>(path, step)) == values);
    CHECK(step == 40);
    CHECK(SequenceReader(path).about().frames == 3);
    CHECK(SequenceReader(path).about().times_ms == header.times_ms);
  }
}
