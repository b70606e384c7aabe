// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What is read of an X-ray angiogram: pixels of some frames, what they mean, times, shutter, masks.
#include <cstdlib>

#include "tests/io/xa/xa_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

std::string intensity(const std::string& word) {
  return dicom_element(0x28, 0x1040, "CS", word);
}

std::string item_of(const std::string& operation, const std::string& more = "") {
  return dicom_element(0x28, 0x6101, "CS", operation) + more;
}

Angiogram about(const MadeSlice& made) {
  const TemporaryFolder folder;
  return SequenceReader(save(folder, made)).about();
}

std::string refusal(const MadeSlice& made) {
  const TemporaryFolder folder;
  const std::string path = save(folder, made);
  return message_of<InputError>([&] {
    SequenceReader reader(path);
    pixels_of(reader);
  });
}

/// Run-length coding of 16-bit frames (PS3.5, annex G): literal runs alone.
std::string run_length_coded(const std::vector<uint16_t>& pixels) {
  std::string high, low;
  for (const uint16_t pixel : pixels) {
    high += static_cast<char>(pixel >> 8);
    low += static_cast<char>(pixel & 255);
  }
  const auto literal = [](const std::string& bytes) {
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += 128) {
      const std::string part = bytes.substr(at, 128);
      out += static_cast<char>(part.size() - 1) + part;
    }
    return out;
  };
  const std::string first = literal(high), second = literal(low);
  std::string header = dicom_number(2, 4) + dicom_number(64, 4) +
                       dicom_number(static_cast<uint32_t>(64 + first.size()), 4);
  header.resize(64, '\0');
  return header + first + second;
}

}  // namespace

TEST_CASE("the frames of a batch are read from their places", "[io]") {
  const TemporaryFolder folder;
  for (const int64_t batch : {1, 2, 5}) {
    SequenceReader reader(save(folder, made_cine()));
    CHECK(reader.about().frames == 5);
    CHECK(reader.about().bits == 12);
    CHECK(reader.about().least_stored == 0);
    CHECK_FALSE(reader.about().has_spacing);
    CHECK(pixels_of(reader, batch) == counted(60));
  }
  SequenceReader reader(folder / "cine.dcm");
  std::vector<uint16_t> two(24);
  reader.read(3, 2, two);
  CHECK(two == counted(24, 36));
  reader.read(0, 2, two);  // and back
  CHECK(two == counted(24));
  CHECK_THROWS_AS(reader.read(4, 2, two), UsageError);
  CHECK_THROWS_AS(reader.read(-1, 2, two), UsageError);
  CHECK_THROWS_AS(reader.read(0, 1, two), UsageError);
}

TEST_CASE("bits, signs and inverted pixels", "[io]") {
  const TemporaryFolder folder;
  for (const int bits : {8, 10, 12, 14, 16}) {
    MadeSlice made = made_cine();
    made.bits_stored = static_cast<uint16_t>(bits);
    SequenceReader reader(save(folder, made));
    CHECK(reader.about().bits == bits);
    CHECK(pixels_of(reader, 2) == counted(60));
  }
  MadeSlice bytes = made_cine();
  bytes.bits_allocated = bytes.bits_stored = 8;
  for (int i = 0; i < 60; ++i) bytes.raw_pixels += static_cast<char>(200 + i - (i > 55 ? 4 : 0));
  SequenceReader eight(save(folder, bytes));
  std::vector<uint16_t> expected = counted(60, 200);
  for (size_t i = 56; i < 60; ++i) expected[i] = static_cast<uint16_t>(expected[i] - 4);
  CHECK(pixels_of(eight, 2) == expected);

  MadeSlice negative = made_cine();
  negative.is_signed = 1;
  negative.photometric = "MONOCHROME1";
  for (int i = 0; i < 60; ++i) negative.values.push_back(static_cast<int16_t>(i - 30));
  SequenceReader reader(save(folder, negative));
  CHECK(reader.about().least_stored == -2048);
  CHECK(reader.about().is_monochrome1);
  CHECK(pixels_of(reader, 3) == counted(60, 2048 - 30));
}

