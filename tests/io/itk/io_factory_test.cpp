// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Every image goes through ITK's factory, in which Larch's class stands in front.
#include <cstring>
#include <filesystem>
#include <map>

#include <itkImageFileReader.h>
#include <itkImageFileWriter.h>
#include <itkImageIOFactory.h>
#include <itkMetaDataObject.h>
#include <itkVector.h>
#include <itkVersion.h>

#include "larch/io/image/image.h"
#include "larch/io/itk/register_image_io.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"
#include "tests/io/itk/itk_reference.h"
#include "tests/io/jpeg_maker.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// Stands in front of all others and counts who asks for which file; takes files on demand.
class Doorman : public itk::NiftiImageIO {
 public:
  using Self = Doorman;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
  bool CanReadFile(const char* name) override { return count(reads, name); }
  bool CanWriteFile(const char* name) override { return count(writes, name); }

  static std::map<std::string, int> reads, writes;
  static bool takes_all;

 private:
  static bool count(std::map<std::string, int>& calls, const std::string& name) {
    ++calls[std::filesystem::path(name).filename().string()];
    return takes_all;
  }
};
std::map<std::string, int> Doorman::reads, Doorman::writes;
bool Doorman::takes_all = false;

class DoormanFactory : public itk::ObjectFactoryBase {
 public:
  using Self = DoormanFactory;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
  const char* GetITKSourceVersion() const override { return ITK_SOURCE_VERSION; }
  const char* GetDescription() const override { return "counts"; }

 protected:
  DoormanFactory() {
    RegisterOverride("itkImageIOBase", "Doorman", "counts", true,
                     itk::CreateObjectFunction<Doorman>::New());
  }
};

/// Takes what is written or read by `action` at the door of ITK's factory, and nothing else.
template <class F>
void check_goes_through_the_door(std::map<std::string, int>& calls, const std::string& name,
                                 F&& action) {
  INFO(name);
  calls.clear();
  Doorman::takes_all = false;
  action();
  REQUIRE(calls.size() == 1);  // a writer may have given it a temporary name
  CHECK(calls.begin()->second == 1);
  CHECK(file_extension(calls.begin()->first) == file_extension(name));
  Doorman::takes_all = true;  // another reader is given, and nothing is read around it
  CHECK_THROWS_AS(action(), Error);
  Doorman::takes_all = false;
}

struct WithDoorman {
  WithDoorman() {
    register_image_io();
    itk::ObjectFactoryBase::RegisterFactory(
        factory, itk::ObjectFactoryBase::InsertionPositionEnum::INSERT_AT_FRONT);
  }
  ~WithDoorman() { itk::ObjectFactoryBase::UnRegisterFactory(factory); }
  DoormanFactory::Pointer factory = DoormanFactory::New();
};

Grid flat_grid() {
  Grid grid;
  grid.size = {16, 8, 1};
  return grid;
}

void write_frames(const std::string& path, int64_t frames) {
  SequenceHeader header{.grid = flat_grid(), .frames = frames};
  if (file_extension(path) == ".dcm") header.xa = XaHeader{};
  SequenceWriter writer(path, header);
  writer.write(std::vector<uint16_t>(static_cast<size_t>(128 * frames), 7));
  writer.finish();
}

}  // namespace

TEST_CASE("every format is read and written through the door of ITK's factory") {
  const WithDoorman doorman;
  const TemporaryFolder folder;
  const Volume<uint8_t> picture(flat_grid(), 3);
  auto& reads = Doorman::reads;
  auto& writes = Doorman::writes;
  for (const std::string name : {"a.nii", "b.nii.gz", "c.nrrd", "d.mha", "e.png", "f.tif"}) {
    const std::string path = folder / name;
    check_goes_through_the_door(writes, name, [&] { write_volume(path, picture); });
    check_goes_through_the_door(writes, name,
                                [&] { write_labelmap(path, LabelVolume(flat_grid()), {}); });
    check_goes_through_the_door(reads, name, [&] { read_volume<float>(path); });
    check_goes_through_the_door(reads, name, [&] { read_labels(path); });
    check_goes_through_the_door(reads, name, [&] { probe_image(path); });
  }
  const VectorField field(flat_grid());
  check_goes_through_the_door(writes, "v.mha",
                              [&] { write_vector_field(folder / "v.mha", field); });
  const RgbImage colours{2, 2, std::vector<uint8_t>(12, 1)};
  check_goes_through_the_door(writes, "p.png", [&] { write_png(folder / "p.png", colours); });
  check_goes_through_the_door(reads, "p.png", [&] { read_rgb(folder / "p.png"); });
  write_file(folder / "j.jpg", progressive_jpeg(16));
  check_goes_through_the_door(reads, "j.jpg", [&] { probe_image(folder / "j.jpg"); });
  const std::vector<LabelVolume> series(2, LabelVolume(flat_grid()));
  check_goes_through_the_door(writes, "s.nii",
                              [&] { write_labelmap_series(folder / "s.nii", series, {}); });
  for (const std::string name : {"x.dcm", "x.mha", "x.nrrd", "x.nii"}) {
    const std::string path = folder / name;
    check_goes_through_the_door(writes, name, [&] { write_frames(path, 3); });
    check_goes_through_the_door(reads, name, [&] { SequenceReader(path).about(); });
  }
  const std::string slices = folder / "series";
  std::filesystem::create_directory(slices);
  write_file(slices + "/1", made_dicom({}));
  check_goes_through_the_door(reads, "series", [&] { read_volume<float>(slices); });
}

