// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What TIFF values become, what directories may cost, and how much a compressed picture may grow.
#include <numeric>

#include "tests/io/nifti_damage.h"
#include "tests/io/tiff_maker.h"

using namespace larch;
using namespace larch::test;

namespace {

/// Not more than the file can hold, whether or not this libtiff knows the compression.
bool believed(const TemporaryFolder& folder, const TiffMaker& tiff) {
  write_file(folder / "claim.tif", tiff.bytes());
  try {
    probe_image(folder / "claim.tif");
    return true;
  } catch (const InputError& error) {
    return std::string(error.what()).find("more than the file can hold") == std::string::npos;
  }
}

/// A picture of 4x2 pixels of `bits` whose two rows are `rows`.
TiffMaker small_picture(const std::string& rows, uint64_t bits, uint64_t photometric) {
  TiffMaker picture;
  picture.store(rows, 1, 4, 2);
  picture.fields[258].value = bits;
  picture.fields[262].value = photometric;
  return picture;
}

std::vector<float> values_of(const TemporaryFolder& folder, const std::string& bytes) {
  write_file(folder / "values.tif", bytes);
  const auto volume = read_volume<float>(folder / "values.tif");
  return {volume.begin(), volume.end()};
}

/// Two pages, one behind the other.
std::string two_pages(const TiffMaker& first, const TiffMaker& second) {
  const std::string bytes = first.bytes();
  return with(bytes, bytes.size() - 4, static_cast<uint32_t>(bytes.size())) +
         second.directory(second.next);
}

/// Directories of 1900 entries, each 12 bytes behind the one before, so that the entries of one are
/// those of the next; every 1500th entry begins a sound picture. No tag is one that libtiff knows.
std::string overlapping_directories() {
  constexpr uint64_t kStart = 8192, kEntries = 1900, kPicture = 1500, kCells = 3900;
  const TiffMaker picture;
  std::string bytes = picture.bytes().substr(0, picture.directory_offset());
  bytes.resize(kStart, '\0');
  for (uint64_t cell = 0; cell < kCells; ++cell) {
    bytes += TiffMaker::number(kEntries, 2);  // a directory begins
    if (cell % kPicture < picture.fields.size()) {
      const auto& [tag, field] =
          *std::next(picture.fields.begin(), static_cast<int64_t>(cell % kPicture));
      bytes += TiffMaker::number(static_cast<uint64_t>(tag), 2) + TiffMaker::number(3, 2) +
               TiffMaker::number(1, 4) + TiffMaker::number(field.value, 2);
      continue;
    }
    // The link of the directory that ends here, and an entry of the others.
    uint64_t next = cell < kEntries ? 0 : cell - kEntries + 1;
    while ((next + kEntries) % kPicture < picture.fields.size()) ++next;
    bytes += TiffMaker::number(cell < kEntries ? 0 : kStart + 12 * next, 4) +
             TiffMaker::number(1, 4) + std::string(2, '\0');
  }
  return with(bytes, 4, static_cast<uint32_t>(kStart)) + std::string(16, '\0');
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
  CHECK_THAT(reading_error(folder, overlapping_directories(), "overlap.tif"),
             Catch::Contains("more tables than the file can hold"));
}

TEST_CASE("TIFF directories that lead nowhere or claim more than the file holds are refused") {
  const TemporaryFolder folder;
  for (const bool big : {true, false}) {
    TiffMaker sound;
    sound.big = big;
    std::vector<float> values(192);
    std::iota(values.begin(), values.end(), 0.0F);
    CHECK(values_of(folder, sound.bytes()) == values);
    TiffMaker ring = sound, away = sound, wide_table = sound, voxels_away = sound;
    ring.next = ring.directory_offset();
    away.next = 1 << 20;
    wide_table.fields[273] = {4, 4000, 1 << 20};
    voxels_away.fields[273].value = 100000;
    const std::string whole = sound.bytes();  // which ends with the link to the next page
    check_refused(folder, {{"a.tif", whole.substr(0, whole.size() - 1), "beyond the end"},
                           {"a.tif", ring.bytes(), "ring"},
                           {"a.tif", away.bytes(), "beyond the end"},
                           {"a.tif", wide_table.bytes(), "beyond the end"},
                           {"a.tif", voxels_away.bytes(), "beyond the end"}});
  }
  TiffMaker first, wide, nothing, bits, strips;
  first.next = first.directory_offset();  // of the second one too
  check_refused(folder, {{"pair.tif", two_pages({}, first), "ring"}});
  // One tile of which the picture is a corner: libtiff would allocate all of it, 68 GB.
  wide.fields[322] = {4, 1, 0x7ffffff0};
  wide.fields[323] = {4, 1, 16};
  wide.fields[324] = wide.fields[273];
  wide.fields[325] = wide.fields[279];
  nothing.fields[256].value = 0;
  bits.fields[258].value = 1000;
  check_refused(folder, {{"a.tif", wide.bytes(), "promises tiles of 2147483632x16"},
                         {"a.tif", nothing.bytes(), "damaged, truncated"},
                         {"a.tif", bits.bytes(), "more than the file can hold"}});
  strips.fields[257].value = INT32_MAX;  // tables of 2 GB, or voxels of 34 GB
  for (const uint64_t compression : {1, 5, 8, 32773}) {
    strips.fields[259].value = compression;
    check_refused(folder, {{"a.tif", strips.bytes(), "fewer strips"}});
  }
}

TEST_CASE("TIFF values of each type are the numbers that are stored") {
  const TemporaryFolder folder;
  const auto check = [&]<class T>(T first, uint64_t format) {
    std::vector<T> stored(8);
    std::iota(stored.begin(), stored.end(), first);
    const std::string rows(reinterpret_cast<const char*>(stored.data()), 8 * sizeof(T));
    for (const uint64_t photometric : {0, 1}) {  // white may be 0
      TiffMaker picture = small_picture(rows, 8 * sizeof(T), photometric);
      picture.fields[339] = {3, 1, format};
      CHECK(values_of(folder, picture.bytes()) == std::vector<float>(stored.begin(), stored.end()));
      picture.fields[274] = {3, 1, 4};  // the lowest row first
      std::vector<float> turned(stored.begin() + 4, stored.end());
      turned.insert(turned.end(), stored.begin(), stored.begin() + 4);
      CHECK(values_of(folder, picture.bytes()) == turned);
    }
  };
  check(uint8_t{250}, 1);
  check(int8_t{-4}, 2);
  check(uint16_t{65000}, 1);
  check(int16_t{-4}, 2);
  check(uint32_t{70000}, 1);
  check(int32_t{-70000}, 2);
  check(-0.5F, 3);
  TiffMaker half = small_picture(std::string(16, '\0'), 16, 1);
  half.fields[339] = {3, 1, 3};
  CHECK_THAT(reading_error(folder, half.bytes(), "half.tif"),
             Catch::Contains("its component type is not supported"));
  // Of one bit, and of 16 bits in tiles, libtiff makes grey colours of 8 bits.
  CHECK(values_of(folder, small_picture("\x50\xf0", 1, 1).bytes()) ==
        std::vector<float>{0, 255, 0, 255, 255, 255, 255, 255});
  CHECK(values_of(folder, small_picture("\x50\xf0", 1, 0).bytes()) ==
        std::vector<float>{255, 0, 255, 0, 0, 0, 0, 0});
}

TEST_CASE("TIFF colours and palettes become luminance, grey palettes their grey") {
  const TemporaryFolder folder;
  TiffMaker colours = small_picture(std::string("\x64\x32\x0a", 3) + std::string(21, '\1'), 8, 2);
  colours.fields[277].value = 3;
  colours.fields[258].count = 1;
  CHECK(values_of(folder, colours.bytes())[0] ==
        static_cast<float>(0.2126 * 100 + 0.7152 * 50 + 0.0722 * 10));
  colours.fields[262].value = 1;
  CHECK_THAT(reading_error(folder, colours.bytes(), "three.tif"),
             Catch::Contains("3 components per voxel"));
  colours.fields.erase(262);
  CHECK_THAT(reading_error(folder, colours.bytes(), "three.tif"),
             Catch::Contains("does not say what its values are"));

  const auto indexed = [&](uint64_t red, uint64_t green, uint64_t blue) {
    TiffMaker picture = small_picture(std::string("\7\0\0\0\0\0\0\0", 8), 8, 3);
    picture.fields[320] = {3, 3 * 256, TiffMaker::kData + picture.data.size()};
    for (const uint64_t value : {red, green, blue}) {
      std::string table(512, '\0');
      picture.data += table.replace(2 * 7, 2, TiffMaker::number(value, 2));
    }
    return values_of(folder, picture.bytes());
  };
  CHECK(indexed(90, 90, 90) == std::vector<float>{90, 0, 0, 0, 0, 0, 0, 0});
  CHECK(indexed(9000, 9000, 9000)[0] == 9000);
  CHECK(indexed(100, 50, 10)[0] == static_cast<float>(0.2126 * 100 + 0.7152 * 50 + 0.0722 * 10));
}

TEST_CASE("TIFF pages are a volume, thumbnails behind a picture are passed over") {
  const TemporaryFolder folder;
  const TiffMaker plain;
  const auto typed = [&](uint64_t type) {
    TiffMaker page;
    page.fields[254] = {4, 1, type};
    return page;
  };
  const auto size = [&](const std::string& bytes) {
    write_file(folder / "pages.tif", bytes);
    return read_volume<uint8_t>(folder / "pages.tif").size();
  };
  CHECK(size(two_pages(plain, plain)) == Vec3i{16, 12, 2});
  CHECK(size(two_pages(plain, typed(0))) == Vec3i{16, 12, 2});
  CHECK(size(two_pages(typed(2), typed(2))) == Vec3i{16, 12, 2});  // pages of a document
  CHECK(size(two_pages(plain, typed(1))) == Vec3i{16, 12, 1});
  CHECK(size(two_pages(plain, typed(4))) == Vec3i{16, 12, 1});
  TiffMaker upwards;
  upwards.fields[274] = {3, 1, 4};
  write_file(folder / "pages.tif", two_pages(plain, upwards));
  const auto volume = read_volume<uint8_t>(folder / "pages.tif");
  CHECK(volume({3, 0, 0}) == 3);
  CHECK(volume({3, 0, 1}) == 11 * 16 + 3);
}

TEST_CASE("damaged texts of a TIFF directory do no harm") {
  const TemporaryFolder folder;
  TiffMaker picture;
  const auto sound = values_of(folder, picture.bytes());
  picture.fields[306] = {2, 4, 0x34333231};  // a DateTime without its 20 bytes
  picture.fields[50000] = {2, 4, 0x34333231};
  picture.fields[50001] = {2, 0, 0x34333231};
  picture.fields[305] = {2, 1000, 100000};  // beyond the end of the file
  CHECK(values_of(folder, picture.bytes()) == sound);
}

TEST_CASE("a TIFF file that is written has the same bytes each time, of each type") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {700, 900, 1};
  const auto check = [&]<class T>(T) {
    const Volume<T> picture = random_volume<T>(grid, 0, 120);
    write_volume(folder / "a.tif", picture);
    write_volume(folder / "b.tif", picture);
    CHECK(read_file(folder / "a.tif") == read_file(folder / "b.tif"));
    CHECK(same_values(read_volume<T>(folder / "a.tif"), picture));
  };
  check(uint8_t{});
  check(int16_t{});
  check(float{});
}

TEST_CASE("TIFF pages that share a table of a few strips are read as before") {
  const TemporaryFolder folder;
  write_file(folder / "pages.tif", pages_of_one_table(50, 20));
  CHECK_NOTHROW(probe_image(folder / "pages.tif"));
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
