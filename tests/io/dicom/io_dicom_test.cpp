// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <numeric>

#include "larch/io/image/image.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

// A series of `n` slices whose file names do not follow their order in space.
std::vector<MadeSlice> made_series(int n, const Vec3d& step, const MadeSlice& first = {}) {
  std::vector<MadeSlice> slices(static_cast<size_t>(n), first);
  for (int i = 0; i < n; ++i) {
    slices[static_cast<size_t>(i)].position = first.position + step * static_cast<double>(i);
    slices[static_cast<size_t>(i)].first_value = 100 * i;
  }
  return slices;
}

std::string file_name(size_t i) {
  return "slice-" + std::to_string(i * 7 % 10) + ".dcm";
}

void write_series(const TemporaryFolder& folder, const std::vector<MadeSlice>& slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    write_file(folder / file_name(i), made_dicom(slices[i]));
  }
}

std::string error_of(const TemporaryFolder& folder, const std::vector<MadeSlice>& slices) {
  write_series(folder, slices);
  std::string message = message_of<InputError>([&] { read_volume<float>(folder.string()); });
  CHECK_THAT(message, Catch::Contains(folder.string()));
  return message;
}

double sum_of(const Volume<float>& volume) {
  return std::accumulate(volume.begin(), volume.end(), 0.0);
}

}  // namespace

TEST_CASE("a series is sorted along its normal and rescaled") {
  const TemporaryFolder folder;
  MadeSlice first;
  first.position = {-10, 20, 30};
  write_series(folder, made_series(5, {0, 0, -2.5}, first));  // first slice on top
  write_file(folder / "notes.txt", "not DICOM");
  const auto volume = read_volume<int16_t>(folder.string());
  CHECK(volume.size() == Vec3i{4, 3, 5});
  CHECK(volume.grid().spacing_mm == Vec3d{0.5, 2, 2.5});
  CHECK(volume.grid().origin_mm == Vec3d{-10, 20, 20});
  CHECK(determinant(volume.grid().direction) == Approx(1));
  CHECK(volume({0, 0, 4}) == -1000);           // the first file
  CHECK(volume({1, 2, 0}) == 2 * 409 - 1000);  // the last one, voxel 9
  const ImageInfo info = probe_image(folder.string());
  CHECK(info.component_type == "int16");
  CHECK(info.grid.size == volume.size());
}

TEST_CASE("gantry tilt is kept as a direction that is not orthogonal") {
  const TemporaryFolder folder;
  write_series(folder, made_series(4, {0, 0.6, 2.0}));
  const Grid grid = read_volume<float>(folder.string()).grid();
  const Vec3d last = world_from_index(grid, {0, 0, 3});
  CHECK(norm(last - Vec3d{0, 1.8, 6}) < 1e-9);
  CHECK(grid.spacing_mm.z == Approx(std::sqrt(4.36)));
  CHECK(dot(grid.direction.column(1), grid.direction.column(2)) > 0.2);
}

TEST_CASE("coronal series keep their orientation") {
  const TemporaryFolder folder;
  MadeSlice first;
  first.row = {1, 0, 0};
  first.column = {0, 0, -1};
  first.position = {5, 6, 7};
  write_series(folder, made_series(3, {0, 4, 0}, first));
  const Grid grid = read_volume<float>(folder.string()).grid();
  CHECK(norm(world_from_index(grid, {1, 1, 1}) - Vec3d{5.5, 10, 5}) < 1e-9);
  CHECK(determinant(grid.direction) == Approx(1));
}