TEST_CASE("ITK's own readers are not reached for an ending of ours, and are for others") {
  register_image_io();
  const TemporaryFolder folder;
  const auto given = [&](const std::string& name, itk::IOFileModeEnum mode) {
    const auto io = itk::ImageIOFactory::CreateImageIO((folder / name).c_str(), mode);
    return io ? std::string(io->GetNameOfClass()) : "";
  };
  for (const char* name : {"a.nii", "a.nii.gz", "a.hdr", "a.img", "a.nrrd", "a.nhdr", "a.mha",
                           "a.mhd", "a.png", "a.tif", "a.tiff", "a.jpg", "a.jpeg", "a.dcm"}) {
    INFO(name);
    write_file(folder / name, "damaged");
    CHECK(given(name, itk::IOFileModeEnum::ReadMode) == "ImageIO");
  }
  write_file(folder / "slice", made_dicom({}));
  CHECK(given("slice", itk::IOFileModeEnum::ReadMode) == "ImageIO");
  CHECK(given("", itk::IOFileModeEnum::ReadMode) == "ImageIO");  // the folder
  for (const char* name : {"a.nii", "a.nii.gz", "a.nrrd", "a.mha", "a.png", "a.tif"}) {
    CHECK(given(name, itk::IOFileModeEnum::WriteMode) == "ImageIO");
  }
  CHECK(given("a.dcm", itk::IOFileModeEnum::WriteMode) == "GDCMImageIO");
}

TEST_CASE("a program of ITK reads and writes through Larch: rescaling, frames, colours, errors") {
  register_image_io();
  const TemporaryFolder folder;
  const auto read = [&]<class Image>(const std::string& path, Image*) {
    auto reader = itk::ImageFileReader<Image>::New();
    reader->SetFileName(path);
    reader->Update();
    return typename Image::Pointer(reader->GetOutput());
  };
  MadeSlice slice;
  slice.slope = "2";
  slice.intercept = "-1000";
  write_file(folder / "ct.dcm", made_dicom(slice));
  const auto ct = read(folder / "ct.dcm", static_cast<itk::Image<float, 3>*>(nullptr));
  const Volume<float> same = read_volume<float>(folder / "ct.dcm");
  CHECK(std::equal(same.begin(), same.end(), ct->GetBufferPointer()));
  CHECK(describe_difference(grid_of_itk(*ct), same.grid(), 1e-3).empty());

  // Volumes of four axes, of which one is read; their voxels are written by ITK.
  using Frames = itk::Image<int16_t, 4>;
  auto frames = Frames::New();
  frames->SetRegions(Frames::SizeType{{3, 2, 2, 5}});
  frames->Allocate();
  for (int16_t i = 0; i < 60; ++i) frames->GetBufferPointer()[i] = i;
  auto writer = itk::ImageFileWriter<Frames>::New();
  writer->SetInput(frames);
  writer->SetFileName(folder / "four.nii.gz");
  writer->Update();
  const auto back = read(folder / "four.nii.gz", static_cast<Frames*>(nullptr));
  CHECK(std::equal(frames->GetBufferPointer(), frames->GetBufferPointer() + 60,
                   back->GetBufferPointer()));
  CHECK(read_volume<int16_t>(folder / "four.nii.gz", {.frame = 4})[1] == 37);

  auto reader = itk::ImageFileReader<Frames>::New();
  reader->SetFileName(folder / "four.nii.gz");
  reader->UpdateOutputInformation();
  Frames::RegionType fourth = reader->GetOutput()->GetLargestPossibleRegion();
  fourth.SetIndex(3, 3);
  fourth.SetSize(3, 1);
  reader->GetOutput()->SetRequestedRegion(fourth);
  reader->Update();
  CHECK(reader->GetOutput()->GetBufferedRegion() == fourth);
  CHECK(reader->GetOutput()->GetBufferPointer()[1] == 37);

  using Volume3 = itk::Image<float, 3>;
  Grid grid = oblique_grid({3, 2, 2});
  grid.frame = WorldFrame::kMni152;
  write_volume(folder / "mni.nii", Volume<int16_t>(grid, 5));
  write_file(folder / "mni.nii", with(with(read_file(folder / "mni.nii"), 112, 0.5F), 116, -1.25F));
  const auto scaled = read(folder / "mni.nii", static_cast<Volume3*>(nullptr));
  CHECK(scaled->GetBufferPointer()[0] == 1.25F);
  std::string word;
  const auto& words = scaled->GetMetaDataDictionary();
  for (const auto& [key, value] : {std::pair("larch_world_frame", "4"),
                                   {"larch_rescale_slope", "0.5"},
                                   {"larch_rescale_intercept", "-1.25"},
                                   {"larch_warnings", ""}}) {
    CHECK(itk::ExposeMetaData<std::string>(words, key, word));
    CHECK(word == value);
  }

  using Colours = itk::Image<itk::RGBPixel<uint8_t>, 3>;
  write_png(folder / "p.png", {2, 1, {1, 2, 3, 4, 5, 6}});
  const auto picture = read(folder / "p.png", static_cast<Colours*>(nullptr));
  CHECK(picture->GetBufferPointer()[1].GetGreen() == 5);

  write_file(folder / "cut.nii", read_file(folder / "four.nii.gz").substr(0, 100));
  CHECK_THROWS_AS(read(folder / "cut.nii", static_cast<itk::Image<float, 3>*>(nullptr)),
                  itk::ExceptionObject);

  std::filesystem::create_directory(folder / "series");
  write_file(folder / "series/1.dcm", made_dicom(slice));
  write_file(folder / "series/notes.txt", "text");
  const auto series = read(folder / "series", static_cast<Volume3*>(nullptr));
  CHECK(itk::ExposeMetaData<std::string>(series->GetMetaDataDictionary(), "larch_warnings", word));
  CHECK_THAT(word, Catch::Contains("1 files that are no DICOM images are passed over"));
  write_file(folder / "series/2.dcm", "");
  CHECK_THROWS_WITH(read(folder / "series", static_cast<Volume3*>(nullptr)),
                    Catch::Contains("2.dcm' is empty"));
}

