// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Fields of vectors and sequences of pictures.
#include <algorithm>
#include <limits>
#include <numeric>

#include <itkMetaImageIOFactory.h>
#include <itkNiftiImageIOFactory.h>
#include <itkNrrdImageIOFactory.h>
#include <itkVector.h>

#include "larch/io/image/vector_image.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"
#include "tests/io/itk/itk_reference.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

using ItkField = itk::Image<itk::Vector<float, 3>, 3>;

void register_itk() {
  static const bool once = [] {
    itk::NiftiImageIOFactory::RegisterOneFactory();
    itk::NrrdImageIOFactory::RegisterOneFactory();
    itk::MetaImageIOFactory::RegisterOneFactory();
    return true;
  }();
  (void)once;
}

VectorField made_field(const Grid& grid) {
  VectorField field(grid);
  for (int64_t i = 0; i < field.voxels(); ++i) {
    const auto value = static_cast<float>(i);
    field[i] = {value, -0.5F * value, 100 + value / 7};
  }
  return field;
}

std::vector<double> times_of(const std::string& path) {
  return SequenceReader(path).about().times_ms;
}

bool same_place(const Grid& a, const Grid& b) {
  return describe_difference(a, b, 1e-3).empty();
}

ItkField::Pointer read_by_itk(const std::string& path) {
  register_itk();
  return read_file_by_itk<ItkField>(path);
}

std::string nrrd(const std::string& lines, size_t bytes) {
  std::string out = "NRRD0004\ntype: uint8\n" + lines + "encoding: raw\n\n";
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

}  // namespace

TEST_CASE("fields of vectors are written, and ITK reads the same") {
  const TemporaryFolder folder;
  const VectorField field = made_field(oblique_grid({4, 3, 5}));
  for (const char* name : {"a.nii.gz", "a.nii", "a.mha", "a.nrrd"}) {
    const std::string path = folder / name;
    INFO(name);
    write_vector_field(path, field);
    CHECK(probe_image(path).components == 3);
    CHECK(probe_image(path).frames == 1);
    CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path); }),
               Catch::Contains("3 components per voxel"));
    const auto itk = read_by_itk(path);
    CHECK(same_place(grid_of_itk(*itk), field.grid()));
    const auto* vectors = itk->GetBufferPointer();
    for (int64_t i = 0; i < field.voxels(); ++i) {
      const Vec3f v{vectors[i][0], vectors[i][1], vectors[i][2]};
      REQUIRE(v == field[i]);
    }
  }
}

TEST_CASE("fields of vectors are refused where a volume is needed, and by formats that hold none") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.nrrd";
  const auto error = [&] { return message_of<InputError>([&] { read_volume<float>(path); }); };
  const std::string sizes = "dimension: 4\nsizes: 3 2 2 2\nkinds: vector domain domain domain\n";
  const std::string axes = "space: LPS\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\n";
  write_file(path, nrrd(sizes + axes, 24));
  CHECK_THAT(error(), Catch::Contains("3 components per voxel"));
  write_file(path, nrrd(sizes + axes + "measurement frame: (0,1) (1,0,0)\n", 24));
  CHECK_THAT(error(), Catch::Contains("measurement frame"));
  const VectorField field = made_field(oblique_grid({2, 2, 2}));
  write_vector_field(folder / "c.nii", field);
  write_file(folder / "c.nii", with(read_file(folder / "c.nii"), 68, int16_t{1006}));
  CHECK_THAT(message_of<InputError>([&] { probe_image(folder / "c.nii"); }),
             Catch::Contains("about whose axes readers differ"));
  CHECK_THROWS_AS(write_vector_field(folder / "b.tif", field), UsageError);
  CHECK_THROWS_AS(write_vector_field(folder / "b.png", field), UsageError);
}

TEST_CASE("a DICOM sequence has the times that its header gives") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.dcm";
  MadeSlice s;
  s.frames = 4;
  s.columns = 3;
  s.rows = 2;
  const auto sequence = [&](const std::string& elements) {
    std::string bytes = made_dicom(s);
    const std::string thickness = dicom_element(0x18, 0x50, "DS", s.thickness);
    bytes.insert(bytes.find(thickness) + thickness.size(), elements);
    write_file(path, bytes);
    return SequenceReader(path).about();
  };
  const Angiogram plain = sequence("");
  REQUIRE(plain.frames == 4);
  CHECK(plain.grid.size == Vec3i{3, 2, 1});
  CHECK(plain.times_ms.empty());
  const std::string time = dicom_element(0x18, 0x1063, "DS", "33.5");
  const std::string steps = dicom_element(0x18, 0x1065, "DS", "0\\10\\20\\5");
  CHECK(sequence(time).times_ms == std::vector<double>{0, 33.5, 67, 100.5});
  CHECK(sequence(steps).times_ms == std::vector<double>{0, 10, 30, 35});
  CHECK(sequence(time + steps).times_ms == std::vector<double>{0, 10, 30, 35});
  CHECK_THROWS_AS(sequence(dicom_element(0x18, 0x1065, "DS", "0\\10")), InputError);
  CHECK_THROWS_AS(sequence(dicom_element(0x18, 0x1063, "DS", "-1")), InputError);
  CHECK_THROWS_AS(sequence(dicom_element(0x18, 0x1063, "DS", "abc")), InputError);
  CHECK_THROWS_AS(SequenceReader(folder.string()), InputError);
  // A single frame is a sequence of one.
  s.frames = 0;
  CHECK(sequence("").frames == 1);
}

