// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Files of several frames: one of them is read, in the memory of one, or all of them as a sequence.
#include <algorithm>
#include <fstream>
#include <numeric>

#include <sys/resource.h>
#include <unistd.h>

#include "larch/io/bytes/zstream.h"
#include "larch/io/image/image.h"
#include "larch/io/sequence/sequence_reader.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// 2 x 2 x 2 voxels in three frames, with the values 0 to 23.
constexpr int kVoxels = 8, kFrames = 3;

/// The bytes compressed; `times`: as often one behind the other, behind `start`.
std::string gzipped(const TemporaryFolder& folder, const std::string& bytes, int times = 1,
                    const std::string& start = "") {
  io::ZWriter out(folder / "packed", true);
  out.write(start.data(), static_cast<int64_t>(start.size()));
  for (int i = 0; i < times; ++i) out.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  out.close();
  return read_file(folder / "packed");
}

/// A header of NIfTI-1 for frames of uint8 along a fourth axis.
std::string nifti_header(int frames, Vec3i size = {2, 2, 2}) {
  const TemporaryFolder folder;
  return with_shorts(
      sound_nifti(folder).substr(0, 352),
      {{40, 4}, {42, size.x}, {44, size.y}, {46, size.z}, {48, frames}, {70, 2}, {72, 8}});
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
  CHECK_THAT(refusal(path),
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
    CHECK_THAT(refusal(path, frame(number)),
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
  check("a.nii", nifti_header(3) + counted(24));
  check("a.nii.gz", gzipped(folder, nifti_header(3) + counted(24)));
  const std::string sizes = "2 2 2 3";
  check("raw.nrrd", nrrd_of(sizes, "", counted(24)));
  check("end.nrrd", nrrd_of(sizes, "byte skip: -1\n", "??" + counted(24)));
  check("gzip.nrrd", nrrd_of(sizes, "", gzipped(folder, counted(24)), "gzip"));
  check("time.nrrd", nrrd_of(sizes, "kinds: domain domain domain time\n", counted(24)));
  check("a.mha", mha_of(sizes, "", counted(24)));
  write_file(folder / "data.raw", "??" + counted(24));
  check("end.mhd", mha_of(sizes, "HeaderSize = -1\n", "", "data.raw"));
}

TEST_CASE("one frame of a compressed MetaImage, whose check sum counts all the same") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.mha", packed = gzipped(folder, counted(24));
  const auto write = [&](const std::string& data) {
    write_file(path, mha_of("2 2 2 3", "CompressedData = True\n", data));
  };
  write(packed);
  check_three_frames(path);
  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] + 1);  // of the CRC
  for (const std::string& data :
       {damaged, gzipped(folder, counted(23)), gzipped(folder, counted(25))}) {
    write(data);
    for (const int number : {1, 3}) {
      CHECK_THAT(refusal(path, frame(number)), Catch::Contains("damaged or truncated"));
    }
  }
}

TEST_CASE("a file that ends before its last frame is refused, whichever is asked for") {
  const TemporaryFolder folder;
  const std::string cut = counted(23);
  write_file(folder / "a.nii", nifti_header(3) + cut);
  write_file(folder / "a.nrrd", nrrd_of("2 2 2 3", "", cut));
  write_file(folder / "a.mha", mha_of("2 2 2 3", "", cut));
  for (const char* name : {"a.nii", "a.nrrd", "a.mha"}) {
    CHECK_THAT(refusal(folder / name, frame(1)),
               Catch::Contains("in 3 frames, more than the file can hold"));
  }
}

TEST_CASE("an image of one frame has a frame 1 and no other") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {3, 2, 1};
  write_file(folder / "a.dcm", made_dicom({}));
  for (const std::string name : {"a.nii.gz", "a.nrrd", "a.mha", "a.png", "a.tif", "a.dcm"}) {
    if (name != "a.dcm") write_volume(folder / name, Volume<uint8_t>(grid, 7));
    CHECK(same_values(read_volume<float>(folder / name, frame(1)),
                      read_volume<float>(folder / name)));
    CHECK_THAT(message_of<InputError>([&] { read_volume<uint8_t>(folder / name, frame(2)); }),
               Catch::Contains("there is no frame 2"));
  }
}

