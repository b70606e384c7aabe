// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Label maps that are written as segmentations of the DICOM series that they were made from.
#include "larch/io/dicom/dicom_derived.h"
#include "larch/io/segmentation/segmentation_file.h"
#include "tests/io/dicom/dicom_check_util.h"

using namespace larch;
using namespace larch::test;
using io::items_of, io::text_of;

namespace {

constexpr io::DicomTag kFrameGroups{0x5200, 0x9230, "PerFrameFunctionalGroupsSequence"};
constexpr io::DicomTag kDerivation{0x0008, 0x9124, "DerivationImageSequence"};
constexpr io::DicomTag kSource{0x0008, 0x2112, "SourceImageSequence"};
constexpr io::DicomTag kInstance{0x0008, 0x1155, "ReferencedSOPInstanceUID"};
constexpr io::DicomTag kFrame{0x0008, 0x1160, "ReferencedFrameNumber"};
constexpr io::DicomTag kPlane{0x0020, 0x9113, "PlanePositionSequence"};
constexpr io::DicomTag kPosition{0x0020, 0x0032, "ImagePositionPatient"};
constexpr io::DicomTag kSegments{0x0062, 0x0002, "SegmentSequence"};

const SegmentationMaker kMaker{"pbt-detect", "1.2.3"};
const Vec3d kRow{0.8, 0.6, 0}, kColumn{-0.36, 0.48, 0.8};

Vec3d place(int slice) {
  return Vec3d{10, -20, 30} + cross(kRow, kColumn) * (2.5 * slice);
}

/// Slices of 5x3 pixels in an oblique world, whose files are in another order.
void write_series(const TemporaryFolder& folder, int slices) {
  for (int slice = 0; slice < slices; ++slice) {
    MadeSlice s;
    s.columns = 5;
    s.position = place(slice);
    s.row = kRow;
    s.column = kColumn;
    s.first_value = slice;
    s.reference_frame = "1.2.3.77";
    write_file(folder / ("s" + std::to_string(99 - slice)), made_dicom(s));
  }
}

/// Labels with a structure in slices 1 and 3, one across a byte in slice 3, and one that has no
/// row.
LabelVolume labels_on(const Grid& grid) {
  LabelVolume labels(grid);
  labels({0, 0, 1}) = labels({4, 2, 3}) = 7;
  labels({2, 1, 3}) = labels({3, 1, 3}) = -300;
  labels({1, 1, 2}) = 9;
  return labels;
}

const LabelTable kTable{{7, "Leber, groß\\klein", {230, 60, 50}, {"SCT", "10200004", "Liver"}},
                        {4, "absent", {1, 2, 3}},
                        {-300, "other", {0, 0, 255}}};

io::DicomFile file_of(const std::string& path) {
  return io::read_dicom_file(path);
}

}  // namespace

TEST_CASE("labels are written as a segmentation of their series, and read again on its grid") {
  const TemporaryFolder folder, out;
  write_series(folder, 5);
  const Grid grid = probe_image(folder.string()).grid;
  const LabelVolume labels = labels_on(grid);
  const std::string path = out / "x.seg.dcm";
  write_segmentation(path, labels, kTable, folder.string(), {}, kMaker);
  const LabelVolume read = read_labels(path, label_options({}, grid));
  CHECK(describe_difference(read.grid(), grid).empty());
  LabelVolume expected = labels;
  expected({1, 1, 2}) = 0;
  CHECK(std::equal(expected.begin(), expected.end(), read.begin(), read.end()));
  const LabelTable table = probe_image(path).labels;
  REQUIRE(table.size() == 3);
  CHECK((table[0].name == "Leber, groß klein" && table[2].value == -300));

  const io::DicomFile file = file_of(path);
  CHECK(text_of(file.data, {0x0008, 0x0016, ""}) == "1.2.840.10008.5.1.4.1.1.66.4");
  CHECK(text_of(file.data, {0x0010, 0x0020, ""}) == "P1");
  CHECK(text_of(file.data, {0x0020, 0x000d, ""}) == "1.2.3");
  CHECK(text_of(file.data, {0x0020, 0x0052, ""}) == "1.2.3.77");
  CHECK(text_of(file.data, {0x0018, 0x1020, ""}) == "1.2.3");
  const auto segments = items_of(file.data, kSegments);
  REQUIRE(segments.size() == 3);
  const auto code = [&](size_t segment, uint16_t sequence) {
    const io::DicomDataset& item = items_of(segments[segment].data, {0x0062, sequence, ""})[0].data;
    return text_of(item, {0x0008, 0x0102, ""}) + " " + text_of(item, {0x0008, 0x0100, ""});
  };
  CHECK((code(0, 0x0003) == "SCT 85756007" && code(0, 0x000f) == "SCT 10200004"));
  CHECK(code(2, 0x000f) == "SCT 91772007");
  // Blue: L 32.3, a 79.2, b -107.9 (D65).
  const std::vector<uint16_t> lab = io::uint16s_of(segments[2].data, {0x0062, 0x000d, ""});
  REQUIRE(lab.size() == 3);
  CHECK(std::abs(lab[0] / 65535.0 * 100 - 32.3) < 0.1);
  CHECK(std::abs(lab[1] / 65535.0 * 255 - 128 - 79.2) < 0.1);
  CHECK(std::abs(lab[2] / 65535.0 * 255 - 128 + 107.9) < 0.1);

  // Frames where the structure is alone, each in the plane of the file that it names.
  const auto frames = items_of(file.data, kFrameGroups);
  REQUIRE(frames.size() == 3);
  const int slices[] = {1, 3, 3};
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto at = io::numbers_of(items_of(frames[i].data, kPlane)[0].data, kPosition, 3, path);
    CHECK(norm(Vec3d{at[0], at[1], at[2]} - place(slices[i])) < 1e-5);
    const auto derivation = items_of(frames[i].data, kDerivation);
    const io::DicomDataset& source = items_of(derivation[0].data, kSource)[0].data;
    CHECK(text_of(source, kInstance) == "1.2.3.4." + std::to_string(slices[i] + 1));
    CHECK(text_of(source, kFrame).empty());
  }
}

