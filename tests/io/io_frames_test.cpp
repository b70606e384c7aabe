// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Files of several frames: one of them is read, in the memory of one.
#include <algorithm>
#include <fstream>
#include <numeric>

#include <sys/resource.h>
#include <unistd.h>

#include "larch/io/dicom/dicom_file.h"
#include "larch/io/image/image.h"
#include "larch/io/image/zstream.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// 2 x 2 x 2 voxels in three frames: 0 to 23.
constexpr int kVoxels = 8, kFrames = 3;

std::string counted(int bytes = kVoxels * kFrames) {
  std::string out(static_cast<size_t>(bytes), '\0');
  std::iota(out.begin(), out.end(), '\0');
  return out;
}

std::string gzipped(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder / "packed";
  {
    io::ZWriter out(path, true);
    out.write(bytes.data(), static_cast<int64_t>(bytes.size()));
    out.close();
  }
  return read_file(path);
}

/// A header of NIfTI-1 for frames of 2 x 2 x 2 voxels of uint8.
std::string nifti_header(int16_t frames, Vec3i size = {2, 2, 2}) {
  const TemporaryFolder folder;
  std::string header = with(with(sound_nifti(folder), 40, int16_t{4}), 48, frames);
  header = with(with(header, 70, int16_t{2}), 72, int16_t{8});
  for (int axis = 0; axis < 3; ++axis) {
    header = with(header, 42 + 2 * static_cast<size_t>(axis), static_cast<int16_t>(size[axis]));
  }
  return header.substr(0, 352);
}

std::string nrrd_header(const std::string& encoding, const std::string& more = "") {
  return "NRRD0004\ntype: uint8\ndimension: 4\nsizes: 2 2 2 3\nencoding: " + encoding + "\n" +
         more + "\n";
}

std::string mha_header(const std::string& more = "") {
  return "ObjectType = Image\nNDims = 4\nDimSize = 2 2 2 3\nElementType = MET_UCHAR\n" + more +
         "ElementDataFile = LOCAL\n";
}

ReadOptions frame(int number) {
  ReadOptions options;
  options.frame = number;
  return options;
}

/// The bytes that this process has read from files.
int64_t bytes_read() {
  std::ifstream in("/proc/self/io");
  std::string word;
  int64_t bytes = 0;
  while (in >> word && word != "rchar:") {
  }
  in >> bytes;
  return bytes;
}

void check_three_frames(const std::string& path) {
  INFO(path);
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path); }),
             Catch::Contains("3 frames") && Catch::Contains("--frame 1 to --frame 3"));
  // A mask that goes with an image, or a program without that flag.
  CHECK_THAT(message_of<InputError>([&] { read_labels(path, label_options({})); }),
             Catch::Contains("3 frames") && Catch::Contains("write it to a file of its own") &&
                 !Catch::Contains("--frame"));
  CHECK(probe_image(path).frames == kFrames);
  CHECK(probe_image(path).bytes == kVoxels * kFrames);
  CHECK(probe_image(path, frame(2)).frames == 1);
  CHECK(probe_image(path, frame(2)).bytes == kVoxels);
  for (int number = 1; number <= kFrames; ++number) {
    const auto volume = read_volume<uint8_t>(path, frame(number));
    REQUIRE(volume.voxels() == kVoxels);
    for (int i = 0; i < kVoxels; ++i) CHECK(volume[i] == (number - 1) * kVoxels + i);
  }
  for (const int number : {4, 0, -1}) {
    CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(number)); }),
               Catch::Contains("there is no frame " + std::to_string(number)) &&
                   Catch::Contains("has 3 frames"));
    CHECK_THROWS_AS(probe_image(path, frame(number)), InputError);
  }
}

}  // namespace