TEST_CASE("an axis of time is no axis of space") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.nrrd";
  const auto write = [&](const std::string& kinds) {
    write_file(path, nrrd_of("4 2 3", "kinds: " + kinds + "\n", counted(24)));
  };
  write("domain domain time");
  check_three_frames(path);
  CHECK(probe_image(path, frame(1)).grid.size == Vec3i{4, 2, 1});
  for (const auto& [kinds, message] : {std::pair("time domain domain", "write it last"),
                                       {"domain time time", "two axes of time"}}) {
    write(kinds);
    CHECK_THAT(refusal(path, frame(1)), Catch::Contains(message));
  }
}

TEST_CASE("a frame is read at its place: the rest of a file of 16 GiB is not looked at") {
  const TemporaryFolder folder;
  constexpr int64_t kFrame = 16 << 20, kCount = 1024;
  const std::string sizes = "256 256 256 1024";
  for (const auto& [name, header] : {std::pair("a.nii", nifti_header(1024, {256, 256, 256})),
                                     {"a.nrrd", nrrd_of(sizes, "", "")},
                                     {"a.mha", mha_of(sizes, "", "")}}) {
    const std::string path = folder / name;
    write_file(path, header);
    const auto start = static_cast<int64_t>(header.size());
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
  const std::string packed = gzipped(folder, all, 1024), sizes = "128 128 128 128";
  write_file(folder / "a.nii.gz",
             gzipped(folder, all, 1024, nifti_header(kCount, {kSide, kSide, kSide})));
  write_file(folder / "a.mha", mha_of(sizes, "CompressedData = True\n", packed));
  write_file(folder / "a.nrrd", nrrd_of(sizes, "", packed, "gzip"));
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
  CHECK_THAT(refusal(path),
             Catch::Contains("has no position") && Catch::Contains("--frame 1 to --frame 3"));
  ReadOptions no_flag;
  no_flag.has_frame_flag = false;
  CHECK_THAT(refusal(path, no_flag),
             Catch::Contains("to a file of its own") && !Catch::Contains("--frame"));
  for (int number = 1; number <= 3; ++number) {
    const auto volume = read_volume<int16_t>(path, frame(number));
    REQUIRE(volume.size() == Vec3i{2, 4, 1});
    CHECK(volume.grid().spacing_mm == Vec3d{0.5, 2, 3});
    for (int i = 0; i < 8; ++i) CHECK(volume[i] == 2 * (8 * (number - 1) + i) + 5);
  }
  CHECK(probe_image(path, frame(3)).grid.size == Vec3i{2, 4, 1});
  CHECK_THAT(refusal(path, frame(4)),
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

TEST_CASE("a DICOM sequence has the times that its header gives") {
  const TemporaryFolder folder;
  MadeSlice s;
  s.frames = 4;
  s.columns = 3;
  s.rows = 2;
  const auto sequence = [&](const std::string& elements, const std::string& pointer = "") {
    std::string bytes = made_dicom(s);
    const std::string thickness = dicom_element(0x18, 0x50, "DS", s.thickness);
    bytes.insert(bytes.find(thickness) + thickness.size(), elements);
    const std::string frames = dicom_element(0x28, 8, "IS", "4");
    bytes.insert(bytes.find(frames) + frames.size(), pointer);
    write_file(folder / "a.dcm", bytes);
    return SequenceReader(folder / "a.dcm").about();
  };
  const Angiogram plain = sequence("");
  REQUIRE(plain.frames == 4);
  CHECK(plain.grid.size == Vec3i{3, 2, 1});
  CHECK(plain.times_ms.empty());
  const std::string time = dicom_element(0x18, 0x1063, "DS", "33.5");
  const std::string steps = dicom_element(0x18, 0x1065, "DS", "0\\10\\20\\5");
  // The frame increment pointer chooses between the two.
  const std::string pointer = dicom_element(0x28, 9, "AT", dicom_number(0x10630018, 4));
  CHECK(sequence(time).times_ms == std::vector<double>{0, 33.5, 67, 100.5});
  CHECK(sequence(steps).times_ms == std::vector<double>{0, 10, 30, 35});
  CHECK(sequence(time + steps).times_ms == std::vector<double>{0, 10, 30, 35});
  CHECK(sequence(time + steps, pointer).times_ms == std::vector<double>{0, 33.5, 67, 100.5});
  // Of another number of frames they are dropped.
  CHECK(sequence(dicom_element(0x18, 0x1065, "DS", "0\\10")).times_ms.empty());
  CHECK_THROWS_AS(sequence(dicom_element(0x18, 0x1063, "DS", "-1")), InputError);
  CHECK_THROWS_AS(sequence(dicom_element(0x18, 0x1063, "DS", "abc")), InputError);
  // A single frame is a sequence of one.
  s.frames = 0;
  CHECK(sequence("").frames == 1);
}

TEST_CASE("sequences of other formats, with their units of time") {
  const TemporaryFolder folder;
  const std::string pixels = counted(24);
  const auto times = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    SequenceReader reader(folder / name);
    REQUIRE(reader.about().frames == 3);
    REQUIRE(reader.about().grid.size == Vec3i{4, 2, 1});
    CHECK(reader.about().grid.spacing_mm.z == 1);
    std::vector<uint16_t> read(24);
    reader.read(0, 3, read);
    CHECK(std::equal(read.begin(), read.end(), pixels.begin()));
    return reader.about().times_ms;
  };
  const std::string header = with(with(nifti_header(3, {4, 2, 1}), 92, 2.5F), 136, 1.0F);
  const auto in_unit = [](const std::string& nifti, int unit) {
    return with(nifti, 123, static_cast<char>(2 + unit));
  };
  for (const auto& [unit, ms] : {std::pair{8, 1000.0}, std::pair{16, 1.0}, std::pair{24, 1e-3}}) {
    const std::vector<double> given = times("a.nii", in_unit(header, unit) + pixels);
    REQUIRE(given.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(given[i] == Approx((1 + 2.5 * static_cast<double>(i)) * ms));
    }
  }
  CHECK(times("a.nii", in_unit(header, 0) + pixels).empty());
  // Frames along two axes have no one distance in time.
  const std::string two = with_shorts(header, {{40, 5}, {48, 1}, {50, 3}});
  CHECK(times("a.nii", in_unit(two, 16) + pixels).empty());
  const std::string kinds = "kinds: domain domain time\nspacings: 1 1 ";
  CHECK(times("a.nrrd", nrrd_of("4 2 3", kinds + "40\nunits: \"mm\" \"mm\" \"ms\"\n", pixels)) ==
        std::vector<double>{0, 40, 80});
  times("b.nrrd", nrrd_of("4 2 3", "", pixels));
  CHECK(times("a.mha", mha_of("4 2 3", "ElementSpacing = 1 1 133.25\n", pixels)) ==
        std::vector<double>{0, 133.25, 266.5});
  // Volumes and no pictures, and a time beyond all numbers.
  const std::string volumes = with_shorts(header, {{44, 1}, {46, 2}}) + pixels;
  CHECK_THAT(message_of<InputError>([&] { times("b.nii", volumes); }),
             Catch::Contains("volumes of 2 slices"));
  const std::string far = nrrd_of("4 2 3", kinds + "1e308\nunits: \"\" \"\" \"s\"\n", pixels);
  CHECK_THAT(message_of<InputError>([&] { times("b.nrrd", far); }),
             Catch::Contains("times of its frames are not finite"));
}
