// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What the check of TIFF directories costs, and how much a compressed picture may grow.
#include "larch/io/formats/tiff_check.h"
#include "tests/io/nifti_damage.h"
#include "tests/io/tiff_maker.h"

using namespace larch;
using namespace larch::test;

namespace {

/// Accepted by the check of the header, whether or not this libtiff knows the compression.
bool believed(const TemporaryFolder& folder, const TiffMaker& tiff) {
  write_file(folder / "claim.tif", tiff.bytes());
  try {
    io::check_tiff(folder / "claim.tif");
    return true;
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::Contains("more than the file can hold"));
    return false;
  }
}

}  // namespace

TEST_CASE("TIFF pages that share their tables of strips are refused, whatever their number") {
  const TemporaryFolder folder;
  for (const uint64_t pages : {500, 40000}) {
    const uint64_t strips = pages == 500 ? 1500 : 100000;
    INFO(pages << " pages of " << strips << " strips");
    CHECK_THAT(reading_error(folder, pages_of_one_table(pages, strips), "shared.tif"),
               Catch::Contains("more tables than the file can hold"));
  }
}

TEST_CASE("TIFF pages that share a table of a few strips are read as before") {
  const TemporaryFolder folder;
  write_file(folder / "pages.tif", pages_of_one_table(50, 20));
  CHECK_NOTHROW(io::check_tiff(folder / "pages.tif"));
  // Pages of their own tables, as programs write them: as many as there are.
  std::string bytes;
  TiffMaker page;
  page.data.clear();
  page.fields[257].value = page.fields[279].value = 12;
  for (uint64_t i = 0, pages = 2000; i < pages; ++i) {
    const uint64_t start = TiffMaker::kData + i * (192 + 8 + 9 * 12 + 6);
    const std::string strip(192, static_cast<char>(i));
    page.fields[278].value = 6;
    page.fields[273] = {4, 2, start + 192};
    page.fields[279] = {3, 2, 96 | 96 << 16};
    bytes += strip + TiffMaker::number(start, 4) + TiffMaker::number(start + 96, 4) +
             page.directory(i + 1 < pages ? start + 2 * (192 + 8) + 9 * 12 + 6 : 0);
  }
  bytes.insert(0, page.bytes().substr(0, TiffMaker::kData));
  write_file(folder / "many.tif", with(bytes, 4, static_cast<uint32_t>(TiffMaker::kData + 200)));
  const auto volume = read_volume<uint8_t>(folder / "many.tif");
  CHECK(volume.size() == Vec3i{16, 12, 2000});
  CHECK(volume({3, 11, 1999}) == 1999 % 256);
}

TEST_CASE("an only strip without compression may claim more bytes than the file has") {
  const TemporaryFolder folder;
  TiffMaker picture;
  write_file(folder / "sound.tif", picture.bytes());
  picture.fields[279].value = 1000;
  write_file(folder / "more.tif", picture.bytes());
  CHECK(same_values(read_volume<uint8_t>(folder / "more.tif"),
                    read_volume<uint8_t>(folder / "sound.tif")));
  picture.fields[257].value = picture.fields[278].value = 120;
  CHECK_THAT(reading_error(folder, picture.bytes(), "short.tif"),
             Catch::Contains("more than the file can hold"));
  picture.fields[273].value = 5000;
  CHECK_THAT(reading_error(folder, picture.bytes(), "away.tif"),
             Catch::Contains("beyond the end of the file"));
}