TEST_CASE(
    "a program of ITK gets back what it writes through Larch, with one writer for many images") {
  register_image_io();
  const TemporaryFolder folder;
  const auto round_trip = [&]<class Image>(Image* /*type*/, const std::string& name, bool packs) {
    INFO(name << (packs ? ", compressed" : ""));
    auto writer = itk::ImageFileWriter<Image>::New();
    for (const unsigned edge : {4U, 2U}) {  // a smaller image after a larger one
      auto image = Image::New();
      typename Image::SizeType size;
      size.Fill(edge);
      typename Image::SpacingType spacing;
      spacing.Fill(edge + 0.5);
      typename Image::DirectionType turned;
      turned.SetIdentity();
      turned(0, 0) = turned(1, 1) = 0;
      turned(0, 1) = -1;
      turned(1, 0) = 1;
      image->SetRegions(size);
      image->SetSpacing(spacing);
      image->SetDirection(turned);
      image->Allocate();
      const auto values =
          image->GetLargestPossibleRegion().GetNumberOfPixels() * sizeof(typename Image::PixelType);
      auto* bytes = reinterpret_cast<uint8_t*>(image->GetBufferPointer());
      for (size_t i = 0; i < values; ++i) bytes[i] = static_cast<uint8_t>(i % 61);
      writer->SetInput(image);
      writer->SetFileName(folder / (std::to_string(edge) + name));
      writer->SetUseCompression(packs);
      writer->Update();
      auto reader = itk::ImageFileReader<Image>::New();
      reader->SetFileName(writer->GetFileName());
      reader->Update();
      const auto* back = reader->GetOutput();
      CHECK(back->GetLargestPossibleRegion() == image->GetLargestPossibleRegion());
      CHECK(back->GetSpacing() == image->GetSpacing());
      CHECK(back->GetDirection() == image->GetDirection());
      CHECK(std::memcmp(back->GetBufferPointer(), bytes, values) == 0);
    }
  };
  for (const bool packs : {false, true}) {
    for (const char* name : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
      round_trip(static_cast<itk::Image<int16_t, 2>*>(nullptr), name, packs);
      round_trip(static_cast<itk::Image<float, 3>*>(nullptr), name, packs);
      round_trip(static_cast<itk::Image<itk::Vector<float, 2>, 3>*>(nullptr), name, packs);
    }
    round_trip(static_cast<itk::Image<int16_t, 4>*>(nullptr), ".nii", packs);
  }
  const auto refused = [&]<class Image>(Image* /*type*/, const std::string& name) {
    auto image = Image::New();
    typename Image::SizeType size;
    size.Fill(2);
    image->SetRegions(size);
    image->Allocate(true);
    auto writer = itk::ImageFileWriter<Image>::New();
    writer->SetInput(image);
    writer->SetFileName(folder / name);
    try {
      writer->Update();
      FAIL(name << " is written");
    } catch (const itk::ExceptionObject& error) {
      CHECK_THAT(std::string(error.GetDescription()), Catch::Contains("'" + (folder / name) + "'"));
    }
  };
  refused(static_cast<itk::Image<float, 5>*>(nullptr), "five.nii");
  refused(static_cast<itk::Image<itk::Vector<float, 2>, 4>*>(nullptr), "vectors.nii");
  refused(static_cast<itk::Image<itk::RGBPixel<uint16_t>, 2>*>(nullptr), "wide.png");
  refused(static_cast<itk::Image<float, 2>*>(nullptr), "float.png");
}