TEST_CASE("odd sizes and compressed frames come as they are", "[io]") {
  const TemporaryFolder folder;
  MadeSlice odd = made_cine("", 3);
  odd.columns = 17;
  odd.rows = 1023;
  odd.bits_stored = 16;
  SequenceReader reader(save(folder, odd));
  const std::vector<uint16_t> whole = pixels_of(reader, 2);
  CHECK(whole == counted(3 * 17 * 1023));

  odd.syntax = "1.2.840.10008.1.2.5";
  const size_t frame = 17 * 1023;
  std::vector<std::string> frames;
  for (size_t i = 0; i < 3; ++i) {
    const auto at = whole.begin() + static_cast<std::ptrdiff_t>(i * frame);
    frames.push_back(run_length_coded({at, at + static_cast<std::ptrdiff_t>(frame)}));
  }
  odd.fragments = frames;
  SequenceReader packed(save(folder, odd, "rle.dcm"));
  CHECK(pixels_of(packed, 2) == whole);
  CHECK_FALSE(packed.about().is_lossy);
  std::vector<uint16_t> last(frame);
  packed.read(2, 1, last);
  CHECK(
      std::equal(last.begin(), last.end(), whole.begin() + static_cast<std::ptrdiff_t>(2 * frame)));
  // A frame in two fragments, found by the offset table.
  const size_t half = frames[0].size() / 4 * 2;
  odd.fragments = {frames[0].substr(0, half), frames[0].substr(half), frames[1], frames[2]};
  const auto padded = [](const std::string& text) { return (text.size() + 1) / 2 * 2; };
  const auto second = static_cast<uint32_t>(16 + half + padded(odd.fragments[1]));
  odd.offset_table = dicom_number(0, 4) + dicom_number(second, 4) +
                     dicom_number(second + 8 + static_cast<uint32_t>(padded(frames[1])), 4);
  SequenceReader split(save(folder, odd, "split.dcm"));
  CHECK(pixels_of(split, 1) == whole);
}

TEST_CASE("what stored values mean", "[io]") {
  CHECK(about(made_cine()).intensity == PixelIntensity::kUnknown);
  CHECK(about(made_cine(intensity("LIN"))).intensity == PixelIntensity::kLinear);
  CHECK(about(made_cine(intensity("LOG"))).intensity == PixelIntensity::kLog);
  CHECK(about(made_cine(intensity("DISP"))).intensity == PixelIntensity::kDisplay);
  const Angiogram other = about(made_cine(intensity("SQRT")));
  CHECK(other.intensity == PixelIntensity::kUnknown);
  REQUIRE(other.warnings.size() == 1);
  CHECK_THAT(other.warnings[0], Catch::Contains("SQRT"));
  const std::string sign = dicom_element(0x28, 0x1041, "SS", us({-1}));
  CHECK(about(made_cine(intensity("LOG") + sign)).intensity_sign == -1);

  MadeSlice scaled = made_cine();
  scaled.with_rescale = true;
  const Angiogram values = about(scaled);  // 2 x - 1000
  REQUIRE(values.modality.size() == 4096);
  CHECK(values.modality[0] == -1000);
  CHECK(values.modality[4095] == 2 * 4095 - 1000);
  const std::string table = dicom_sequence(
      0x28, 0x3000,
      {dicom_element(0x28, 0x3002, "US", us({3, 10, 16})) +
       dicom_element(0x28, 0x3004, "LO", "US") + dicom_element(0x28, 0x3006, "US", us({7, 9, 4}))});
  const Angiogram looked_up = about(made_cine(table));
  REQUIRE(looked_up.modality.size() == 4096);
  CHECK(looked_up.modality[0] == 7);
  CHECK(looked_up.modality[11] == 9);
  CHECK(looked_up.modality[4095] == 4);
}

