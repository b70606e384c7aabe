// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What DICOM headers can say that was once taken without a word: each is read right, or refused.
#include <cmath>
#include <initializer_list>

#include "tests/io/dicom/dicom_check_util.h"

using namespace larch;
using namespace larch::test;
using Catch::Contains;

TEST_CASE("a number that is present and broken is an error, not a number that is missing") {
  for (const std::string broken :
       {"abc", "1,5", "1e400", "nan", "inf", "0x10", "1\\2", "1 2", "--1", "1\\", "\\"}) {
    INFO(broken);
    const std::pair<std::string, std::string MadeSlice::*> kTexts[] = {
        {"RescaleSlope", &MadeSlice::slope},
        {"RescaleIntercept", &MadeSlice::intercept},
        {"SliceThickness", &MadeSlice::thickness},
        {"SpacingBetweenSlices", &MadeSlice::between_slices},
        {"NumberOfFrames", &MadeSlice::frames_text}};
    for (const auto& [name, text] : kTexts) {
      MadeSlice s;
      s.*text = broken;
      CHECK_THAT(error_of(s), Contains(name + " is '" + broken + "'") && Contains("repair"));
    }
    MadeSlice s;
    s.groups = dicom_element(0x3004, 0xe, "DS", broken);
    CHECK_THAT(error_of(s), Contains("DoseGridScaling is '" + broken + "'"));
    s = {};
    s.spacing = broken + "\\1";
    CHECK_THAT(error_of(s), Contains("PixelSpacing is '"));
    s = {};
    s.with_geometry = false;
    s.groups = dicom_element(0x28, 0x30, "DS", "1\\1") +
               dicom_element(0x20, 0x32, "DS", "0\\0\\" + broken);
    CHECK_THAT(error_of(s), Contains("ImagePositionPatient is '0\\0\\" + broken));
    s.groups = dicom_element(0x28, 0x30, "DS", "1\\1") +
               dicom_element(0x20, 0x37, "DS", broken + "\\0\\0\\0\\1\\0");
    CHECK_THAT(error_of(s), Contains("ImageOrientationPatient is '" + broken));
  }
  MadeSlice spaces;
  spaces.slope = " +2.0 ";
  spaces.intercept = "-1.0E1";
  CHECK(read_one(spaces)[1] == 2 * 1 - 10);
}

TEST_CASE("rescaling that cannot be meant is refused") {
  MadeSlice s;
  for (const std::string zero : {"0", "0.0", "1e-400"}) {
    s.slope = zero;
    CHECK_THAT(error_of(s), Contains("RescaleSlope is 0"));
  }
  s.slope = "1e300";
  CHECK_THAT(error_of(s), Contains("larger than any value"));
  s.slope = "";
  CHECK_THAT(error_of(s), Contains("RescaleIntercept is given without RescaleSlope"));
  s.slope = "1";
  s.intercept = "";
  CHECK_THAT(error_of(s), Contains("RescaleSlope is given without RescaleIntercept"));
  s.slope = "";  // both empty: unknown, the stored numbers are the values
  CHECK(read_one(s)[5] == 5);
  s.groups = dicom_element(0x3004, 0xe, "DS", "0.5");
  CHECK(read_one(s)[5] == 2.5f);
  s.groups = dicom_element(0x3004, 0xe, "DS", "0");
  CHECK_THAT(error_of(s), Contains("DoseGridScaling is 0"));
  s = {};
  s.groups = dicom_element(0x3004, 0xe, "DS", "0.5");
  CHECK_THAT(error_of(s), Contains("DoseGridScaling") && Contains("RescaleSlope"));
}

TEST_CASE("frames that are no number of frames") {
  MadeSlice s;
  for (const std::string frames : {"0", "-1", "1.5", "1e9"}) {
    s.frames_text = frames;
    CHECK_THAT(error_of(s), Contains("'" + frames + "' frames"));
  }
}

