// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// ANALYZE 7.5: read only if it is allowed, as ITK reads it by the convention of SPM; headers that
// lie, files that are cut off.
#include <algorithm>
#include <random>

#include <itkImageFileReader.h>
#include <itkNiftiImageIO.h>

#include "larch/io/image/image.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

const Vec3i kSize{5, 4, 3};

/// A header by the definition of the format (dbh.h of the Mayo clinic), and nothing of NIfTI.
std::string analyze_header(int16_t type, int16_t bits) {
  std::string bytes(348, '\0');
  bytes = with(bytes, 0, int32_t{348});
  bytes = with(with(bytes, 32, int32_t{16384}), 38, 'r');
  const int16_t dimensions[] = {4, 5, 4, 3, 1};
  const float spacing[] = {0, 0.75F, 1.25F, 2.5F, 1};
  for (size_t i = 0; i < 5; ++i) {
    bytes = with(with(bytes, 40 + 2 * i, dimensions[i]), 76 + 4 * i, spacing[i]);
  }
  bytes.replace(56, 2, "mm");
  return with(with(bytes, 70, type), 72, bits);
}

template <class T>
std::string voxels_of(const Volume<T>& volume) {
  return {reinterpret_cast<const char*>(volume.data()),
          static_cast<size_t>(volume.voxels()) * sizeof(T)};
}

template <class T>
std::string some_voxels() {
  return voxels_of(random_volume<T>({kSize, {}, {}, {}}, 0, 120));
}

std::string swapped(std::string bytes, size_t at, size_t width, size_t count = 1) {
  for (size_t i = 0; i < count; ++i) {
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at + i * width);
    std::reverse(first, first + static_cast<std::ptrdiff_t>(width));
  }
  return bytes;
}

ReadOptions allowed(std::string* told = nullptr) {
  ReadOptions options;
  options.allow = {Allow::kAnalyzeOrientation};
  if (told != nullptr) options.warn = [told](const std::string& text) { *told += text + "\n"; };
  return options;
}

std::string write_pair(const TemporaryFolder& folder, const std::string& header,
                       const std::string& voxels) {
  write_file(folder / "a.img", voxels);
  write_file(folder / "a.hdr", header);
  return folder / "a.hdr";
}

void compare_with_itk(const std::string& path) {
  using ItkImage = itk::Image<float, 3>;
  auto reader = itk::ImageFileReader<ItkImage>::New();
  auto io = itk::NiftiImageIO::New();
  io->SetLegacyAnalyze75Mode(itk::NiftiImageIOEnums::Analyze75Flavor::AnalyzeSPM);
  reader->SetImageIO(io);
  reader->SetFileName(path);
  reader->Update();
  const ItkImage& image = *reader->GetOutput();
  const Volume<float> volume = read_volume<float>(path, allowed());
  const Grid& grid = volume.grid();
  for (unsigned i = 0; i < 3; ++i) {
    const int axis = static_cast<int>(i);
    CHECK(image.GetLargestPossibleRegion().GetSize(i) == static_cast<unsigned>(grid.size[axis]));
    CHECK(image.GetSpacing()[i] == Approx(grid.spacing_mm[axis]));
    CHECK(image.GetOrigin()[i] == Approx(grid.origin_mm[axis]).margin(1e-9));
    for (unsigned row = 0; row < 3; ++row) {
      CHECK(image.GetDirection()(row, i) == Approx(grid.direction.m[row][i]).margin(1e-9));
    }
  }
  CHECK(std::equal(volume.begin(), volume.end(), image.GetBufferPointer()));
}

/// An error of the input, or voxels.
bool survives(const std::string& path) {
  try {
    return read_volume<float>(path, allowed()).voxels() > 0;
  } catch (const InputError&) {
    return true;
  } catch (const MemoryError&) {
    return true;
  }
}

}  // namespace