TEST_CASE("a blank TIFF picture is believed in every compression") {
  const TemporaryFolder folder;
  // CCITT group 4: one bit says that a row is as the one above, so that it grows as much as it is
  // wide; fax group 3 by two dimensions adds a mark of 13 bits to it.
  TiffMaker fax;
  fax.store(std::string(192, '\xff') + std::string("\x00\x10\x01", 3), 4, 16384, 1536);
  fax.fields[258].value = 1;
  fax.fields[262].value = 0;
  write_file(folder / "fax.tif", fax.bytes());
  CHECK(read_volume<uint8_t>(folder / "fax.tif")({16383, 1535, 0}) == 255);
  fax.store(std::string(192, '\xff'), 4, 65536, 1536);
  CHECK(believed(folder, fax));
  fax.store(std::string(196, '\xff'), 3, 65536, 112);
  CHECK(believed(folder, fax));
  fax.store(std::string(192, '\xff'), 2, 2560 * 64, 2);  // 12 bits for 2560 white pixels
  CHECK(believed(folder, fax));
  // PackBits: two bytes become 128.
  std::string packed;
  for (int i = 0; i < 96; ++i) packed += std::string("\x81\x07", 2);
  TiffMaker grey;
  grey.store(packed, 32773, 128, 96);
  write_file(folder / "packed.tif", grey.bytes());
  CHECK(read_volume<uint8_t>(folder / "packed.tif")({127, 95, 0}) == 7);
  grey.store(std::string(192, '\0'), 50000, 32768, 192);  // Zstandard: 4 bytes for 128 KiB
  CHECK(believed(folder, grey));
  grey.store(std::string(192, '\0'), 34925, 7000, 192);  // LZMA, as xz has it for zeros
  CHECK(believed(folder, grey));
  for (const uint64_t constant : {34661, 34712, 34887, 50001, 50002}) {  // WebP and the like
    grey.store(std::string(192, '\0'), constant, 16383, 16383);
    CHECK(believed(folder, grey));
  }
  // Deflate and LZW, as other programs write them, through the writer and Debian's Python.
  Grid grid;
  grid.size = {4000, 4000, 1};
  const Volume<uint8_t> blank(grid, 9);
  write_volume(folder / "blank.tif", blank);
  CHECK(file_bytes(folder / "blank.tif") < 4000 * 4000 / 500);
  CHECK(same_values(read_volume<uint8_t>(folder / "blank.tif"), blank));
}

TEST_CASE("TIFF pages that share their voxels hold no more than the file") {
  const TemporaryFolder folder;
  TiffMaker page;
  std::string packed;
  for (int i = 0; i < 5000; ++i) packed += std::string("\x81\x07", 2);
  page.store(packed, 32773, 1280, 500);  // 640 kB
  std::string bytes = page.bytes().substr(0, page.directory_offset());
  constexpr uint64_t kPages = 1000;
  for (uint64_t i = 1; i <= kPages; ++i) {
    bytes += page.directory(i < kPages ? bytes.size() + 2 + 9 * 12 + 4 : 0);
  }
  CHECK_THAT(reading_error(folder, bytes, "same.tif"),
             Catch::Contains("more than the file can hold"));
  CHECK_THAT(message_of<InputError>([&] { probe_image(folder / "same.tif"); }),
             Catch::Contains("more than the file can hold"));
  CHECK(io::check_tiff(folder / "same.tif") <= static_cast<int64_t>(bytes.size()) * 64 * 32);
}

TEST_CASE("subsampled colours of a TIFF picture take less than three bytes per pixel") {
  const TemporaryFolder folder;
  // 2x2 pixels share their two colour values: 6 bytes instead of 12.
  TiffMaker colours;
  colours.store(std::string(16 * 12 / 4 * 6, '\x80'), 1, 16, 12);
  colours.fields[262].value = 6;
  colours.fields[277].value = 3;
  colours.fields[258] = {3, 1, 8};
  colours.fields[284] = {3, 1, 1};
  colours.fields[530] = {3, 2, 2 | 2 << 16};
  CHECK(believed(folder, colours));
  CHECK(read_volume<uint8_t>(folder / "claim.tif")({15, 11, 0}) == 128);
  colours.fields[530] = {3, 2, 4 | 4 << 16};
  colours.store(std::string(16 * 12 / 16 * 18, '\x80'), 1, 16, 12);
  CHECK(believed(folder, colours));
  colours.store(std::string(16 * 12 / 16 * 18, '\x80'), 1, 160, 12);
  CHECK_FALSE(believed(folder, colours));
}

TEST_CASE("a TIFF picture that no compression could hold is refused") {
  const TemporaryFolder folder;
  TiffMaker grey;
  for (const uint64_t compression : {1, 2, 3, 4, 5, 7, 8, 32771, 32773, 32946, 34925, 50000}) {
    INFO("compression " << compression);
    grey.store(std::string(192, '\xff'), compression, INT32_MAX, 65536);
    CHECK_FALSE(believed(folder, grey));
  }
  grey.store(std::string(192, '\xff'), 50001, INT32_MAX, INT32_MAX);
  CHECK_FALSE(believed(folder, grey));
}
