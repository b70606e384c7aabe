// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// DICOM segmentations, which are label maps, and their table in apps/reading-images.md.
#include "tests/io/dicom/dicom_check_util.h"

using namespace larch;
using namespace larch::test;

namespace {

struct MadeFrame {
  int segment = 0;
  double slice = 0;
  std::string pixels;  ///< c is 300, other letters but . are 7; digits are themselves
};

/// A segmentation with frames of 5x3 pixels in an oblique world.
struct MadeSegmentation {
  std::vector<MadeFrame> frames;
  std::string type = "BINARY", between_slices = "2.5", photometric = "MONOCHROME2";
  bool has_places = true;
  Vec3d row{0.8, 0.6, 0}, column{-0.36, 0.48, 0.8};

  Vec3d place(double slice) const {
    return Vec3d{10, -20, 30} + cross(row, column) * (2.5 * slice);
  }

  std::string bytes() const {
    const auto us = [](int value) { return dicom_number(static_cast<uint32_t>(value), 2); };
    const bool is_labelmap = type == "LABELMAP";
    MadeSlice s;
    s.sop_class = "1.2.840.10008.5.1.4.1.1.66.4";
    s.photometric = photometric;
    s.with_geometry = s.with_rescale = false;
    s.is_signed = 0;
    s.columns = 5;
    s.bits_allocated = s.bits_stored = is_labelmap ? 16 : 1;
    s.frames = static_cast<int>(frames.size());
    std::vector<std::string> segments, groups;
    for (const int number : {7, 300}) {
      segments.push_back(dicom_element(0x62, 4, "US", us(number)) +
                         dicom_element(0x62, 5, "LO", "segment " + std::to_string(number)));
    }
    size_t bit = 0;
    for (const MadeFrame& frame : frames) {
      groups.push_back(
          dicom_sequence(0x20, 0x9113,
                         {dicom_element(0x20, 0x32, "DS", decimal(place(frame.slice)))}) +
          dicom_sequence(0x62, 0xa, {dicom_element(0x62, 0xb, "US", us(frame.segment))}));
      for (const char c : frame.pixels) {
        const int pixel = c == 'c' ? 300 : c == '.' ? 0 : std::isdigit(c) ? c - '0' : 7;
        if (is_labelmap) s.raw_pixels += us(pixel);
        if (!is_labelmap && bit % 8 == 0) s.raw_pixels += '\0';
        if (!is_labelmap && pixel != 0) s.raw_pixels.back() |= static_cast<char>(1 << bit % 8);
        ++bit;
      }
    }
    const std::string measures = dicom_element(0x18, 0x50, "DS", "1") +
                                 dicom_element(0x18, 0x88, "DS", between_slices) +
                                 dicom_element(0x28, 0x30, "DS", "2.0\\0.5");
    const std::string axes = decimal(row) + "\\" + decimal(column);
    s.groups =
        dicom_element(0x62, 1, "CS", type) + dicom_sequence(0x62, 2, segments) +
        dicom_sequence(0x5200, 0x9229,
                       {dicom_sequence(0x20, 0x9116, {dicom_element(0x20, 0x37, "DS", axes)}) +
                        dicom_sequence(0x28, 0x9110, {measures})});
    if (has_places) s.groups += dicom_sequence(0x5200, 0x9230, groups);
    return made_dicom(s);
  }
};

/// The labels of all slices, row by row, as characters; a space between slices.
std::string text_of(const LabelVolume& labels) {
  std::string text;
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (i > 0 && i % (int64_t{labels.size().x} * labels.size().y) == 0) text += ' ';
    text += labels[i] == 0 ? '.' : labels[i] == 300 ? 'c' : static_cast<char>('0' + labels[i]);
  }
  return text;
}

LabelVolume labels_of(const MadeSegmentation& made, const ReadOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "seg.dcm", made.bytes());
  return read_labels(folder / "seg.dcm", options);
}

const std::string kEmpty(15, '.'), kFirst = "##.............", kOther = "..#............";

}  // namespace

