// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// ITK is the reference: what it reads right has the same voxels and geometry here, format by
// format. And formats that ITK alone reads, whole, cut off and damaged.
#include <algorithm>
#include <random>
#include <set>

#include <itkBioRadImageIOFactory.h>
#include <itkGDCMImageIO.h>
#include <itkGDCMImageIOFactory.h>
#include <itkGDCMSeriesFileNames.h>
#include <itkGiplImageIOFactory.h>
#include <itkImageFileWriter.h>
#include <itkImageSeriesReader.h>
#include <itkJPEGImageIOFactory.h>
#include <itkMRCImageIOFactory.h>
#include <itkMetaImageIOFactory.h>
#include <itkNiftiImageIOFactory.h>
#include <itkNrrdImageIOFactory.h>
#include <itkPNGImageIOFactory.h>
#include <itkTIFFImageIOFactory.h>
#include <itkVTKImageIOFactory.h>

#include "larch/io/image/image.h"
#include "larch/io/image/zstream.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"
#include "tests/io/itk/itk_reference.h"

using namespace larch;
using namespace larch::test;

namespace {

using ItkImage = itk::Image<float, 3>;

void register_itk() {
  static const bool once = [] {
    itk::NiftiImageIOFactory::RegisterOneFactory();
    itk::NrrdImageIOFactory::RegisterOneFactory();
    itk::MetaImageIOFactory::RegisterOneFactory();
    itk::PNGImageIOFactory::RegisterOneFactory();
    itk::TIFFImageIOFactory::RegisterOneFactory();
    itk::JPEGImageIOFactory::RegisterOneFactory();
    itk::VTKImageIOFactory::RegisterOneFactory();
    itk::GiplImageIOFactory::RegisterOneFactory();
    itk::MRCImageIOFactory::RegisterOneFactory();
    itk::BioRadImageIOFactory::RegisterOneFactory();
    itk::GDCMImageIOFactory::RegisterOneFactory();
    return true;
  }();
  (void)once;
}

ItkImage::Pointer read_by_itk(const std::string& path) {
  register_itk();
  if (fs::is_directory(path)) {
    auto names = itk::GDCMSeriesFileNames::New();
    names->SetDirectory(path);
    auto series = itk::ImageSeriesReader<ItkImage>::New();
    series->SetImageIO(itk::GDCMImageIO::New());
    series->SetFileNames(names->GetInputFileNames());
    series->Update();
    return series->GetOutput();
  }
  return read_file_by_itk<ItkImage>(path);
}

/// `pictures`: the spacing of resolution tags is not that of a volume, and Larch takes 1 mm.
void compare_with_itk(const std::string& path, bool picture = false) {
  INFO(path);
  std::vector<std::string> warnings;
  ReadOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const Volume<float> volume = read_volume<float>(path, options);
  const auto itk = read_by_itk(path);
  const Grid grid = grid_of_itk(*itk);
  REQUIRE(volume.size() == grid.size);
  if (!picture) CHECK_THAT(describe_difference(volume.grid(), grid, 1e-3), Catch::Equals(""));
  CHECK(std::equal(volume.begin(), volume.end(), itk->GetBufferPointer()));
}

template <class T>
void write_by_itk(const std::string& path, const Grid& grid) {
  register_itk();
  auto image = itk::Image<T, 3>::New();
  typename itk::Image<T, 3>::SizeType size;
  typename itk::Image<T, 3>::SpacingType spacing;
  typename itk::Image<T, 3>::PointType origin;
  typename itk::Image<T, 3>::DirectionType direction;
  for (unsigned i = 0; i < 3; ++i) {
    const int axis = static_cast<int>(i);
    size[i] = static_cast<itk::SizeValueType>(grid.size[axis]);
    spacing[i] = grid.spacing_mm[axis];
    origin[i] = grid.origin_mm[axis];
    for (unsigned row = 0; row < 3; ++row) direction(row, i) = grid.direction.m[row][i];
  }
  image->SetRegions(size);
  image->SetSpacing(spacing);
  image->SetOrigin(origin);
  image->SetDirection(direction);
  image->Allocate();
  const Volume<T> values = random_volume<T>(grid, 0, 120);
  std::copy(values.begin(), values.end(), image->GetBufferPointer());
  auto writer = itk::ImageFileWriter<itk::Image<T, 3>>::New();
  writer->SetFileName(path);
  writer->SetInput(image);
  writer->Update();
}

Grid plain_grid(const Vec3i& size) {
  Grid grid;
  grid.size = size;
  grid.spacing_mm = {0.75, 1.25, 2.5};
  grid.origin_mm = {-12.5, 37.25, -101.75};
  return grid;
}

/// Files of the formats that ITK alone reads, as it writes them.
std::vector<std::string> written_by_itk(const TemporaryFolder& folder) {
  const Grid grid = plain_grid({5, 4, 3});
  std::vector<std::string> paths;
  for (const char* ending : {".vtk", ".gipl", ".gipl.gz"}) {
    for (const char* type : {"byte", "short", "float"}) {
      paths.push_back(folder / (type + std::string(ending)));
    }
    write_by_itk<uint8_t>(paths[paths.size() - 3], grid);
    write_by_itk<int16_t>(paths[paths.size() - 2], grid);
    write_by_itk<float>(paths[paths.size() - 1], grid);
  }
  Grid origin_free = grid;  // which ITK does not write
  for (const char* name : {"short.mrc", "float.mrc", "float.rec", "byte.pic"}) {
    paths.push_back(folder / name);
  }
  write_by_itk<int16_t>(folder / "short.mrc", origin_free);
  write_by_itk<float>(folder / "float.mrc", origin_free);
  write_by_itk<float>(folder / "float.rec", origin_free);
  write_by_itk<uint8_t>(folder / "byte.pic", origin_free);
  return paths;
}

/// Reads what may be damaged: an error of the input, or voxels.
bool survives(const std::string& path) {
  try {
    return read_volume<float>(path).voxels() > 0;
  } catch (const InputError&) {
    return true;
  } catch (const MemoryError&) {
    return true;
  }
}

}  // namespace

