// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>

#include <sys/stat.h>

#include "larch/io/image/image.h"
#include "tests/io/dicom/dicom_check_util.h"

using namespace larch;
using namespace larch::test;

namespace {

std::string error_of(const TemporaryFolder& folder, const std::vector<MadeSlice>& slices) {
  write_stack(folder, slices);
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
  write_stack(folder, stack(5, {0, 0, -2.5}, first));  // first slice on top
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

TEST_CASE("series that make no volume are errors that name the files") {
  struct Row {
    std::function<void(std::vector<MadeSlice>&)> change;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {[](auto& s) { s.erase(s.begin() + 3); },
       {"not evenly spaced", "4 mm", stack_name(2), stack_name(3)}},
      {[](auto& s) { s[3].position = s[1].position; },
       {"6 slices or frames stand at 5 positions", stack_name(1), stack_name(3)}},
      {[](auto& s) {
         s[2].column = {0, 0, -1};
       },
       {"orientation", stack_name(2)}},
      {[](auto& s) { s[2].rows = 5; }, {"4x3", "4x5", stack_name(2)}},
      {[](auto& s) { s[1].spacing = "2.0\\0.6"; }, {"pixel spacing", stack_name(1)}},
      {[](auto& s) { s[2].position.x += 1; }, {"one line", stack_name(2)}},
      {[](auto& s) { s[1].with_geometry = false; }, {"no position"}},
      {[](auto& s) {
         s[0].row = {0, 0, 0};
       },
       {"perpendicular"}},
      {[](auto& s) { s[2].photometric = "MONOCHROME1"; },
       {"PhotometricInterpretation", stack_name(2)}}};
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    auto slices = stack(6, {0, 0, 2});
    row.change(slices);
    const std::string message = error_of(folder, slices);
    for (const std::string& word : row.words) CHECK_THAT(message, Catch::Contains(word));
  }
}

TEST_CASE("several series are listed, and one can be chosen") {
  const TemporaryFolder folder;
  auto slices = stack(3, {0, 0, 2});
  MadeSlice other;
  other.series = "1.2.3.5";
  other.modality = "MR";
  const auto more = stack(2, {0, 0, 1}, other);
  slices.insert(slices.end(), more.begin(), more.end());
  const std::string message = error_of(folder, slices);
  CHECK_THAT(message, Catch::Contains("2 DICOM series; choose one with --series, in a list in") &&
                          Catch::Contains("1.2.3.4 (CT, 3 files") &&
                          Catch::Contains("1.2.3.5 (MR, 2 files"));
  CHECK(message.find('\n') == std::string::npos);
  ReadOptions options;
  options.series_uid = "1.2.3.5";
  CHECK(read_volume<float>(folder.string(), options).size() == Vec3i{4, 3, 2});
  options.series_uid = "9";
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder.string(), options); }),
             Catch::Contains("no DICOM series 9"));
}

TEST_CASE("no slice vanishes from a folder, and what is something else is passed over") {
  const std::string sound = made_dicom({}), zeros(2000, '\0'), none;
  const std::string packed = "\x1f\x8b\b", lfs = "version https://git-lfs.github.com/spec/v1\n";
  struct Row {
    std::string name, bytes, refusal;  // none: it is passed over
  };
  for (const Row& row : {Row{"x.dcm", none, "is empty"},
                         {"IM0001", none, "is empty"},
                         {"done.txt", none, "is empty"},
                         {"x.IMA", zeros, "begins with zeros"},
                         {"IM0001", zeros, "begins with zeros"},
                         {"1.2.840.17", sound.substr(0, 100), "is cut off"},
                         {"x.dcm.part", sound.substr(0, 100), "is cut off"},
                         {"x.dcm", sound.substr(0, 400), "damaged or truncated"},
                         {"x.txt", sound.substr(0, sound.size() - 2), "truncated"},
                         {"x.dcm.gz", packed, "unpack it"},
                         {"IM0001.gz", packed, "unpack it"},
                         {"x.dcm.zip", "PK\3\4", "unpack it"},
                         {"x.dcm", lfs, "a Git LFS pointer"},
                         {"IM0001", lfs, "a Git LFS pointer"},
                         {"IM0001", "/annex/objects/MD5E-s9--0.dcm", "a git-annex pointer"},
                         {"x.DCM", "some text", "does not begin as DICOM"},
                         {"IM0001", "\1\2\3", "does not begin as DICOM"},
                         {"x.mr", zeros, "begins with zeros"},
                         {"README", "some\ttext\r\n", ""},
                         {"notes.txt", "text", ""},
                         {"report.pdf", lfs, ""},
                         {"x.nii.gz", packed, ""},
                         {"all.zip", "PK\3\4", ""},
                         {"DICOMDIR", sound.substr(0, 400), ""},
                         {"._slice-0.dcm", std::string("\0\5\x16\7", 4), ""},
                         {".DS_Store", std::string("\0\0\0\1Bud1", 8), ""}}) {
    INFO(row.name << ": " << row.refusal);
    const TemporaryFolder folder;
    write_stack(folder, stack(3, {0, 0, 2}));
    write_file(folder / "last.MR", made_dicom(stack(4, {0, 0, 2})[3]));
    write_file(folder / row.name, row.bytes);
    std::vector<std::string> warnings;
    ReadOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    if (row.refusal.empty()) {
      CHECK(read_volume<float>(folder.string(), options).size().z == 4);
      REQUIRE(warnings.size() == 1);
      CHECK_THAT(warnings[0],
                 Catch::Contains("1 files that are no DICOM images are passed over, such as '" +
                                 row.name + "'"));
      continue;
    }
    for (const auto& read : {+[](const std::string& path) { read_volume<float>(path); },
                             +[](const std::string& path) { probe_image(path); }}) {
      CHECK_THAT(message_of<InputError>([&] { read(folder.string()); }),
                 Catch::Contains(row.name) && Catch::Contains(row.refusal));
    }
  }
}

