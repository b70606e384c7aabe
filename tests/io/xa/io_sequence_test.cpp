// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Sequences in batches: what is written comes back, however both are cut, in memory for a batch.
#include <numeric>

#include "tests/io/xa/xa_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

constexpr int kColumns = 17, kRows = 23, kFrames = 7;

SequenceHeader header_of(int64_t frames = kFrames) {
  SequenceHeader header;
  header.grid.size = {kColumns, kRows, 1};
  header.grid.spacing_mm = {0.25, 0.5, 1};
  header.frames = frames;
  for (int64_t i = 0; i < frames; ++i) header.times_ms.push_back(40.0 * static_cast<double>(i));
  header.xa = XaHeader{};
  header.xa->identity = "a test";
  return header;
}

/// -195 to ..., with both signs in each frame.
std::vector<int16_t> differences() {
  std::vector<int16_t> values(size_t{kColumns} * kRows * kFrames);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int16_t>(static_cast<int>(i * 7 % 2000) - 700);
  }
  return values;
}

template <class T>
std::string written(const std::string& path, const SequenceHeader& header,
                    const std::vector<T>& values, size_t batch) {
  SequenceWriter writer(path, header);
  const size_t step = batch * static_cast<size_t>(header.grid.voxels());
  for (size_t at = 0; at < values.size(); at += step) {
    writer.write(std::span<const T>(values).subspan(at, std::min(step, values.size() - at)));
  }
  writer.finish();
  return read_file(path);
}

}  // namespace

TEST_CASE("a sequence comes back, however it is cut into batches", "[io]") {
  const TemporaryFolder folder;
  const std::vector<int16_t> values = differences();
  for (const std::string ending : {".mha", ".nrrd", ".nii", ".nii.gz", ".dcm"}) {
    INFO(ending);
    const std::string path = folder / ("out" + ending);
    const std::string bytes = written(path, header_of(), values, 3);
    CHECK(written(path, header_of(), values, 1) == bytes);
    CHECK(written(path, header_of(), values, 100) == bytes);
    SequenceReader reader(path);
    const Angiogram& about = reader.about();
    CHECK(about.frames == kFrames);
    CHECK(about.grid.size == Vec3i{kColumns, kRows, 1});
    CHECK(about.grid.spacing_mm.x == 0.25);
    CHECK(about.grid.spacing_mm.y == 0.5);
    CHECK(about.grid.spacing_mm.z == 1);  // what lies between frames is time
    REQUIRE(about.times_ms.size() == kFrames);
    CHECK(about.times_ms[2] == 80);
    const int offset = ending == ".dcm" ? 32768 : -about.least_stored;
    CHECK(about.bits == (ending == ".dcm" ? 16 : 12));  // -700 to 1299
    for (const int64_t batch : {2, 3, 7}) {
      const std::vector<uint16_t> pixels = pixels_of(reader, batch);
      const bool same = std::equal(
          values.begin(), values.end(), pixels.begin(),
          [&](int16_t value, uint16_t pixel) { return int{value} + offset == int{pixel}; });
      CHECK(same);
    }
    std::vector<uint16_t> one(static_cast<size_t>(reader.frame_pixels()));
    reader.read(2, 1, one);
    CHECK(int{one[5]} == int{values[2 * one.size() + 5]} + offset);
  }
}