TEST_CASE("ANALYZE is read only with --allow analyze-orientation, and a warning says how") {
  const TemporaryFolder folder;
  const std::string path = write_pair(folder, analyze_header(4, 16), some_voxels<int16_t>());
  for (const std::string& given : {path, folder / "a.img"}) {
    CHECK_THAT(message_of<InputError>([&] { read_volume<float>(given); }),
               Catch::Contains("a.hdr") && Catch::Contains("this is ANALYZE 7.5") &&
                   Catch::Contains("--allow analyze-orientation"));
    CHECK_THAT(message_of<InputError>([&] { probe_image(given); }),
               Catch::Contains("--allow analyze-orientation"));
    CHECK_THROWS_AS(read_labels(given), InputError);
    std::string told;
    const Volume<int16_t> volume = read_volume<int16_t>(given, allowed(&told));
    CHECK_THAT(told, Catch::Contains("ANALYZE 7.5") && Catch::Contains("radiological"));
    CHECK(voxels_of(volume) == some_voxels<int16_t>());
    CHECK(volume.grid().spacing_mm.z == 2.5);
    CHECK(volume.grid().direction.m[0][0] == 1);  // the first voxel is the rightmost
    CHECK(volume.grid().direction.m[1][1] == -1);
    CHECK(volume.grid().direction.m[2][2] == 1);
    CHECK(probe_image(given, allowed()).grid.size == kSize);
    CHECK(read_labels(given, allowed()).size() == kSize);
  }
  CHECK(detached_files(path) == std::vector<std::string>{folder / "a.img"});
}

TEST_CASE("what is written of an ANALYZE image lies where it lay") {
  const TemporaryFolder folder;
  const std::string path = write_pair(folder, analyze_header(2, 8), some_voxels<uint8_t>());
  const Volume<uint8_t> volume = read_volume<uint8_t>(path, allowed());
  write_volume(folder / "b.nii", volume);
  const Volume<uint8_t> back = read_volume<uint8_t>(folder / "b.nii");
  CHECK_THAT(describe_difference(back.grid(), volume.grid()), Catch::Equals(""));
}

TEST_CASE("ANALYZE is read as ITK reads it by the convention of SPM, in both byte orders") {
  const TemporaryFolder folder;
  compare_with_itk(write_pair(folder, analyze_header(2, 8), some_voxels<uint8_t>()));
  compare_with_itk(write_pair(folder, analyze_header(8, 32), some_voxels<int32_t>()));
  compare_with_itk(write_pair(folder, analyze_header(16, 32), some_voxels<float>()));
  compare_with_itk(write_pair(folder, analyze_header(64, 64), some_voxels<double>()));
  const std::string little = analyze_header(4, 16), voxels = some_voxels<int16_t>();
  compare_with_itk(write_pair(folder, little, voxels));
  std::string big = swapped(swapped(little, 0, 4), 32, 4);
  big = swapped(swapped(swapped(big, 40, 2, 8), 70, 2, 2), 76, 4, 8);
  compare_with_itk(write_pair(folder, big, swapped(voxels, 0, 2, 60)));
}