TEST_CASE("a spacing that is broken is no missing one, also where that is allowed") {
  MadeSlice s;
  s.with_geometry = false;
  const auto volume = read_only_allowed({s}, Allow::kMissingSpacing, "missing-spacing",
                                        "has no PixelSpacing and no ImagerPixelSpacing");
  CHECK(volume.grid().spacing_mm == Vec3d{1, 1, 3});
  s = {};
  ReadOptions options;
  options.allow = {Allow::kMissingSpacing};
  for (const std::string broken : {"0.7", "0.7\\", "0.7\\0.7\\1"}) {
    s.spacing = broken;
    CHECK_THAT(message_of<InputError>([&] { read_one(s, options); }),
               Contains("PixelSpacing is '" + broken + "', not 2 finite numbers"));
  }
  s.spacing = "0\\0";  // unknown
  CHECK(read_one(s, options).grid().spacing_mm == Vec3d{1, 1, 3});
  s.imager_spacing = "0.5\\0.4";
  CHECK(read_one(s).grid().spacing_mm == Vec3d{0.4, 0.5, 3});
  s = {};
  for (const std::string broken : {"0\\1", "1\\-1", "1\\0"}) {
    s.spacing = broken;
    CHECK_THAT(message_of<InputError>([&] { read_one(s, options); }), Contains("not positive"));
  }
  s = {};
  s.with_geometry = false;
  s.groups = dicom_element(0x28, 0x34, "IS", "4\\3");
  std::string warning;
  options.allow = {};
  options.warn = [&](const std::string& text) { warning += text; };
  CHECK(read_one(s, options).grid().spacing_mm == Vec3d{3, 4, 3});
  CHECK_THAT(warning, Contains("its PixelAspectRatio is taken for it"));
  s.groups = dicom_element(0x28, 0x34, "IS", "-1\\1");
  CHECK_THAT(error_of(s), Contains("PixelAspectRatio is not positive"));
}

TEST_CASE("an element that stands twice, and a sequence whose type was lost") {
  MadeSlice s;
  s.groups = dicom_element(0x3004, 0xe, "DS", "") + dicom_element(0x3004, 0xe, "DS", "");
  CHECK(read_one(s).voxels() == 12);
  s.groups = dicom_element(0x28, 0x1053, "DS", "21");
  CHECK_THAT(error_of(s), Contains("stands twice with different values"));

  // As an archive stores it that does not know the tag: implicit inside (PS3.5, 6.2.2).
  const auto implicit = [](uint32_t tag, const std::string& value) {
    return dicom_number(tag << 16 | tag >> 16, 4) +
           dicom_number(static_cast<uint32_t>(value.size()), 4) + value;
  };
  const std::string table =
      implicit(0x00283002, dicom_number(2, 2) + dicom_number(0, 2) + dicom_number(16, 2)) +
      implicit(0x00283006, dicom_number(70, 2) + dicom_number(90, 2));
  s = stored_as(16, 16, 15, 0);
  const auto unknown = [](const std::string& value) {
    return dicom_number(0x30000028, 4) + "UN" + dicom_number(0, 2) +
           dicom_number(static_cast<uint32_t>(value.size()), 4) + value;
  };
  s.groups = unknown(implicit(0xfffee000, table));
  CHECK(read_one(s)[0] == 70);
  CHECK(read_one(s)[11] == 90);
  s.groups = unknown(implicit(0xfffee000, table).substr(0, 20));
  CHECK_THAT(error_of(s), Contains("an item is longer than its sequence"));
}

TEST_CASE("no value of the image description ends the process") {
  const TemporaryFolder folder;
  const std::string bytes = made_dicom({});
  for (const uint8_t element : {0x02, 0x06, 0x10, 0x11, 0x00, 0x01, 0x02, 0x03}) {
    for (const uint8_t page : {0x00, 0x01}) {
      const std::string tag = dicom_number(0x28, 2) +
                              std::string({static_cast<char>(element), static_cast<char>(page)}) +
                              "US";
      const size_t at = bytes.find(tag);
      if (at == std::string::npos) continue;
      for (const uint32_t value :
           {0U,  1U,  2U,  3U,  4U,  7U,  8U,  11U,  12U,   15U,    16U,
            17U, 24U, 31U, 32U, 33U, 63U, 64U, 255U, 4095U, 32768U, 65535U}) {
        std::string changed = bytes;
        changed.replace(at + 8, 2, dicom_number(value, 2));
        write_file(folder / "x.dcm", changed);
        try {
          read_volume<float>(folder / "x.dcm");
        } catch (const InputError& error) {
          CHECK_THAT(error.what(), Contains("x.dcm"));
        }
      }
    }
  }
}