TEST_CASE("times, shutter and viewing mode", "[io]") {
  const Angiogram silent = about(made_cine());
  CHECK(silent.times_ms.empty());
  CHECK_FALSE(silent.shutter.is_given());
  CHECK(silent.shutter.shows(-5, 99));

  // Group 0018 stands before group 0020: the maker has it in imager_spacing's place.
  const std::string pointer = dicom_element(0x28, 9, "AT", us({0x18, 0x1065}));
  const TemporaryFolder folder;
  std::string bytes = made_dicom(made_cine(dicom_element(0x28, 0x1090, "CS", "SUB")));
  const std::string study = dicom_element(0x20, 0x0d, "UI", "1.2.3");
  const std::string before =
      dicom_element(0x18, 0x1065, "DS", "0\\40\\40\\60\\10") +
      dicom_element(0x18, 0x1164, "DS", "0.3\\0.2") +
      dicom_element(0x18, 0x1600, "CS", "RECTANGULAR\\CIRCULAR\\POLYGONAL") +
      dicom_element(0x18, 0x1602, "IS", "2") + dicom_element(0x18, 0x1604, "IS", "8") +
      dicom_element(0x18, 0x1606, "IS", "3") + dicom_element(0x18, 0x1608, "IS", "9") +
      dicom_element(0x18, 0x1610, "IS", "6\\5") + dicom_element(0x18, 0x1612, "IS", "3") +
      dicom_element(0x18, 0x1620, "IS", "1\\1\\1\\20\\20\\1");
  bytes.insert(bytes.find(study), before);
  bytes.insert(bytes.find(dicom_element(0x28, 0x10, "US", us({3}))), pointer);
  write_file(folder / "full.dcm", bytes);
  const Angiogram full = SequenceReader(folder / "full.dcm").about();
  CHECK(full.times_ms == std::vector<double>{0, 40, 80, 140, 150});
  CHECK(full.has_spacing);
  CHECK(full.grid.spacing_mm.x == 0.2);
  CHECK(full.grid.spacing_mm.y == 0.3);
  CHECK(full.is_viewed_subtracted);
  CHECK(full.shutter.left == 1);
  CHECK(full.shutter.lower == 8);
  CHECK(full.shutter.centre_x == 4);
  CHECK(full.shutter.centre_y == 5);
  CHECK(full.shutter.shows(4, 5));
  CHECK(full.shutter.shows(1, 5));
  CHECK_FALSE(full.shutter.shows(0, 5));  // left of the rectangle
  CHECK_FALSE(full.shutter.shows(7, 7));  // outside of the circle
  CHECK(full.shutter.shows(6, 6));
  CHECK_FALSE(full.shutter.shows(4, 9));

  for (const std::string times : {"0\\40\\40\\60", "0\\40\\40\\60\\10\\10", "40", "abc"}) {
    std::string other = bytes;
    const std::string vector = dicom_element(0x18, 0x1065, "DS", "0\\40\\40\\60\\10");
    other.replace(other.find(vector), vector.size(), dicom_element(0x18, 0x1065, "DS", times));
    const std::string imager = dicom_element(0x18, 0x1164, "DS", "0.3\\0.2");
    other.replace(other.find(imager), imager.size(), dicom_element(0x28, 0x30, "DS", "0\\0"));
    write_file(folder / "other.dcm", other);
    if (times == "abc") {
      CHECK_THAT(message_of<InputError>([&] { SequenceReader(folder / "other.dcm"); }),
                 Catch::Contains("FrameTimeVector is 'abc'"));
      continue;
    }
    const Angiogram without = SequenceReader(folder / "other.dcm").about();
    CHECK(without.times_ms.empty());
    CHECK_FALSE(without.has_spacing);
    REQUIRE(without.warnings.size() == 1);
    CHECK_THAT(without.warnings[0], Catch::Contains("for 5 frames; when they were taken is not"));
  }
}

TEST_CASE("the Mask Subtraction Sequence", "[io]") {
  using Op = MaskOperation;
  const auto average = [](std::initializer_list<int> frames, const std::string& more = "") {
    return item_of("AVG_SUB", more + dicom_element(0x28, 0x6110, "US", us(frames)));
  };
  const auto masks = [](const std::vector<std::string>& items) {
    return about(made_cine(mask_sequence(items)));
  };
  const Angiogram three = masks({average({1, 2, 3})});
  REQUIRE(three.masks.size() == 1);
  CHECK(three.mask_problem.empty());
  CHECK(three.masks[0].operation == Op::kAverage);
  CHECK(three.masks[0].mask_frames == std::vector<int>{0, 1, 2});
  CHECK(three.masks[0].ranges.empty());
  CHECK(three.masks[0].contrast_averaging == 1);

  const std::string range = dicom_element(0x28, 0x6102, "US", us({2, 3, 5, 5}));
  const Angiogram two =
      masks({item_of("TID", range + dicom_element(0x28, 0x6114, "FL", fl({1.5F, -2.25F})) +
                                dicom_element(0x28, 0x6120, "SS", us({-2})) +
                                dicom_element(0x28, 0x6190, "ST", "by hand")),
             item_of("REV_TID", range)});
  REQUIRE(two.masks.size() == 2);
  CHECK(two.masks[0].operation == Op::kTid);
  REQUIRE(two.masks[0].ranges.size() == 2);
  CHECK(two.masks[0].ranges[0].first == 1);
  CHECK(two.masks[0].ranges[0].last == 2);
  CHECK(two.masks[0].ranges[1].first == 4);
  CHECK(two.masks[0].shift_px.y == 1.5);   // the row comes first
  CHECK(two.masks[0].shift_px.x == 2.25);  // and a positive column is to the left
  CHECK(two.masks[0].tid_offset == -2);
  CHECK(two.masks[0].explanation == "by hand");
  CHECK(two.masks[1].operation == Op::kReverseTid);
  CHECK(two.masks[1].tid_offset == 1);

  // NONE is none, whatever else stands there.
  const Angiogram none = masks({item_of("NONE", dicom_element(0x28, 0x6110, "US", us({0})))});
  CHECK(none.mask_problem.empty());
  CHECK(none.masks.at(0).operation == Op::kNone);

  const auto problem = [&](const std::string& item) {
    const Angiogram read = masks({average({1}), item});
    CHECK(read.masks.empty());
    CHECK_THAT(read.mask_problem, Catch::Contains("item 2 of its MaskSubtractionSequence"));
    CHECK_THAT(read.mask_problem, Catch::Contains("--mask-frames"));
    return read.mask_problem;
  };
  CHECK_THAT(problem(average({1, 6})), Catch::Contains("names frame 6 of a file of 5 frames"));
  CHECK_THAT(problem(average({0})), Catch::Contains("names frame 0"));
  CHECK_THAT(problem(average({})), Catch::Contains("AVG_SUB without MaskFrameNumbers"));
  CHECK_THAT(problem(item_of("AVG")), Catch::Contains("none of NONE, AVG_SUB"));
  CHECK_THAT(problem(item_of("REV_TID")), Catch::Contains("without ApplicableFrameRange"));
  CHECK_THAT(problem(item_of("TID", dicom_element(0x28, 0x6120, "SS", us({0})))),
             Catch::Contains("its own mask"));
  CHECK_THAT(problem(item_of("TID", dicom_element(0x28, 0x6120, "SS", us({5})))),
             Catch::Contains("TIDOffset is 5"));
  CHECK_THAT(problem(average({1}, dicom_element(0x28, 0x6102, "US", us({3, 2})))),
             Catch::Contains("runs backwards"));
  CHECK_THAT(problem(average({1}, dicom_element(0x28, 0x6102, "US", us({3})))),
             Catch::Contains("not of pairs"));
  CHECK_THAT(problem(average({1}, dicom_element(0x28, 0x6102, "US", us({3, 6})))),
             Catch::Contains("names frame 6"));
  CHECK_THAT(problem(average({1}, dicom_element(0x28, 0x6114, "FL", fl({1})))),
             Catch::Contains("MaskSubPixelShift"));
  CHECK_THAT(problem(item_of("AVG_SUB", dicom_element(0x28, 0x6110, "IS", "1\\2"))),
             Catch::Contains("not of 16-bit numbers"));
}