TEST_CASE("what ITK writes in the formats of Larch's own readers is read as ITK reads it") {
  const TemporaryFolder folder;
  for (const bool left_handed : {false, true}) {
    for (const char* ending : {".nii", ".nii.gz", ".nrrd", ".nhdr", ".mha", ".mhd", ".hdr"}) {
      // ITK's reader of NIfTI takes a.nii for a.nii.gz where both are there.
      const std::string path = folder / (std::string(ending).substr(1, 20) + ending);
      write_by_itk<uint8_t>(path, oblique_grid({5, 4, 3}, left_handed));
      compare_with_itk(path);
      write_by_itk<int16_t>(path, oblique_grid({5, 4, 3}, left_handed));
      compare_with_itk(path);
      write_by_itk<float>(path, oblique_grid({5, 4, 3}, left_handed));
      compare_with_itk(path);
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
    write_volume(path, random_volume<uint8_t>(plain_grid({7, 5, 1}), 0, 255));
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
  int seen = 0;
  for (const char* name : {"/hippocampus/images/hippocampus_001.nii.gz",
                           "/hippocampus/labels/hippocampus_001.nii.gz"}) {
    if (data.empty() || !fs::exists(data + name)) continue;
    compare_with_itk(data + name);
    ++seen;
  }
  if (seen == 0) WARN("no images of LARCH_TEST_DATA: left out");
}

TEST_CASE(
    "formats that ITK alone reads are read through it, with a warning that names the reader") {
  const TemporaryFolder folder;
  for (const std::string& path : written_by_itk(folder)) {
    compare_with_itk(path);
    std::string told;
    ReadOptions options;
    options.warn = [&](const std::string& text) { told += text; };
    read_volume<float>(path, options);
    CHECK_THAT(told, Catch::Contains(path) && Catch::Contains("read by ITK's") &&
                         Catch::Contains("ImageIO"));
    CHECK(probe_image(path).grid.size == Vec3i{5, 4, 3});
    CHECK_THROWS_AS(write_volume(path, Volume<uint8_t>(plain_grid({2, 2, 2}))), UsageError);
  }
}

TEST_CASE("files of these formats that are cut off anywhere are refused") {
  const TemporaryFolder folder;
  for (const std::string& path : written_by_itk(folder)) {
    const std::string bytes = read_file(path);
    for (size_t length = 0; length < bytes.size(); length += length < 400 ? 7 : 31) {
      write_file(path, bytes.substr(0, length));
      INFO(path << " cut to " << length << " of " << bytes.size());
      CHECK_THROWS_AS(read_volume<float>(path), InputError);
    }
    write_file(path, bytes.substr(0, bytes.size() - 1));
    INFO(path << " without its last byte");
    CHECK_THROWS_AS(read_volume<float>(path), InputError);
  }
}

TEST_CASE("files of these formats with damaged headers end in an error or in voxels") {
  const TemporaryFolder folder;
  std::mt19937 random(9);
  for (const std::string& path : written_by_itk(folder)) {
    std::string bytes = read_file(path);
    const bool packed = path.ends_with(".gz");
    if (packed) {
      io::ZReader in(path);
      bytes.resize(4096);
      bytes.resize(static_cast<size_t>(in.read(bytes.data(), 4096)));
    }
    for (int round = 0; round < 150; ++round) {
      std::string damaged = bytes;
      for (int i = 0; i <= round % 4; ++i) {
        const size_t at = random() % std::min<size_t>(bytes.size(), round % 2 == 0 ? 256 : 1024);
        constexpr int kEdges[] = {0, 1, 127, 128, 255, 10, 32, 57};
        damaged[at] = static_cast<char>(kEdges[random() % 8]);
      }
      if (packed) {
        io::ZWriter out(path, true);
        out.write(damaged.data(), static_cast<int64_t>(damaged.size()));
        out.close();
      } else {
        write_file(path, damaged);
      }
      CHECK(survives(path));
    }
  }
}

TEST_CASE("headers that the readers could not bear are refused before they see them") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    return message_of<InputError>([&] { read_volume<float>(folder / name); });
  };
  const std::string start = "# vtk DataFile Version 3.0\ntitle\n", data(60, '\1');
  const std::string size =
      "DATASET STRUCTURED_POINTS\nDIMENSIONS 5 4 3\nSPACING 1 1 1\nORIGIN 0 0 0\n";
  const std::string voxels =
      "POINT_DATA 60\nSCALARS scalars unsigned_char 1\nLOOKUP_TABLE default\n";
  write_file(folder / "sound.vtk", start + "BINARY\n" + size + voxels + data);
  CHECK(read_volume<uint8_t>(folder / "sound.vtk")[7] == 1);
  CHECK_THAT(error("a.vtk", start + "ASCII\n" + size + voxels + data), Catch::Contains("as text"));
  CHECK_THAT(error("a.vtk", start + "BINARY\nDATASET POLYDATA\n"), Catch::Contains("other things"));
  CHECK_THAT(error("a.vtk", start + std::string(5000, 'x') + "\n" + size + voxels + data),
             Catch::Contains("longer than 200"));
  CHECK_THAT(error("a.vtk", "hello\n" + size), Catch::Contains("not a VTK file"));
  CHECK_THAT(error("a.vtk", start + "BINARY\n" + std::string(100, '\n')),
             Catch::Contains("64 lines"));
  const std::string huge = "DATASET STRUCTURED_POINTS\nDIMENSIONS 50000 40000 30000\n";
  const std::string huge_array =
      "POINT_DATA 60000000000000\nSCALARS a float\nLOOKUP_TABLE default\n";
  CHECK_THAT(error("a.vtk", start + "BINARY\n" + huge + huge_array + data),
             Catch::Contains("more than the file can hold"));
  std::string mrc(1024, '\0');
  mrc.replace(92, 4, "\xff\xff\xff\x7f");
  CHECK_THAT(error("a.mrc", mrc), Catch::Contains("extended header"));
  CHECK_THAT(error("a.gipl", "short"), Catch::Contains("shorter than the header"));
  CHECK_THAT(error("a.pic", "short"), Catch::Contains("shorter than the header"));
}

TEST_CASE("formats whose readers are not safe are refused, with what to do instead") {
  const TemporaryFolder folder;
  for (const char* name : {"a.mnc", "a.h5", "a.lsm", "a.bmp", "a.jp2", "a.spr", "a.cub", "2dseq"}) {
    write_file(folder / name, std::string(2000, 'x'));
    CHECK_THAT(
        message_of<InputError>([&] { read_volume<float>(folder / name); }),
        Catch::Contains("not read") && (Catch::Contains("convert") || Catch::Contains("save")));
  }
}