TEST_CASE("unsigned pixels, one frame, and a file that ends too soon", "[io]") {
  const TemporaryFolder folder;
  SequenceHeader header = header_of(1);
  header.times_ms = {};
  const std::vector<uint16_t> values = counted(size_t{kColumns} * kRows, 3700);
  for (const std::string ending : {".mha", ".nrrd", ".nii.gz", ".dcm"}) {
    INFO(ending);
    const std::string path = folder / ("one" + ending);
    written(path, header, values, 1);
    SequenceReader reader(path);
    CHECK(reader.about().frames == 1);
    CHECK(reader.about().least_stored == 0);
    CHECK(reader.about().times_ms.size() == (ending == ".dcm" ? 1 : 0));
    CHECK(pixels_of(reader) == values);
    SequenceWriter early(path, header_of(2));
    early.write(std::span<const uint16_t>(values));
    CHECK_THROWS_AS(early.finish(), UsageError);
    early.write(std::span<const uint16_t>(values));
    CHECK_THROWS_AS(early.write(std::span<const uint16_t>(values)), UsageError);
    CHECK_THROWS_AS(early.write(std::span<const uint16_t>(values).first(5)), UsageError);
    const std::vector<int16_t> other(values.size());
    if (ending != ".dcm") CHECK_THROWS_AS(early.write(std::span<const int16_t>(other)), UsageError);
  }
}

TEST_CASE("labels are bytes, and no DICOM", "[io]") {
  const TemporaryFolder folder;
  std::vector<uint8_t> labels(size_t{kColumns} * kRows * kFrames, 1);
  labels.back() = 2;
  for (const std::string ending : {".mha", ".nrrd", ".nii.gz"}) {
    INFO(ending);
    const std::string path = folder / ("labels" + ending);
    written(path, header_of(), labels, 2);
    CHECK(probe_image(path).component_type == "uint8");
    SequenceReader reader(path);
    CHECK(reader.about().bits == 8);
    CHECK(pixels_of(reader) == std::vector<uint16_t>(labels.begin(), labels.end()));
  }
  SequenceWriter dicom(folder / "labels.dcm", header_of());
  CHECK_THROWS_AS(dicom.write(std::span<const uint8_t>(labels)), UsageError);
}

TEST_CASE("vectors in pixels become vectors in millimetres", "[io]") {
  const TemporaryFolder folder;
  SequenceHeader header = header_of(2);
  header.times_ms = {};
  std::vector<Vec3f> field(2 * size_t{kColumns} * kRows, Vec3f{2, -3, 0});
  field.back() = {0.5F, 1, 0};
  for (const std::string ending : {".mha", ".nrrd"}) {
    INFO(ending);
    const std::string path = folder / ("field" + ending);
    written(path, header, field, 1);
    const ImageInfo info = probe_image(path);
    CHECK(info.grid.size == Vec3i{kColumns, kRows, 2});
    CHECK(info.components == 2);
    const std::string bytes = read_file(path);
    const auto value_at = [&](size_t at) {
      float value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      return value;
    };
    const size_t first = bytes.size() - 8 * field.size();
    CHECK(value_at(first) == 0.5F);
    CHECK(value_at(first + 4) == -1.5F);
    CHECK(value_at(bytes.size() - 8) == 0.125F);
    CHECK(value_at(bytes.size() - 4) == 0.5F);
  }
  CHECK_THROWS_AS(require_sequence_path("f.nii.gz", header.grid, 2, true), UsageError);
  SequenceWriter pictures(folder / "p.nii", header);
  CHECK_THROWS_AS(pictures.write(std::span<const Vec3f>(field)), UsageError);
}

TEST_CASE("names and sizes that cannot be written are told beforehand", "[io]") {
  Grid grid;
  grid.size = {1024, 1024, 1};
  CHECK_NOTHROW(require_sequence_path("a.dcm", grid, 2000));
  CHECK_THAT(message_of<UsageError>([&] { require_sequence_path("a.dcm", grid, 2048); }),
             Catch::Contains("4 GiB"));
  CHECK_NOTHROW(require_sequence_path("a.mha", grid, 1 << 20));
  CHECK_THAT(message_of<UsageError>([&] { require_sequence_path("a.nii.gz", grid, 40000); }),
             Catch::Contains("32767"));
  CHECK_THAT(message_of<UsageError>([&] { require_sequence_path("a.tif", grid, 2); }),
             Catch::Contains(".dcm .mha .nrrd .nii .nii.gz"));
  const TemporaryFolder folder;
  SequenceHeader bare = header_of();
  bare.xa.reset();
  CHECK_THROWS_AS(SequenceWriter(folder / "a.dcm", bare), UsageError);
  SequenceHeader narrow = header_of(1);
  narrow.xa->bits = 12;
  SequenceWriter twelve(folder / "b.dcm", narrow);
  const std::vector<uint16_t> wide(size_t{kColumns} * kRows, 4096);
  CHECK_THAT(message_of<UsageError>([&] { twelve.write(std::span<const uint16_t>(wide)); }),
             Catch::Contains("12 bits"));
  const std::vector<int16_t> below(wide.size(), -1);
  CHECK_THROWS_AS(twelve.write(std::span<const int16_t>(below)), UsageError);
}