TEST_CASE("series that make no volume are errors that name the files") {
  SECTION("gap") {
    const TemporaryFolder folder;
    auto slices = made_series(6, {0, 0, 2});
    slices.erase(slices.begin() + 3);
    const std::string message = error_of(folder, slices);
    CHECK_THAT(message, Catch::Contains("not evenly spaced") && Catch::Contains("4 mm"));
    CHECK_THAT(message, Catch::Contains(file_name(2)) && Catch::Contains(file_name(3)));
  }
  SECTION("duplicate position") {
    const TemporaryFolder folder;
    auto slices = made_series(4, {0, 0, 2});
    slices[3].position = slices[1].position;
    const std::string message = error_of(folder, slices);
    CHECK_THAT(message, Catch::Contains("4 slices or frames stand at 3 positions"));
    CHECK_THAT(message, Catch::Contains(file_name(1)) && Catch::Contains(file_name(3)));
  }
  SECTION("mixed orientation") {
    const TemporaryFolder folder;
    auto slices = made_series(4, {0, 0, 2});
    slices[2].column = {0, 0, -1};
    const std::string message = error_of(folder, slices);
    CHECK_THAT(message, Catch::Contains("orientation") && Catch::Contains(file_name(2)));
  }
  SECTION("mixed size") {
    const TemporaryFolder folder;
    auto slices = made_series(4, {0, 0, 2});
    slices[2].rows = 5;
    CHECK_THAT(error_of(folder, slices),
               Catch::Contains("4x3") && Catch::Contains("4x5") && Catch::Contains(file_name(2)));
  }
  SECTION("mixed spacing") {
    const TemporaryFolder folder;
    auto slices = made_series(4, {0, 0, 2});
    slices[1].spacing = "2.0\\0.6";
    CHECK_THAT(error_of(folder, slices),
               Catch::Contains("pixel spacing") && Catch::Contains(file_name(1)));
  }
  SECTION("sideways") {
    const TemporaryFolder folder;
    auto slices = made_series(5, {0, 0, 2});
    slices[2].position.x += 1;
    CHECK_THAT(error_of(folder, slices),
               Catch::Contains("one line") && Catch::Contains(file_name(2)));
  }
  SECTION("no positions") {
    const TemporaryFolder folder;
    auto slices = made_series(3, {0, 0, 2});
    slices[1].with_geometry = false;
    slices[0].spacing = slices[2].spacing = "1\\1";
    CHECK_THAT(error_of(folder, slices), Catch::Contains("no position"));
  }
  SECTION("damaged orientation") {
    const TemporaryFolder folder;
    auto slices = made_series(3, {0, 0, 2});
    slices[0].row = {0, 0, 0};
    CHECK_THAT(error_of(folder, slices), Catch::Contains("perpendicular"));
  }
}

TEST_CASE("several series are listed, and one can be chosen") {
  const TemporaryFolder folder;
  auto slices = made_series(3, {0, 0, 2});
  MadeSlice other;
  other.series = "1.2.3.5";
  other.modality = "MR";
  const auto more = made_series(2, {0, 0, 1}, other);
  slices.insert(slices.end(), more.begin(), more.end());
  const std::string message = error_of(folder, slices);
  CHECK_THAT(message, Catch::Contains("2 DICOM series") &&
                          Catch::Contains("1.2.3.4 (CT, 3 files") &&
                          Catch::Contains("1.2.3.5 (MR, 2 files"));
  ReadOptions options;
  options.series_uid = "1.2.3.5";
  CHECK(read_volume<float>(folder.string(), options).size() == Vec3i{4, 3, 2});
  options.series_uid = "9";
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder.string(), options); }),
             Catch::Contains("no DICOM series 9"));
}

TEST_CASE("enhanced objects take geometry and rescaling of each frame") {
  const TemporaryFolder folder;
  const auto frame = [](double z, const char* slope) {
    return dicom_sequence(0x20, 0x9113, {dicom_element(0x20, 0x32, "DS", decimal({1, 2, z}))}) +
           dicom_sequence(
               0x28, 0x9145,
               {dicom_element(0x28, 0x1052, "DS", "5") + dicom_element(0x28, 0x1053, "DS", slope)});
  };
  const std::string shared =
      dicom_sequence(0x20, 0x9116, {dicom_element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0")}) +
      dicom_sequence(
          0x28, 0x9110,
          {dicom_element(0x18, 0x50, "DS", "9") + dicom_element(0x28, 0x30, "DS", "1.5\\0.75")});
  MadeSlice s;
  s.sop_class = "1.2.840.10008.5.1.4.1.1.4.1";
  s.with_geometry = false;
  s.frames = 3;
  const auto groups = [&](double a, double b, double c) {
    return dicom_sequence(0x5200, 0x9229, {shared}) +
           dicom_sequence(0x5200, 0x9230, {frame(a, "1"), frame(b, "10"), frame(c, "100")});
  };
  s.groups = groups(4, 0, 2);
  write_file(folder / "enhanced.dcm", made_dicom(s));
  const auto volume = read_volume<float>(folder / "enhanced.dcm");
  CHECK(volume.size() == Vec3i{4, 3, 3});
  CHECK(volume.grid().origin_mm == Vec3d{1, 2, 0});
  CHECK(volume.grid().spacing_mm == Vec3d{0.75, 1.5, 2});
  CHECK(volume({1, 0, 2}) == 1 * 1 + 5);           // frame 1
  CHECK(volume({1, 0, 0}) == (12 + 1) * 10 + 5);   // frame 2
  CHECK(volume({1, 0, 1}) == (24 + 1) * 100 + 5);  // frame 3
  s.groups = groups(0, 2, 2);
  write_file(folder / "stacks.dcm", made_dicom(s));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "stacks.dcm"); }),
             Catch::Contains("3 slices or frames stand at 2 positions") &&
                 Catch::Contains("stacks.dcm, frame 2"));
  s.groups = groups(0, 2, 4);
  s.frames = 2;
  write_file(folder / "fewer.dcm", made_dicom(s));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "fewer.dcm"); }),
             Catch::Contains("describes 3 frames but has 2"));
  s.frames = 3;
  s.groups.clear();
  write_file(folder / "cine.dcm", made_dicom(s));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "cine.dcm"); }),
             Catch::Contains("no position") && Catch::Contains("cine.dcm"));
}