TEST_CASE("a frame that is missing and bits beside the stored ones are refused", "[io]") {
  MadeSlice cut = made_cine();
  cut.raw_pixels = std::string(100, 'x');
  CHECK_THAT(refusal(cut), Catch::Contains("truncated"));
  MadeSlice loose = made_cine();
  loose.values.assign(60, 4096);  // a thirteenth bit
  CHECK_THAT(refusal(loose), Catch::Contains("have bits set beside the 12"));
  // One frame is a sequence of one: whoever needs more says so.
  CHECK(about(made_cine("", 1)).frames == 1);
}

TEST_CASE("a header of any length and pixels of any length take the memory of a header", "[io]") {
  const TemporaryFolder folder;
  MadeSlice made = made_cine("", 300);
  made.columns = made.rows = 64;
  made.bits_stored = 16;
  made.csa = std::string(60000, 'c');
  std::string bytes = made_dicom(made);
  const std::string private_element = dicom_element(0x29, 0x1020, "OB", std::string(3 << 20, 'p'));
  bytes.insert(bytes.rfind(dicom_number(0x00107fe0, 4) + "OW"), private_element);
  write_file(folder / "long.dcm", bytes);
  SequenceReader reader(folder / "long.dcm");
  std::vector<uint16_t> one(64 * 64);
  reader.read(299, 1, one);
  CHECK(one == counted(64 * 64, 299 * 64 * 64));
}

TEST_CASE("the cine of the real data is read in batches as it is whole", "[io]") {
  const std::string data = data_folder();
  if (data.empty()) return;
  const std::string path = data + "/xray-angiography/coronary-cine-96f.dcm";
  if (!fs::exists(path)) return;
  SequenceReader reader(path);
  const Angiogram& about = reader.about();
  CHECK(about.frames == 96);
  CHECK(about.bits == 8);
  CHECK(about.intensity == PixelIntensity::kLinear);
  CHECK(about.times_ms.at(1) == 33);
  CHECK(about.is_lossy);
  CHECK_FALSE(about.has_spacing);
  CHECK(about.mask_problem.empty());
  CHECK(about.masks.at(0).operation == MaskOperation::kNone);
  ReadOptions allow;
  allow.allow = {Allow::kMissingSpacing};
  allow.frame = 50;
  const Volume<int32_t> frame = read_volume<int32_t>(path, allow);
  std::vector<uint16_t> same(static_cast<size_t>(reader.frame_pixels()));
  reader.read(49, 1, same);
  CHECK(std::equal(same.begin(), same.end(), frame.begin()));
}