TEST_CASE("a BINARY segmentation is a label map: frames by their places, gaps are background") {
  MadeSegmentation made;  // frames of 15 bits, so that all but the first begin inside a byte
  made.frames = {{300, 3, kFirst},
                 {7, 0, kOther},
                 {7, 1, "...........#..."},
                 {300, 0, "#.............#"},
                 {7, 3, ".............##"}};
  const std::string expected = "c.7...........c ...........7... " + kEmpty + " cc...........77";
  const LabelVolume labels = labels_of(made);
  CHECK(text_of(labels) == expected);
  const Grid& grid = labels.grid();
  CHECK(grid.size == Vec3i{5, 3, 4});
  CHECK(norm(grid.spacing_mm - Vec3d{0.5, 2, 2.5}) < 1e-6);
  CHECK(norm(grid.origin_mm - made.place(0)) < 1e-5);
  CHECK(norm(grid.direction.column(0) - made.row) < 1e-6);
  CHECK(norm(grid.direction.column(2) - cross(made.row, made.column)) < 1e-6);
  const TemporaryFolder folder;
  write_file(folder / "seg.dcm", made.bytes());
  const LabelTable table = probe_image(folder / "seg.dcm").labels;
  REQUIRE(table.size() == 2);
  CHECK((table[1].value == 300 && table[1].name == "segment 300"));

  SECTION("slices of the image that no frame is of are background") {
    Grid image = grid;
    image.origin_mm = made.place(-1);
    image.size.z = 6;
    const LabelVolume whole = labels_of(made, label_options({}, image));
    CHECK(text_of(whole) == kEmpty + " " + expected + " " + kEmpty);
    CHECK(describe_difference(whole.grid(), image).empty());
  }
  SECTION("the smallest distance is the step where the file names none") {
    made.between_slices = "";
    CHECK(text_of(labels_of(made)) == expected);
  }
  SECTION("a slice alone is as thick as the distance") {
    made.frames = {{7, 2, kOther}, {300, 2, kFirst}};
    const LabelVolume one = labels_of(made);
    CHECK(text_of(one) == "cc7............");
    CHECK(one.grid().spacing_mm.z == Approx(2.5));
    CHECK(norm(one.grid().origin_mm - made.place(2)) < 1e-5);
  }
}

TEST_CASE("a LABELMAP segmentation has the numbers as pixels, whatever its palette") {
  MadeSegmentation made;
  made.type = "LABELMAP";
  made.frames = {{0, 1, "7......c......."}, {0, 0, "777cccccc......"}};
  for (const char* photometric : {"MONOCHROME2", "PALETTE COLOR"}) {
    made.photometric = photometric;
    CHECK(text_of(labels_of(made)) == "777cccccc...... 7......c.......");
  }
}

TEST_CASE("every message of the page about segmentations is given, and no other is promised") {
  MadeSegmentation sound;
  sound.frames = {{7, 0, kFirst}, {300, 0, kOther}, {7, 1, kFirst}, {7, 2, kFirst}};
  std::set<std::string> given{"segmentations are read one by one"};
  const auto check = [&](const std::string& message,
                         const std::function<void(MadeSegmentation&)>& change) {
    MadeSegmentation changed = sound;
    change(changed);
    CHECK_THAT(error_of_bytes(changed.bytes()), Catch::Contains(message));
    given.insert(message);
  };
  const std::string aside = "lies beside the line of the evenly spaced slices";
  const std::string unknown = "which its SegmentSequence does not have";
  check("whose pixels are shares or probabilities of a segment and no labels",
        [](auto& made) { made.type = "FRACTIONAL"; });
  check("and a label map has one label for each voxel",
        [](auto& made) { made.frames[1].pixels = kFirst; });
  check("are of one segment at one position", [](auto& made) { made.frames[1].segment = 7; });
  check(aside, [](auto& made) { made.frames[2].slice = 1.3; });
  check("lie too far apart", [](auto& made) { made.frames[3].slice = 2e5; });
  check(unknown, [](auto& made) { made.frames[1].segment = 8; });
  check(unknown, [](auto& made) {
    made.type = "LABELMAP";
    made.frames = {{0, 0, "8.............."}};
  });
  check("does not say where its frames are", [](auto& made) { made.has_places = false; });
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) write_file(folder / name, sound.bytes());
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder.string()); }),
             Catch::Contains("segmentations are read one by one"));
  CHECK(given == promised_messages(lines_of_page(
                     [](const std::string& line) { return line == "## DICOM segmentations"; })));
}