TEST_CASE("pixels of other kinds") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.dcm";
  MadeSlice s;
  s.slope = "1";
  s.intercept = "0";
  s.samples = 3;
  s.bits_allocated = s.bits_stored = 8;
  s.is_signed = 0;
  s.photometric = "RGB";
  for (int i = 0; i < 12; ++i) s.raw_pixels += std::string("\xff\x80\x01", 3);
  write_file(path, made_dicom(s));
  CHECK(read_volume<float>(path)[0] == Approx(0.2126 * 255 + 0.7152 * 128 + 0.0722));
  CHECK(read_volume<uint8_t>(path)[0] == 146);
  CHECK_THAT(message_of<InputError>([&] { read_labels(path); }), Catch::Contains("x.dcm"));
  s.photometric = "YBR_FULL";
  write_file(path, made_dicom(s));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path); }), Catch::Contains("YBR"));

  MadeSlice twelve;  // with the sign in the bits that are not stored, and without
  twelve.slope = "1";
  twelve.intercept = "0";
  twelve.bits_stored = 12;
  twelve.values = {static_cast<int16_t>(0x0fff), static_cast<int16_t>(0xfffe)};
  write_file(path, made_dicom(twelve));
  CHECK(read_volume<float>(path)[0] == -1);
  CHECK(read_volume<float>(path)[1] == -2);
}

TEST_CASE("no truncation and no flipped byte of a DICOM file crashes the reader") {
  const TemporaryFolder folder;
  const std::string bytes = made_dicom({});
  const std::string path = folder / "x.dcm";
  write_file(path, bytes);
  const auto sound = read_volume<float>(path);
  for (size_t length = 0; length < bytes.size(); length += 3) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, length);
    INFO("cut to " << length << " of " << bytes.size());
    CHECK_THROWS_AS(read_volume<float>(path), InputError);
  }
  int read = 0;
  for (size_t at = 128; at < bytes.size(); ++at) {
    for (const int mask : {0x01, 0x80}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      std::ofstream(path, std::ios::binary) << flipped;
      try {
        const auto volume = read_volume<float>(path);
        CHECK(volume.voxels() == volume.grid().voxels());
        ++read;
      } catch (const Error& error) {
        CHECK((error.code() == ExitCode::kInput || error.code() == ExitCode::kMemory));
      }
    }
  }
  CHECK(read > 0);
  CHECK(sound.voxels() == 12);
}

namespace {
struct Row {
  const char* file;
  Vec3i size;       // {0,0,0}: an error is expected
  double sum;       // of all values after rescaling, from an independent decoder of one syntax
  const char* why;  // part of the message; of a file that --allow missing-spacing reads
};
}  // namespace