TEST_CASE("other kinds of numbers and places of frames", "[io]") {
  const TemporaryFolder folder;
  const auto saved = [&](const std::string& bytes, const std::string& name = "a.mha") {
    write_file(folder / name, bytes);
    return folder / name;
  };
  SequenceReader whole(saved(mha("MET_FLOAT", "2 1 2", fl({0, 1, 300, 2}))));
  CHECK(whole.about().bits == 10);
  CHECK(pixels_of(whole, 1) == std::vector<uint16_t>{0, 1, 300, 2});
  SequenceReader last(saved(mha("MET_SHORT", "2 1 1 2", us({-3, 1, 100, 2}))));
  CHECK(last.about().frames == 2);
  CHECK(last.about().bits == 8);
  CHECK(last.about().least_stored == -128);
  CHECK(pixels_of(last, 1) == std::vector<uint16_t>{125, 129, 228, 130});
  SequenceReader swapped(
      saved(mha("MET_USHORT", "2 1 1", "\1\2\3\4", "BinaryDataByteOrderMSB = True\n")));
  CHECK(pixels_of(swapped, 1) == std::vector<uint16_t>{0x102, 0x304});

  const auto refused = [&](const std::string& bytes, const std::string& name = "a.mha") {
    return message_of<InputError>([&] { SequenceReader reader(saved(bytes, name)); });
  };
  CHECK_THAT(refused(mha("MET_INT", "1 1 2", us({-1, -1, 40000, 0}))),
             Catch::Contains("beyond 16 bits"));
  CHECK_THAT(refused(mha("MET_USHORT", "64 64 9", std::string(100, 'x'))),
             Catch::Contains("more than the file can hold"));
  CHECK_THAT(refused("no header", "b.nrrd"), Catch::Contains("b.nrrd"));
  CHECK_THAT(refused(std::string(20, 'x'), "b.xyz"), Catch::Contains("known ending"));
  CHECK_THROWS_AS(SequenceReader(folder / "missing.mha"), InputError);
}

TEST_CASE("compressed files: damage is found, earlier frames are read again", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.nii.gz";
  const std::string bytes = written(path, header_of(), differences(), 7);
  write_file(path, bytes.substr(0, bytes.size() / 2));
  CHECK_THROWS_AS(SequenceReader(path), InputError);
  std::string flipped = bytes;
  flipped[bytes.size() - 6] ^= 1;  // the check sum
  write_file(path, flipped);
  CHECK_THROWS_AS(SequenceReader(path), InputError);

  Grid grid;
  grid.size = {4, 3, 5};
  Volume<int16_t> stack(grid);
  std::iota(stack.begin(), stack.end(), int16_t{0});
  for (const std::string ending : {".mha", ".nrrd", ".nii.gz"}) {  // by the writers of volumes
    INFO(ending);
    write_volume(folder / ("v" + ending), stack);
    SequenceReader reader(folder / ("v" + ending));
    CHECK(reader.about().frames == 5);
    CHECK(reader.about().times_ms.empty());
    std::vector<uint16_t> one(12);
    for (const int frame : {4, 1, 3, 0}) {
      reader.read(frame, 1, one);
      CHECK(one == counted(12, 12 * frame));
    }
  }
}