TEST_CASE("an ANALYZE header that readers take differently is refused even if ANALYZE is allowed") {
  const TemporaryFolder folder;
  const std::string sound = analyze_header(4, 16), voxels = some_voxels<int16_t>();
  const auto error = [&](const std::string& header) {
    const std::string path = write_pair(folder, header, voxels);
    return message_of<InputError>([&] { read_volume<float>(path, allowed()); });
  };
  for (const char orient : {1, 2, 3, 4, 5, 99}) {
    CHECK_THAT(error(with(sound, 252, orient)), Catch::Contains("does not store axial slices"));
  }
  CHECK_THAT(error(with(sound, 112, 0.5F)), Catch::Contains("a scale factor"));
  CHECK_THAT(error(with(sound, 112, NAN)), Catch::Contains("a scale factor"));
  CHECK_THAT(error(with(sound, 116, 7.0F)), Catch::Contains("an offset of the values"));
  CHECK_THAT(error(with(sound, 80, -0.75F)), Catch::Contains("spacing in the header is negative"));
  CHECK_THAT(error(with(sound, 80, 0.0F)), Catch::Contains("spacing in the header is zero"));
  CHECK_THAT(error(with(sound, 56, 'c')), Catch::Contains("are in 'cm'"));
  CHECK_THAT(error(with(with(sound, 70, int16_t{128}), 72, int16_t{24})),
             Catch::Contains("colours of ANALYZE"));
  CHECK_THAT(error(with(sound, 72, int16_t{8})), Catch::Contains("contradicts itself"));
  CHECK_THAT(error(with(sound, 70, int16_t{1})), Catch::Contains("is not supported"));
  CHECK_THAT(error(with(sound, 42, int16_t{30000})), Catch::Contains("more than the file can"));
  CHECK_THAT(error(with(sound, 44, int16_t{0})), Catch::Contains("a size of 0"));
  CHECK_THAT(error(with(sound, 40, int16_t{9})), Catch::Contains("9 dimensions"));
  CHECK_THAT(error(with(sound, 108, -352.0F)), Catch::Contains("impossible offset"));
  CHECK_THAT(error(with(sound, 108, 2.0F)), Catch::Contains("more than the file can hold"));
  // A NIfTI header whose mark is damaged, and one in a file of its own, are no ANALYZE.
  CHECK_THAT(error(with(sound, 344, 'n')), Catch::Contains("a damaged NIfTI header"));
  write_file(folder / "a.nii", sound + voxels);
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "a.nii", allowed()); }),
             Catch::Contains("a damaged NIfTI header"));
}

TEST_CASE("a frame of an ANALYZE image is chosen as of NIfTI") {
  const TemporaryFolder folder;
  const std::string voxels = some_voxels<int16_t>();
  const std::string path = write_pair(folder, with(analyze_header(4, 16), 48, int16_t{2}),
                                      std::string(voxels.size(), '\1') + voxels);
  ReadOptions second = allowed();
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, second); }),
             Catch::Contains("--frame"));
  second.frame = 2;
  CHECK(voxels_of(read_volume<int16_t>(path, second)) == voxels);
}

TEST_CASE("ANALYZE files that are cut off anywhere are refused") {
  const TemporaryFolder folder;
  const std::string header = analyze_header(4, 16), voxels = some_voxels<int16_t>();
  const auto refused = [&](const std::string& path) {
    CHECK_THROWS_AS(read_volume<float>(path, allowed()), InputError);
  };
  for (size_t length = 0; length < header.size(); ++length) {
    INFO("header of " << length << " bytes");
    refused(write_pair(folder, header.substr(0, length), voxels));
  }
  for (size_t length = 0; length < voxels.size(); ++length) {
    INFO("voxels of " << length << " bytes");
    refused(write_pair(folder, header, voxels.substr(0, length)));
  }
  const std::string whole = write_pair(folder, header, voxels);
  CHECK(read_volume<int16_t>(whole, allowed()).size() == kSize);
  fs::remove(folder / "a.img");
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(whole, allowed()); }),
             Catch::Contains("which is missing"));
}

TEST_CASE("ANALYZE files with damaged headers end in an error or in voxels") {
  const TemporaryFolder folder;
  std::mt19937 random(9);
  const std::string header = analyze_header(4, 16), voxels = some_voxels<int16_t>();
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = header;
    for (int i = 0; i <= round % 4; ++i) {
      constexpr int kEdges[] = {0, 1, 127, 128, 255, 10, 32, 57};
      damaged[random() % (round % 2 == 0 ? 128 : 348)] = static_cast<char>(kEdges[random() % 8]);
    }
    CHECK(survives(write_pair(folder, damaged, voxels)));
  }
}