TEST_CASE(
    "entries of a Modality LUT are words or bytes, and a table that is incomplete is refused") {
  const auto table = [](const std::vector<int>& descriptor, const std::string& data,
                        const std::string& vr = "US") {
    std::string numbers;
    for (const int n : descriptor) numbers += dicom_number(static_cast<uint32_t>(n) & 65535U, 2);
    return dicom_element(0x28, 0x3002, vr, numbers) + dicom_element(0x28, 0x3006, "OW", data);
  };
  const auto words = [](const std::vector<uint32_t>& values) {
    std::string out;
    for (const uint32_t value : values) out += dicom_number(value, 2);
    return out;
  };
  MadeSlice s = stored_as(16, 16, 15, 0);  // numbers 0 to 11
  s.groups = dicom_sequence(0x28, 0x3000, {table({5, 0, 8}, std::string("\1\2\3\4\5", 5))});
  const auto volume = read_one(s);  // two entries in a word
  CHECK(volume[0] == 1);
  CHECK(volume[1] == 2);
  CHECK(volume[4] == 5);
  s.groups = dicom_sequence(0x28, 0x3000, {table({3, 0, 8}, words({1, 2, 255}))});
  CHECK(read_one(s)[2] == 255);

  const auto refused = [&](const std::string& groups, const std::string& why) {
    s.groups = groups;
    CHECK_THAT(error_of(s), Contains("Modality LUT") && Contains(why));
  };
  refused(dicom_sequence(0x28, 0x3000, {table({4, 0, 16}, words({1, 2, 3}))}), "3 entries");
  refused(dicom_sequence(0x28, 0x3000, {table({0, 0, 16}, words({1}))}), "instead of 65536");
  refused(dicom_sequence(0x28, 0x3000, {table({1, 0, 17}, words({1}))}), "17 bits");
  refused(dicom_sequence(0x28, 0x3000, {table({1, 0, 8}, words({256}))}), "more than its 8 bits");
  refused(dicom_sequence(0x28, 0x3000, {table({1, 0}, words({1}))}), "not three numbers");
  const std::string one = table({1, 0, 16}, words({1}));
  refused(dicom_sequence(0x28, 0x3000, {one, one}), "more than one table");
  s.with_rescale = true;  // -1000 and 2: which of the two is meant?
  refused(dicom_sequence(0x28, 0x3000, {one}), "one alone");
}

TEST_CASE("a Siemens mosaic is refused") {
  MadeSlice s;
  s.image_type = "ORIGINAL\\PRIMARY\\M\\MOSAIC";
  CHECK_THAT(error_of(s), Contains("mosaic") && Contains("dcm2niix"));
  s.image_type = "ORIGINAL\\PRIMARY\\M\\ND";  // lost by an anonymiser: the private header knows
  const auto csa = [](uint32_t items, uint32_t length) {
    std::string name = "NumberOfImagesInMosaic";
    name.resize(64, '\0');
    const std::string kind("IS\0\0", 4);
    return "SV10" + name + dicom_number(1, 4) + kind + dicom_number(6, 4) + dicom_number(items, 4) +
           dicom_number(77, 4) + dicom_number(length, 4) + dicom_number(length, 4) +
           dicom_number(77, 4) + dicom_number(length, 4) + "36  ";
  };
  s.csa = csa(6, 3);
  CHECK_THAT(error_of(s), Contains("mosaic"));
  s.csa = csa(0, 0);  // the name stands in the header of every image
  CHECK(read_one(s).voxels() == 12);
  s.csa = csa(6, 3).substr(0, 80);
  CHECK(read_one(s).voxels() == 12);
}

TEST_CASE("the files of one series that differ are named") {
  auto slices = stack(3, {0, 0, 2});
  slices[1].patient = "P2";
  const std::string names = "'" + stack_name(0) + "' and '" + stack_name(1) + "'";
  const auto volume = read_only_allowed(slices, Allow::kMixedPatients, "mixed-patients",
                                        names + " are of one series but differ in PatientID");
  CHECK(volume.size().z == 3);
}