TEST_CASE("one frame of a 4-D file is read, in every format and encoding") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    check_three_frames(folder / name);
  };
  check("a.nii", nifti_header(3) + counted());
  check("a.nii.gz", gzipped(folder, nifti_header(3) + counted()));
  check("raw.nrrd", nrrd_header("raw") + counted());
  check("end.nrrd", nrrd_header("raw", "byte skip: -1\n") + "??" + counted());
  check("gzip.nrrd", nrrd_header("gzip") + gzipped(folder, counted()));
  std::string hex, text;
  for (const char value : counted()) {
    char word[8];
    std::snprintf(word, sizeof word, "%02x", value);
    hex += word;
    text += std::to_string(value) + (value % 7 == 0 ? "\n" : " ");
  }
  check("hex.nrrd", nrrd_header("hex") + hex);
  check("text.nrrd", nrrd_header("text") + text);
  check("time.nrrd", nrrd_header("raw", "kinds: domain domain domain time\n") + counted());
  // The voxels in two files, of which the second frame needs both.
  write_file(folder / "first", counted().substr(0, 12));
  write_file(folder / "second", counted().substr(12));
  check("list.nhdr", nrrd_header("raw", "data file: LIST\nfirst\nsecond\n"));
  check("a.mha", mha_header() + counted());
  write_file(folder / "data.raw", "??" + counted());
  check("end.mhd",
        "ObjectType = Image\nNDims = 4\nDimSize = 2 2 2 3\nElementType = "
        "MET_UCHAR\nHeaderSize = -1\nElementDataFile = data.raw\n");
}

TEST_CASE("one frame of a compressed MetaImage, whose check sum counts all the same") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.mha", packed = gzipped(folder, counted());
  write_file(path, mha_header("CompressedData = True\n") + packed);
  check_three_frames(path);
  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] + 1);  // of the CRC
  write_file(path, mha_header("CompressedData = True\n") + damaged);
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(1)); }),
             Catch::Contains("damaged or truncated"));
  for (const int bytes : {23, 25}) {
    write_file(path, mha_header("CompressedData = True\n") + gzipped(folder, counted(bytes)));
    for (const int number : {1, 3}) {
      CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(number)); }),
                 Catch::Contains("damaged or truncated"));
    }
  }
}

TEST_CASE("a file that ends before its last frame is refused, whichever is asked for") {
  const TemporaryFolder folder;
  const std::string cut = counted().substr(0, 23);
  write_file(folder / "a.nii", nifti_header(3) + cut);
  write_file(folder / "a.nrrd", nrrd_header("raw") + cut);
  write_file(folder / "a.mha", mha_header() + cut);
  for (const char* name : {"a.nii", "a.nrrd", "a.mha"}) {
    CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / name, frame(1)); }),
               Catch::Contains("in 3 frames, more than the file can hold"));
  }
}

TEST_CASE("an image of one frame has a frame 1 and no other") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {3, 2, 1};
  for (const char* name : {"a.nii.gz", "a.nrrd", "a.mha", "a.png", "a.tif"}) {
    write_volume(folder / name, Volume<uint8_t>(grid, 7));
    CHECK(read_volume<uint8_t>(folder / name, frame(1))[0] == 7);
    CHECK_THAT(message_of<InputError>([&] { read_volume<uint8_t>(folder / name, frame(2)); }),
               Catch::Contains("there is no frame 2") && Catch::Contains("has 1 frame)"));
  }
}

TEST_CASE("an axis of time is no axis of space") {
  const TemporaryFolder folder;
  const auto header = [](const std::string& kinds) {
    return "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 2 3\nencoding: raw\nkinds: " + kinds +
           "\n\n";
  };
  const std::string path = folder / "a.nrrd";
  write_file(path, header("domain domain time") + counted());
  check_three_frames(path);
  CHECK(probe_image(path, frame(1)).grid.size == Vec3i{4, 2, 1});
  write_file(path, header("time domain domain") + counted());
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(1)); }),
             Catch::Contains("write it last"));
  write_file(path, header("domain time time") + counted());
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(1)); }),
             Catch::Contains("two axes of time"));
}

TEST_CASE("a frame is read at its place: the rest of a file of 16 GiB is not looked at") {
  const TemporaryFolder folder;
  constexpr int64_t kFrame = 16 << 20, kCount = 1024;
  struct File {
    const char* name;
    std::string header;
  };
  const std::string sizes = "256 256 256 1024";
  const std::vector<File> files{
      {"a.nii", nifti_header(1024, {256, 256, 256})},
      {"a.nrrd", "NRRD0004\ntype: uint8\ndimension: 4\nsizes: " + sizes + "\nencoding: raw\n\n"},
      {"a.mha", "ObjectType = Image\nNDims = 4\nDimSize = " + sizes +
                    "\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n"}};
  for (const File& file : files) {
    const std::string path = folder / file.name;
    write_file(path, file.header);
    const auto start = static_cast<int64_t>(file.header.size());
    REQUIRE(::truncate(path.c_str(), start + kFrame * kCount) == 0);  // holes take no space
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(start + kFrame * 1000);
    out.put('\5');
    out.close();
    const int64_t before = bytes_read();
    const auto volume = read_volume<uint8_t>(path, frame(1001));
    CHECK(bytes_read() - before < kFrame + (4 << 20));
    CHECK(volume[0] == 5);
    CHECK(std::count(volume.begin(), volume.end(), 0) == kFrame - 1);
    fs::remove(path);
  }
}