TEST_CASE("the content of a segmentation decides its bytes and its UIDs") {
  const TemporaryFolder folder, out;
  write_series(folder, 5);
  LabelVolume labels = labels_on(probe_image(folder.string()).grid);
  const auto write = [&](const char* name) {
    write_segmentation(out / name, labels, kTable, folder.string(), {}, kMaker);
    return text_of(file_of(out / name).data, {0x0008, 0x0018, "SOPInstanceUID"});
  };
  const std::string first = write("a.dcm");
  CHECK(write("b.dcm") == first);
  CHECK(read_file(out / "a.dcm") == read_file(out / "b.dcm"));
  std::swap(labels({2, 1, 3}), labels({2, 2, 3}));
  CHECK(write("c.dcm") != first);

  // Without a voxel there is one frame, which is empty.
  std::ranges::fill(labels, 0);
  write("d.dcm");
  const LabelVolume none = read_labels(out / "d.dcm", label_options({}, labels.grid()));
  CHECK(std::ranges::count(none, 0) == labels.voxels());
  CHECK(none.grid().size == labels.grid().size);
}

TEST_CASE("frames of an enhanced file are named by their numbers") {
  const TemporaryFolder folder;
  MadeSlice s;
  s.frames = 4;
  s.with_geometry = false;
  std::vector<std::string> groups;
  for (const int slice : {2, 0, 3, 1}) {
    groups.push_back(dicom_sequence(
        0x20, 0x9113, {dicom_element(0x20, 0x32, "DS", decimal(Vec3d{0, 0, 3.0 * slice}))}));
  }
  s.groups =
      dicom_sequence(
          0x5200, 0x9229,
          {dicom_sequence(0x20, 0x9116, {dicom_element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0")}) +
           dicom_sequence(0x28, 0x9110, {dicom_element(0x28, 0x30, "DS", "2\\0.5")})}) +
      dicom_sequence(0x5200, 0x9230, groups);
  write_file(folder / "enhanced", made_dicom(s));
  LabelVolume labels(probe_image(folder / "enhanced").grid);
  labels({1, 1, 3}) = 1;
  write_segmentation(folder / "x.dcm", labels, {{1, "one"}}, folder / "enhanced", {}, kMaker);
  const io::DicomFile file = file_of(folder / "x.dcm");
  const auto frames = items_of(file.data, kFrameGroups);
  REQUIRE(frames.size() == 1);
  CHECK(text_of(items_of(items_of(frames[0].data, kDerivation)[0].data, kSource)[0].data, kFrame) ==
        "3");
}

TEST_CASE(
    "what is no series in space has no segmentation, and labels on another grid are none of it") {
  const TemporaryFolder folder, out;
  write_series(folder, 3);
  const std::string path = out / "x.dcm", image = out / "image.nii";
  const Grid grid = probe_image(folder.string()).grid;
  const auto error_of = [&](const std::string& source, const LabelTable& table, const Grid& of) {
    return message_of<Error>(
        [&] { write_segmentation(path, LabelVolume(of), table, source, {}, kMaker); });
  };
  write_volume(image, Volume<float>(grid));
  CHECK_THAT(error_of(image, kTable, grid),
             Catch::Contains("image.nii' is not DICOM; write .nii.gz"));
  CHECK_THAT(message_of<UsageError>([&] { require_segmentation_source(path, image, {}); }),
             Catch::Contains("is not DICOM"));
  MadeSlice flat;
  flat.with_geometry = false;
  write_file(out / "flat", made_dicom(flat));
  ReadOptions read;
  read.allow = {Allow::kMissingSpacing};
  CHECK_THAT(message_of<UsageError>([&] { require_segmentation_source(path, out / "flat", read); }),
             Catch::Contains("have no place in space"));
  CHECK_THAT(error_of(folder.string(), {}, grid), Catch::Contains("1 to 65535 structures"));
  Grid moved = grid;
  moved.origin_mm.x += 1;
  CHECK_THAT(error_of(folder.string(), kTable, moved), Catch::Contains("origin differs"));
  CHECK(!is_file(path));
}