TEST_CASE("the frame increment pointer chooses between two kinds of times") {
  const TemporaryFolder folder;
  MadeSlice s;
  s.frames = 3;
  std::string bytes = made_dicom(s);
  const std::string thickness = dicom_element(0x18, 0x50, "DS", s.thickness);
  bytes.insert(
      bytes.find(thickness) + thickness.size(),
      dicom_element(0x18, 0x1063, "DS", "7") + dicom_element(0x18, 0x1065, "DS", "0\\1\\2"));
  const std::string frames = dicom_element(0x28, 8, "IS", "3");
  bytes.insert(bytes.find(frames) + frames.size(),
               dicom_element(0x28, 9, "AT", dicom_number(0x18, 2) + dicom_number(0x1063, 2)));
  write_file(folder / "a.dcm", bytes);
  CHECK(times_of(folder / "a.dcm") == std::vector<double>{0, 7, 14});
}

TEST_CASE("sequences of other formats, with their units of time") {
  const TemporaryFolder folder;
  std::string pixels(24, '\0');
  std::iota(pixels.begin(), pixels.end(), '\0');
  const auto check = [&](const std::string& path) {
    SequenceReader reader(path);
    REQUIRE(reader.about().frames == 3);
    REQUIRE(reader.about().grid.size == Vec3i{4, 2, 1});
    CHECK(reader.about().grid.spacing_mm.z == 1);
    std::vector<uint16_t> read(24);
    reader.read(0, 3, read);
    CHECK(std::equal(read.begin(), read.end(), pixels.begin()));
  };
  std::string header = sound_nifti(folder).substr(0, 352);
  header = with(with(with(header, 40, int16_t{4}), 42, int16_t{4}), 44, int16_t{2});
  header = with(with(with(header, 46, int16_t{1}), 48, int16_t{3}), 70, int16_t{2});
  header = with(with(with(header, 72, int16_t{8}), 92, 2.5F), 136, 1.0F);
  for (const auto& [unit, ms] : {std::pair{8, 1000.0}, std::pair{16, 1.0}, std::pair{24, 1e-3}}) {
    write_file(folder / "a.nii", with(header, 123, static_cast<char>(2 + unit)) + pixels);
    check(folder / "a.nii");
    const std::vector<double> times = times_of(folder / "a.nii");
    REQUIRE(times.size() == 3);
    for (size_t i = 0; i < 3; ++i)
      CHECK(times[i] == Approx((1 + 2.5 * static_cast<double>(i)) * ms));
  }
  write_file(folder / "a.nii", with(header, 123, char{2}) + pixels);
  CHECK(times_of(folder / "a.nii").empty());
  write_file(folder / "b.nii",
             with(with(header, 46, int16_t{2}), 44, int16_t{1}) + pixels);  // volumes, not pictures
  CHECK_THAT(message_of<InputError>([&] { SequenceReader(folder / "b.nii"); }),
             Catch::Contains("volumes of 2 slices"));

  // Frames along two axes have no one distance in time.
  const std::string two = with(with(with(header, 40, int16_t{5}), 48, int16_t{1}), 50, int16_t{3});
  write_file(folder / "a.nii", with(two, 123, char{2 + 16}) + pixels);
  check(folder / "a.nii");
  CHECK(times_of(folder / "a.nii").empty());

  const std::string sizes = "dimension: 3\nsizes: 4 2 3\n";
  write_file(folder / "a.nrrd", nrrd(sizes + "kinds: domain domain time\nspacings: 1 1 40\nunits: "
                                             "\"mm\" \"mm\" \"ms\"\n",
                                     24));
  check(folder / "a.nrrd");
  CHECK(times_of(folder / "a.nrrd") == std::vector<double>{0, 40, 80});
  const std::string far =
      "kinds: domain domain time\nspacings: 1 1 1e308\nunits: \"\" \"\" \"s\"\n";
  write_file(folder / "b.nrrd", nrrd(sizes + far, 24));
  CHECK_THAT(message_of<InputError>([&] { SequenceReader(folder / "b.nrrd"); }),
             Catch::Contains("times of its frames are not finite"));
  write_file(folder / "b.nrrd", nrrd(sizes, 24));
  check(folder / "b.nrrd");
  write_file(folder / "a.mha",
             "ObjectType = Image\nNDims = 3\nDimSize = 4 2 3\nElementSpacing = 1 1 "
             "133.25\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n" +
                 pixels);
  check(folder / "a.mha");
  CHECK(times_of(folder / "a.mha") == std::vector<double>{0, 133.25, 266.5});
}

namespace {

/// The values that ITK reads of a file with so many axes.
template <unsigned kAxes>
std::vector<int16_t> values_of_itk(const std::string& path, double& spacing_of_last) {
  register_itk();
  const auto image = read_file_by_itk<itk::Image<int16_t, kAxes>>(path);
  const auto pixels = image->GetLargestPossibleRegion().GetNumberOfPixels();
  spacing_of_last = image->GetSpacing()[kAxes - 1];
  return {image->GetBufferPointer(), image->GetBufferPointer() + pixels};
}

}  // namespace

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
    CHECK(times_of(path) == header.times_ms);
  }
}
