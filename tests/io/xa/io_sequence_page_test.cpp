// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The table of sequences of apps/reading-images.md: every message that it promises is given, for a
// file made here, and is in the page.
#include "tests/io/xa/xa_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

struct Row {
  std::string message, name, bytes;
};

/// Two pictures of two pixels in bytes that stand for themselves times `slope`.
std::string scaled_nifti(float slope) {
  const TemporaryFolder folder;
  SequenceHeader header;
  header.grid.size = {2, 1, 1};
  header.frames = 2;
  SequenceWriter writer(folder / "a.nii", header);
  writer.write(std::span<const uint8_t>(std::vector<uint8_t>{1, 2, 3, 4}));
  writer.finish();
  std::string bytes = read_file(folder / "a.nii");
  constexpr size_t kSlopeAt = 112;
  return bytes.replace(kSlopeAt, 4, fl({slope}));
}

/// Four slices as they are written from a volume.
std::string volume_nifti(const Vec3d& spacing_mm) {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {3, 2, 4};
  grid.spacing_mm = spacing_mm;
  write_volume(folder / "a.nii", Volume<uint8_t>(grid));
  return read_file(folder / "a.nii");
}

std::vector<Row> refused_rows() {
  MadeSlice colours = made_cine();
  colours.photometric = "RGB";
  colours.samples = 3;
  colours.bits_allocated = colours.bits_stored = 8;
  colours.raw_pixels = std::string(180, 'x');
  MadeSlice wide = made_cine();
  wide.bits_allocated = 32;
  wide.raw_pixels = std::string(240, '\0');
  std::string places;
  for (int i = 0; i < 5; ++i) {
    const std::string position = dicom_element(0x20, 0x32, "DS", "0\\0\\" + std::to_string(i));
    const std::string item = dicom_sequence(0x20, 0x9113, {position});
    places +=
        dicom_number(0xe000fffe, 4) + dicom_number(static_cast<uint32_t>(item.size()), 4) + item;
  }
  const std::string axes = dicom_element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0");
  MadeSlice volume =
      made_cine(dicom_sequence(0x5200, 0x9229, {dicom_sequence(0x20, 0x9116, {axes})}) +
                dicom_element(0x5200, 0x9230, "SQ", places));
  volume.sop_class = "1.2.840.10008.5.1.4.1.1.4.1";  // of magnetic resonance; angiograms are none
  const std::string whole = made_dicom(made_cine());
  return {{"pictures are needed here; write the slices of one place", "a.mha",
           mha("MET_UCHAR", "2 1 2 2", "12345678")},
          {"so that they are a volume and no sequence", "a.dcm", made_dicom(volume)},
          {"so that they are a volume and no sequence", "a.nii", volume_nifti({0.7, 0.7, 1})},
          {"components per pixel, and one is needed here", "a.mha",
           mha("MET_UCHAR", "2 1 1", "1234", "ElementNumberOfChannels = 2\n")},
          {"and grey ones are needed here", "a.dcm", made_dicom(colours)},
          {"bits, and 8 or 16 are needed here", "a.dcm", made_dicom(wide)},
          {"not whole numbers, and whole numbers of 16 bits are needed here", "a.mha",
           mha("MET_FLOAT", "1 1 1", fl({0.5F}))},
          {"beyond 16 bits, and whole numbers of 16 bits are needed here", "a.mha",
           mha("MET_FLOAT", "1 1 1", fl({65536}))},
          {"leads to values that are not finite", "a.nii", scaled_nifti(3e38F)},
          {"the pixel data are truncated", "a.dcm", whole.substr(0, whole.size() - 2)}};
}

}  // namespace

TEST_CASE("every message about sequences is given, and no other is promised", "[io]") {
  const TemporaryFolder folder;
  std::set<std::string> given;
  for (const Row& row : refused_rows()) {
    INFO(row.message);
    write_file(folder / row.name, row.bytes);
    CHECK_THAT(message_of<InputError>([&] { SequenceReader reader(folder / row.name); }),
               Catch::Contains(row.message));
    given.insert(row.message);
  }
  const std::string in_folder = "a folder; give the file that holds the sequence";
  CHECK_THAT(
      message_of<InputError>([&] { SequenceReader reader(folder.path.string()); }),
      Catch::Contains(in_folder) && Catch::Contains("one frame of a run, export the run as"));
  given.insert(in_folder);
  std::string shutter = made_dicom(made_cine());
  shutter.insert(shutter.find(dicom_element(0x20, 0x0d, "UI", "1.2.3")),
                 dicom_element(0x18, 0x1600, "CS", "RECTANGULAR") +
                     dicom_element(0x18, 0x1700, "CS", "CIRCULAR"));
  write_file(folder / "shutter.dcm", shutter);
  const Angiogram shut = SequenceReader(folder / "shutter.dcm").about();
  const std::string shape = "which its shape needs";
  REQUIRE(shut.warnings.size() == 2);
  CHECK_THAT(shut.warnings[0], Catch::Contains(shape) && Catch::Contains("shutter.dcm"));
  CHECK_FALSE(shut.shutter.is_given());
  given.insert(shape);
  const std::string padded = "is within the range of its pixels, which count all the same";
  for (const int value : {0, 7, 4095}) {
    const MadeSlice made = made_cine(dicom_element(0x28, 0x120, "US", us({value})));
    const auto warnings = SequenceReader(save(folder, made, "padded.dcm")).about().warnings;
    REQUIRE(warnings.size() == (value == 7 ? 1 : 0));
    if (value == 7) CHECK_THAT(warnings[0], Catch::Contains("7, " + padded));
  }
  given.insert(padded);
  const std::string masks = "of its MaskSubtractionSequence contradicts the file";
  // Slices without any place are frames.
  write_file(folder / "array.nii", volume_nifti({1, 1, 1}));
  CHECK(SequenceReader(folder / "array.nii").about().frames == 4);
  SequenceReader reader(
      save(folder, made_cine(mask_sequence({dicom_element(0x28, 0x6101, "CS", "AVG_SUB")}))));
  CHECK_THAT(reader.about().mask_problem, Catch::Contains(masks));
  given.insert(masks);
  CHECK(given == promised_messages(lines_of_page(
                     [](const std::string& line) { return line == "## Sequences"; })));
}