TEST_CASE("every odd, compressed and enhanced file is read or refused as documented") {
  const std::string data = data_folder();
  if (data.empty()) return;
  const Vec3i none{0, 0, 0};
  const Vec3i small{64, 64, 1}, large{512, 512, 1};
  const Row rows[] = {
      {"odd/CT_small.dcm", {128, 128, 1}, -1950906, ""},
      {"odd/ExplVR_BigEnd.dcm", {80, 60, 1}, 1113101.07, "missing-spacing"},
      {"odd/MR_small.dcm", small, 2125338, ""},
      {"odd/MR_small_RLE.dcm", small, 2125338, ""},
      {"odd/MR_small_bigendian.dcm", small, 2125338, ""},
      {"odd/MR_small_implicit.dcm", small, 2125338, ""},
      {"odd/MR_small_jp2klossless.dcm", small, 2125338, ""},
      {"odd/MR_small_jpeg_ls_lossless.dcm", small, 2125338, ""},
      {"odd/MR_truncated.dcm", none, 0, "truncated: 8130 of 8192 bytes"},
      {"odd/SC_rgb.dcm", {100, 100, 1}, 1277000, ""},
      {"odd/badVR.dcm", none, 0, "NumberOfFrames is '1A'"},
      {"odd/emri_small_RLE.dcm", none, 0, "no position"},
      {"odd/emri_small_jpeg_2k_lossless.dcm", none, 0, "no position"},
      {"odd/emri_small_jpeg_2k_lossless_too_short.dcm", none, 0, "truncated"},
      {"odd/image_dfl.dcm", large, 33322688, "missing-spacing"},
      {"odd/liver_1frame.dcm", none, 0, "describes 3 frames but has 1"},
      {"odd/meta_missing_tsyntax.dcm", none, 0, "transfer syntax"},
      {"odd/nested_priv_SQ.dcm", none, 0, "no pixels"},
      {"odd/no_meta.dcm", none, 0, "neither DICOM nor a known ending"},
      {"odd/reportsi.dcm", none, 0, "structured report"},
      {"odd/rtstruct.dcm", none, 0, "structure set"},
      {"syntaxes/CT1_UNC", large, -228407043, ""},
      {"syntaxes/CT1_J2KR", large, -228407043, ""},
      {"syntaxes/CT1_JLSL", large, -228407043, ""},
      {"syntaxes/CT1_JPLL", large, -228407043, ""},
      {"syntaxes/CT1_RLE", large, -228407043, ""},
      {"syntaxes/MR3_UNC", large, 86194494, ""},
      {"syntaxes/MR3_J2KR", large, 86194494, ""},
      {"syntaxes/MR3_JLSL", large, 86194494, ""},
      {"syntaxes/MR3_JPLL", large, 86194494, ""},
      {"syntaxes/MR3_RLE", large, 86194494, ""},
      {"syntaxes/XA1_JLSL", {1024, 1024, 1}, 112478027, "missing-spacing"},
      {"syntaxes/XA1_JPLL", {1024, 1024, 1}, 112478027, "missing-spacing"},
      {"enhanced/6_1.dcm", {64, 64, 6}, 2516181, ""},
      {"enhanced/6_2.dcm", {64, 64, 6}, 2501204, ""},
      {"enhanced/6_3.dcm", {64, 64, 6}, 2494742, ""},
      {"enhanced/6_4.dcm", {64, 64, 6}, 2489522, ""},
      {"enhanced/molli-enhanced-mr.dcm", none, 0, "10 slices or frames stand at 1 positions"},
      {"enhanced", none, 0, "2 DICOM series"},
      {"mr-crop", {35, 51, 32}, 3346681, ""},
      {"odd", none, 0, "truncated"},
  };
  size_t files = 0;
  for (const char* folder : {"odd", "syntaxes", "enhanced"}) {
    for (const auto& entry : fs::directory_iterator(data + "/dicom/" + folder)) {
      ++files;
      const std::string name = folder + ("/" + entry.path().filename().string());
      INFO(name << " has no row in the table");
      CHECK(std::any_of(std::begin(rows), std::end(rows),
                        [&](const Row& row) { return name == row.file; }));
    }
  }
  CHECK(files == std::size(rows) - 3);
  for (const Row& row : rows) {
    const std::string path = data + "/dicom/" + row.file;
    INFO(row.file);
    if (row.size == none) {
      const std::string message = message_of<InputError>([&] { read_volume<float>(path); });
      CHECK_THAT(message, Catch::Contains(row.file));
      CHECK_THAT(message, Catch::Contains(row.why));
    } else {
      ReadOptions options;
      if (*row.why != '\0') {
        options.allow = {Allow::kMissingSpacing};
        CHECK_THAT(message_of<InputError>([&] { read_volume<float>(path); }),
                   Catch::Contains(row.why));
      }
      const auto volume = read_volume<float>(path, options);
      CHECK(volume.size() == row.size);
      CHECK(sum_of(volume) == Approx(row.sum).epsilon(1e-7));
    }
  }
}

TEST_CASE("decoders of different transfer syntaxes give the same voxels") {
  const std::string data = data_folder();
  if (data.empty()) return;
  for (const std::string name : {"CT1_", "MR3_"}) {
    const auto native = read_volume<int16_t>(data + "/dicom/syntaxes/" + name + "UNC");
    for (const std::string syntax : {"J2KR", "JLSL", "JPLL", "RLE"}) {
      const auto other = read_volume<int16_t>(data + "/dicom/syntaxes/" + name + syntax);
      INFO(name << syntax);
      CHECK(same_values(native, other));
      CHECK(describe_difference(native.grid(), other.grid()).empty());
    }
  }
}

TEST_CASE("a sagittal series is read from its archive") {
  const std::string data = data_folder();
  if (data.empty()) return;
  const TemporaryFolder folder;
  REQUIRE(
      shell("tar -xJf '" + data + "/dicom/mr-sagittal-hfs.tar.xz' -C '" + folder.string() + "'"));
  const auto volume = read_volume<float>(folder / "mr-sagittal-hfs");
  CHECK(volume.size() == Vec3i{256, 256, 35});
  CHECK(volume.grid().spacing_mm.z == Approx(4.8));
  CHECK(determinant(volume.grid().direction) == Approx(1));
  // Sagittal: rows run to posterior, columns to inferior, slices from left to right.
  CHECK(std::abs(volume.grid().direction.m[1][0]) > 0.9);
  CHECK(volume.grid().direction.m[2][1] < -0.9);
  CHECK(volume.grid().direction.m[0][2] < -0.9);
  CHECK(sum_of(volume) == Approx(516841282));
}