namespace {

constexpr int kSide = 1024, kMany = 2000;
constexpr int64_t kFrameBytes = int64_t{2} * kSide * kSide;
constexpr rlim_t kBound = 128 << 20;

/// A DICOM file of 4 GB, most of it a hole: frames 2 to 1999 are 0.
std::string long_cine(const TemporaryFolder& folder) {
  MadeSlice made = made_cine("", kMany);
  made.columns = made.rows = kSide;
  made.bits_stored = 16;
  made.raw_pixels = "xx";
  std::string bytes = made_dicom(made);
  bytes.resize(bytes.size() - 6);  // length and pixels
  const auto all = static_cast<uint32_t>(kMany * kFrameBytes);
  bytes += dicom_number(all, 4);
  std::string path = folder / "long.dcm";
  write_file(path, bytes);
  fs::resize_file(path, bytes.size() + all);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(bytes.size() + all - 2));
  file.write("\7\3", 2);
  return path;
}

}  // namespace

TEST_CASE("2000 frames of 1024 x 1024 pixels are read in the memory of a batch", "[io]") {
  const TemporaryFolder folder;
  const std::string path = long_cine(folder);
  const auto reads = [](const std::string& name, int frames) {
    return [=] {
      SequenceReader reader(name);
      constexpr int64_t kBatch = 8;
      std::vector<uint16_t> batch(static_cast<size_t>(kBatch * reader.frame_pixels()));
      for (const int64_t first : {int64_t{0}, int64_t{frames / 2}, frames - kBatch}) {
        reader.read(first, kBatch, batch);
      }
      REQUIRE(reader.about().frames == frames);
      REQUIRE(batch.back() == 0x307);
    };
  };
  const rlim_t now = address_space();
  CHECK(code_within(RLIMIT_AS, now + kBound, reads(path, kMany)) == 0);
  CHECK(code_within(RLIMIT_AS, now + kBound / 16, reads(path, kMany)) ==
        static_cast<int>(ExitCode::kMemory));  // the limit is one
  // Some of them as a MetaImage, whose values are looked at once before.
  const std::string header =
      "ObjectType = Image\nNDims = 3\nDimSize = 1024 1024 500\n"
      "ElementType = MET_USHORT\nHeaderSize = -1\n"
      "ElementDataFile = long.dcm\n";
  write_file(folder / "long.mhd", header);
  CHECK(code_within(RLIMIT_AS, now + kBound, reads(folder / "long.mhd", kMany / 4)) == 0);
}

TEST_CASE("2000 frames are written in the memory of a batch", "[io]") {
  // Of small frames: the bytes of all would not fit, and a compressed file has buffers of its own.
  SequenceHeader header;
  header.grid.size = {256, 256, 1};
  header.frames = kMany;
  header.xa = XaHeader{};
  const std::vector<int16_t> batch(size_t{100} * 256 * 256, -3);
  for (const std::string ending : {".dcm", ".mha", ".nrrd"}) {
    INFO(ending);
    const TemporaryFolder folder;
    const auto write = [&] {
      SequenceWriter writer(folder / ("long" + ending), header);
      for (int i = 0; i < kMany / 100; ++i) writer.write(std::span<const int16_t>(batch));
      writer.finish();
    };
    CHECK(code_within(RLIMIT_AS, address_space() + kBound / 2, write) == 0);
    CHECK(fs::file_size(folder / ("long" + ending)) > uintmax_t{kMany} * 2 * 256 * 256);
  }
}

TEST_CASE("a disk that is full is an error of the output", "[io]") {
  const TemporaryFolder folder;
  SequenceHeader header;
  header.grid.size = {256, 256, 1};
  header.frames = 100;
  header.xa = XaHeader{};
  const std::vector<int16_t> values(size_t{100} * 256 * 256, 7);
  for (const std::string ending : {".dcm", ".mha", ".nrrd", ".nii"}) {
    INFO(ending);
    const int code = code_within(RLIMIT_FSIZE, 1 << 20,
                                 [&] { written(folder / ("full" + ending), header, values, 100); });
    CHECK(code == static_cast<int>(ExitCode::kOutput));
  }
}