TEST_CASE("a frame of compressed data takes the memory of one frame") {
  const TemporaryFolder folder;
  constexpr int kSide = 128, kCount = 128;  // frames of 2 MiB, all of them 256 MiB
  const std::string all(static_cast<size_t>(kSide) * kSide * kSide * kCount / 1024, '\3');
  const auto write_packed = [&](const std::string& path, const std::string& header) {
    io::ZWriter out(path, true);
    out.write(header.data(), static_cast<int64_t>(header.size()));
    for (int i = 0; i < 1024; ++i) out.write(all.data(), static_cast<int64_t>(all.size()));
    out.close();
  };
  write_packed(folder / "a.nii.gz", nifti_header(kCount, {kSide, kSide, kSide}));
  write_packed(folder / "packed", "");
  const std::string sizes = "128 128 128 128";
  write_file(folder / "a.mha", "ObjectType = Image\nNDims = 4\nDimSize = " + sizes +
                                   "\nElementType = MET_UCHAR\nCompressedData = "
                                   "True\nElementDataFile = LOCAL\n" +
                                   read_file(folder / "packed"));
  write_file(folder / "a.nrrd", "NRRD0004\ntype: uint8\ndimension: 4\nsizes: " + sizes +
                                    "\nencoding: gzip\n\n" + read_file(folder / "packed"));
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  for (const char* name : {"a.nii.gz", "a.mha", "a.nrrd"}) {
    const int64_t before = peak_kib();
    const auto volume = read_volume<uint8_t>(folder / name, frame(100));
    CHECK(std::all_of(volume.begin(), volume.end(), [](uint8_t value) { return value == 3; }));
    CHECK(peak_kib() - before < 64 * 1024);
  }
}

TEST_CASE("a picture of a DICOM cine is chosen by its number") {
  const TemporaryFolder folder;
  const std::string path = folder / "cine.dcm";
  MadeSlice s;
  s.frames = 3;
  s.columns = 2;
  s.rows = 4;
  s.slope = "2";
  s.intercept = "5";
  write_file(path, made_dicom(s));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path); }),
             Catch::Contains("has no position") && Catch::Contains("--frame 1 to --frame 3"));
  ReadOptions no_flag;
  no_flag.has_frame_flag = false;
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, no_flag); }),
             Catch::Contains("to a file of its own") && !Catch::Contains("--frame"));
  for (int number = 1; number <= 3; ++number) {
    const auto volume = read_volume<int16_t>(path, frame(number));
    REQUIRE(volume.size() == Vec3i{2, 4, 1});
    CHECK(volume.grid().spacing_mm == Vec3d{0.5, 2, 3});
    for (int i = 0; i < 8; ++i) CHECK(volume[i] == 2 * (8 * (number - 1) + i) + 5);
  }
  CHECK(probe_image(path, frame(3)).grid.size == Vec3i{2, 4, 1});
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path, frame(4)); }),
             Catch::Contains("there is no frame 4") && Catch::Contains("has 3 frames"));
}

TEST_CASE("a frame of one bit per pixel may begin in the middle of a byte") {
  const TemporaryFolder folder;
  MadeSlice s;
  s.frames = 3;
  s.columns = 3;
  s.rows = 1;
  s.bits_allocated = s.bits_stored = 1;
  s.is_signed = 0;
  s.with_rescale = false;
  s.raw_pixels = std::string("\x8d\x01", 2);  // 101 100 011, the lowest bit first
  write_file(folder / "a.dcm", made_dicom(s));
  const std::vector<std::string> wanted{"101", "100", "011"};
  for (int number = 1; number <= 3; ++number) {
    std::string bits;
    for (const uint8_t bit : read_volume<uint8_t>(folder / "a.dcm", frame(number))) {
      bits += static_cast<char>('0' + bit);
    }
    CHECK(bits == wanted[static_cast<size_t>(number - 1)]);
  }
}

TEST_CASE("a DICOM file whose frames make a volume has one frame to choose") {
  const TemporaryFolder folder;
  MadeSlice s;
  write_file(folder / "slice.dcm", made_dicom(s));
  CHECK(read_volume<float>(folder / "slice.dcm", frame(1)).size().z == 1);
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "slice.dcm", frame(2)); }),
             Catch::Contains("there is no frame 2"));
}