TEST_CASE("what is wrong with a file of another series is no matter") {
  const TemporaryFolder folder;
  auto slices = stack(3, {0, 0, 2});
  slices.push_back({});
  slices[3].series = "1.2.3.5";
  slices[3].slope = "abc";
  write_stack(folder, slices);
  ReadOptions options;
  const auto refusal = [&](const std::string& series) {
    options.series_uid = series;
    return message_of<InputError>([&] { read_volume<float>(folder.string(), options); });
  };
  const auto check = [&](const std::string& why) {
    options.series_uid = "1.2.3.4";
    CHECK(read_volume<float>(folder.string(), options).size().z == 3);
    CHECK_THAT(refusal("1.2.3.5"), Contains(why) && Contains(stack_name(3)));
    CHECK_THAT(refusal(""), Contains("2 DICOM series"));
  };
  check("RescaleSlope is 'abc'");
  slices[3].slope = "1";
  const std::string whole = made_dicom(slices[3]);
  write_file(folder / stack_name(3), whole.substr(0, whole.size() - 2));
  check("truncated");
  const size_t uid = whole.find(dicom_element(0x20, 0x0e, "UI", "1.2.3.5"));
  write_file(folder / stack_name(3), whole.substr(0, uid));  // it may be of any series
  CHECK_THAT(refusal("1.2.3.4"), Contains("no pixels, but may be") && Contains(stack_name(3)));
  write_file(folder / stack_name(3), whole.substr(0, uid + 5));
  CHECK_THAT(refusal("1.2.3.4"), Contains("damaged or truncated") && Contains(stack_name(3)));
}

TEST_CASE("a transfer syntax that is not read is named") {
  for (const auto& [uid, name] : std::initializer_list<std::pair<std::string, std::string>>{
           {".4.53", "JPEG of a retired process"},
           {".4.92", "JPEG 2000 Part 2 or JPIP"},
           {".4.101.1", "MPEG-2, MPEG-4 or HEVC"},
           {".4.112", "JPEG XL"},
           {".4.201", "HTJ2K"},
           {".8.1", "Deflated Image Frame Compression"},
           {".99", "'1.2.840.10008.1.2.99'"}}) {
    MadeSlice s;
    s.syntax = "1.2.840.10008.1.2" + uid;
    CHECK_THAT(error_of(s), Contains("transfer syntax " + name + " is not supported"));
    s.fragments = {"\xff\x4f\xff\x51"};
    CHECK_THAT(error_of(s), Contains("transfer syntax " + name + " is not supported"));
  }
  MadeSlice packed;  // deflated behind the meta information
  packed.syntax = "1.2.840.10008.1.2.4.95";
  std::string bytes = made_dicom(packed);
  bytes.replace(bytes.find("1.2.3.99") + 8, std::string::npos, "\x7d\x8f\x3d\x0a");
  CHECK_THAT(error_of_bytes(bytes), Contains("or JPIP is not supported"));
}

TEST_CASE("positions that are rounded to 0.1 mm agree with one step, or a slice is missing") {
  const double kSteps[] = {0.55, 0.625, 0.75, 1.25, 1.5625, 4.325};
  const Vec3d kNormals[] = {{0, 0, 1}, {0, -0.6, 0.8}, {2.0 / 7, 3.0 / 7, 6.0 / 7}};
  const auto tenths = [](const Vec3d& p) {
    return Vec3d{std::round(10 * p.x), std::round(10 * p.y), std::round(10 * p.z)} / 10;
  };
  int warned = 0;
  for (const double step : kSteps) {
    for (const Vec3d& normal : kNormals) {
      INFO(step << " " << normal.y);
      MadeSlice first;
      const double across = std::hypot(normal.y, normal.z);
      first.row = Vec3d{across * across, -normal.x * normal.y, -normal.x * normal.z} / across;
      first.column = cross(normal, first.row);
      first.position = {-100.3, 7.05, 12.5};
      auto slices = stack(10, normal * step, first);
      for (MadeSlice& slice : slices) slice.position = tenths(slice.position);
      const TemporaryFolder folder;
      write_stack(folder, slices);
      ReadOptions options;
      options.warn = [&](const std::string& text) {
        ++warned;
        CHECK_THAT(text, Contains("rounded to 0.1 mm"));
      };
      const Grid grid = read_volume<float>(folder.string(), options).grid();
      CHECK(std::abs(grid.spacing_mm.z - step) < 0.02);
      fs::remove(folder / stack_name(4));
      CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder.string(), options); }),
                 Contains("a slice may be missing"));
    }
  }
  CHECK(warned >= 9);
}