TEST_CASE("a file of a folder that cannot be opened is named, and a pipe is not waited for") {
  const TemporaryFolder folder;
  write_stack(folder, stack(3, {0, 0, 2}));
  const auto refusal = [&] {
    return message_of<InputError>([&] { probe_image(folder.string()); });
  };
  fs::create_symlink("nowhere", folder / "annexed");
  CHECK_THAT(refusal(), Catch::Contains("annexed") && Catch::Contains("a file that is not there"));
  fs::remove(folder / "annexed");
  REQUIRE(mkfifo((folder / "pipe.dcm").c_str(), 0600) == 0);
  CHECK_THAT(refusal(), Catch::Contains("pipe.dcm") && Catch::Contains("not a regular file"));
  fs::remove(folder / "pipe.dcm");
  fs::permissions(folder / stack_name(1), fs::perms::none);
  if (std::ifstream(folder / stack_name(1))) return;  // as root
  CHECK_THAT(refusal(), Catch::Contains(stack_name(1)) && Catch::Contains("Permission denied"));
  CHECK_THAT(message_of<InputError>([&] { probe_image(folder / stack_name(1)); }),
             Catch::Contains("Permission denied"));
}

TEST_CASE("frames of one file at one position are named") {
  const auto frame = [](const std::string& z) {
    return dicom_sequence(0x20, 0x9113, {dicom_element(0x20, 0x32, "DS", "1\\2\\" + z)});
  };
  MadeSlice s;
  s.frames = 3;
  s.groups = dicom_sequence(0x5200, 0x9230, {frame("0"), frame("2"), frame("2")});
  CHECK_THAT(error_of(s), Catch::Contains("3 slices or frames stand at 2 positions") &&
                              Catch::Contains("x.dcm, frame 2"));
}

TEST_CASE("colours are rounded to whole numbers, and are no labels") {
  const TemporaryFolder folder;
  MadeSlice s = stored_as(8, 8, 7, 0);
  s.samples = 3;
  s.photometric = "RGB";
  for (int i = 0; i < 12; ++i) s.raw_pixels += std::string("\xff\x80\x01", 3);
  write_file(folder / "x.dcm", made_dicom(s));
  CHECK(read_volume<uint8_t>(folder / "x.dcm")[0] == 146);  // 0.2126 * 255 + 0.7152 * 128 + 0.0722
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "x.dcm"); }),
             Catch::Contains("x.dcm"));
}

TEST_CASE("no truncation and no flipped byte of a DICOM file crashes the reader") {
  const TemporaryFolder folder;
  const std::string bytes = made_dicom({});
  const std::string path = folder / "x.dcm";
  for (size_t length = 0; length < bytes.size(); length += 3) {
    write_file(path, bytes.substr(0, length));
    INFO("cut to " << length << " of " << bytes.size());
    CHECK_THROWS_AS(read_volume<float>(path), InputError);
  }
  write_file(path, bytes);
  const int errors = errors_of_flipped_bytes(path, {0x01, 0x80}, 1, [&] {
    const auto volume = read_volume<float>(path);
    return volume.voxels() == volume.grid().voxels();
  });
  CHECK(errors > 50);
  CHECK(errors < static_cast<int>(2 * (bytes.size() - 128)));
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
      {"odd/no_meta.dcm", none, 0, "does not begin as DICOM files do"},
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
