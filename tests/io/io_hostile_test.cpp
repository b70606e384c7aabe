// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Truncated, bit-flipped and lying image files.
#include <array>
#include <cmath>
#include <fstream>

#include "tests/io/nifti_damage.h"
#include "tests/io/tiff_maker.h"

using namespace larch;
using namespace larch::test;

// The TIFF reader of ITK does not free what it holds when a file is damaged; leak sanitizers (where
// built in) are told not to count that.
extern "C" const char* __lsan_default_suppressions();  // NOLINT: the name is the sanitizer's
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libITKIOTIFF\n";
}

TEST_CASE("damaged NIfTI headers are errors that name the file") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  CHECK_THAT(reading_error(folder, sound.substr(0, 100)), Catch::Contains("348"));
  CHECK_THAT(reading_error(folder, sound.substr(0, 360)), Catch::Contains("truncated"));
  CHECK_THAT(reading_error(folder, ""), Catch::Contains("348"));
  CHECK_THAT(reading_error(folder, std::string(400, 'x')), Catch::Contains("not a NIfTI file"));
  CHECK_THAT(reading_error(folder, with(sound, 344, 0)), Catch::Contains("a damaged NIfTI header"));
  CHECK_THAT(reading_error(folder, with(sound, 42, int16_t{0})), Catch::Contains("size of 0"));
  CHECK_THAT(reading_error(folder, with(sound, 42, int16_t{-3})), Catch::Contains("size of -3"));
  CHECK_THAT(reading_error(folder, with(sound, 42, int16_t{32767})),
             Catch::Contains("32767x3x2") && Catch::Contains("more than the file can hold"));
  CHECK_THAT(reading_error(folder, with(sound, 40, int16_t{9})), Catch::Contains("dimensions"));
  CHECK_THAT(reading_error(folder, with(sound, 70, int16_t{16})), Catch::Contains("bits"));
  CHECK_THAT(reading_error(folder, with(with(sound, 70, int16_t{32}), 72, int16_t{64})),
             Catch::Contains("complex"));
  CHECK_THAT(reading_error(folder, with(sound, 108, -3.0F)), Catch::Contains("offset"));
  CHECK_THAT(reading_error(folder, with(sound, 280, NAN)), Catch::Contains("sform"));
  CHECK_THAT(reading_error(folder, with(sound, 292, INFINITY)), Catch::Contains("not finite"));
  CHECK_THAT(reading_error(folder, with(sound, 112, INFINITY)), Catch::Contains("scl_slope"));
}

TEST_CASE("voxels that would begin inside a NIfTI header are refused") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  for (const float offset : {348.0F, 351.0F, 1.0F, 352.5F}) {
    INFO(offset);
    CHECK_THAT(reading_error(folder, with(sound, 108, offset)),
               Catch::Contains("the header places the voxels at"));
  }
  CHECK_THAT(reading_error(folder, with(sound, 108, 100000.0F)), Catch::Contains("truncated"));
  write_file(folder / "zero.nii", with(sound, 108, 0.0F));  // zero: where they are by default
  CHECK(same_values(read_volume<int16_t>(folder / "zero.nii"),
                    read_volume<int16_t>(folder / "sound.nii")));

  const std::string second = sound_nifti2();
  write_file(folder / "second.nii", second);
  const auto volume = read_volume<int16_t>(folder / "second.nii");
  for (int64_t i = 0; i < 24; ++i) CHECK(volume[i] == i);
  write_file(folder / "second_zero.nii", with(second, 168, int64_t{0}));
  CHECK(same_values(read_volume<int16_t>(folder / "second_zero.nii"), volume));
  for (const int64_t offset : {348, 352, 540, 543, 1}) {
    INFO(offset);
    CHECK_THAT(reading_error(folder, with(second, 168, offset)),
               Catch::Contains("inside the header itself, which takes 544 bytes"));
  }
  for (const int64_t offset : {int64_t{-1}, int64_t{1} << 62}) {
    CHECK_THAT(reading_error(folder, with(second, 168, offset)),
               Catch::Contains("impossible offset"));
  }
  CHECK_THAT(reading_error(folder, with(second, 168, int64_t{545})), Catch::Contains("hold"));
}

TEST_CASE("voxels that would begin inside an extension of a NIfTI header are refused") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  std::string extension(32, 'x');
  extension = with(with(extension, 0, int32_t{32}), 4, int32_t{6});
  std::string extended = with(sound, 348, char{1});
  extended.insert(352, extension);
  CHECK_THAT(reading_error(folder, extended), Catch::Contains("inside a header extension"));
  write_file(folder / "extended.nii", with(extended, 108, 384.0F));
  const auto volume = read_volume<int16_t>(folder / "extended.nii");
  CHECK(same_values(volume, read_volume<int16_t>(folder / "sound.nii")));
  // The mark without an extension, as some programs leave it.
  write_file(folder / "marked.nii", with(sound, 348, char{1}));
  CHECK(same_values(read_volume<int16_t>(folder / "marked.nii"), volume));
}

TEST_CASE("every extension of a NIfTI header is followed, to the voxels or the end of the .hdr") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  const auto extension = [](int32_t claimed, size_t bytes) {
    return with(with(std::string(bytes, 'x'), 0, claimed), 4, int32_t{6});
  };
  // A single file with what stands between header and voxels, and a pair with it in the .hdr.
  const auto single = [&](const std::string& between) {
    std::string bytes = with(sound, 348, char{1});
    bytes.insert(352, between);
    return with(bytes, 108, static_cast<float>(352 + between.size()));
  };
  write_file(folder / "pair.img", sound.substr(352));
  const auto pair = [&](const std::string& behind) {
    return with(with(sound.substr(0, 348), 345, 'i'), 108, 0.0F) + std::string("\1\0\0\0", 4) +
           behind;
  };
  const std::string first = extension(32, 32);
  const std::string sound_chain = first + extension(48, 48) + extension(16, 16);
  for (const std::string& chain : {first, sound_chain, first + std::string(16, '\0')}) {
    write_file(folder / "chain.nii", single(chain));
    CHECK(same_values(read_volume<int16_t>(folder / "chain.nii"),
                      read_volume<int16_t>(folder / "sound.nii")));
    write_file(folder / "pair.hdr", pair(chain));
    CHECK(same_values(read_volume<int16_t>(folder / "pair.hdr"),
                      read_volume<int16_t>(folder / "sound.nii")));
  }
  write_file(folder / "pair.hdr", pair(""));  // the mark alone
  CHECK(read_volume<int16_t>(folder / "pair.img").voxels() == 24);

  const std::string long_one = first + extension(64, 48), odd = first + extension(24, 32),
                    small = first + extension(8, 16), negative = first + extension(-16, 16);
  for (const std::string& chain : {long_one, first + first + extension(2147483632, 16)}) {
    CHECK_THAT(reading_error(folder, single(chain)), Catch::Contains("inside a header extension"));
    write_file(folder / "pair.hdr", pair(chain));
    CHECK(read_volume<int16_t>(folder / "pair.hdr").voxels() == 24);
  }
  // What ends before the voxels changes none of them.
  const std::string spaces = first + std::string(16, ' ');
  for (const std::string& chain : {odd, small, negative, spaces, extension(27, 32)}) {
    for (const std::string name : {"chain.nii", "pair.hdr"}) {
      write_file(folder / name, name == "pair.hdr" ? pair(chain) : single(chain));
      CHECK(same_values(read_volume<int16_t>(folder / name),
                        read_volume<int16_t>(folder / "sound.nii")));
    }
  }
  CHECK_THAT(reading_error(folder, single(extension(67, 32))),
             Catch::Contains("inside a header extension"));
  // So many that following them has to be cheap.
  std::string many;
  for (int i = 0; i < 100000; ++i) many += extension(16, 16);
  write_file(folder / "many.nii", single(many));
  CHECK(read_volume<int16_t>(folder / "many.nii").voxels() == 24);
}

TEST_CASE("a damaged compressed file is named, not its descriptor") {
  const TemporaryFolder folder;
  write_volume(folder / "whole.nii.gz", random_volume<int16_t>(oblique_grid({30, 30, 5}), 0, 99));
  const std::string bytes = read_file(folder / "whole.nii.gz");
  for (std::string damaged : {bytes.substr(0, bytes.size() / 2), bytes}) {
    damaged[damaged.size() - 30] ^= 0x55;
    CHECK_THAT(reading_error(folder, damaged, "damaged.nii.gz"),
               Catch::Contains("the compressed data are damaged or truncated (") &&
                   !Catch::Contains("fd:"));
  }
}

TEST_CASE("geometries that no scanner gives are refused in every format") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  for (const float far : {1e8F, -3e38F}) {
    CHECK_THAT(reading_error(folder, with(sound, 292, far)), Catch::Contains("a corner"));
  }
  CHECK_THAT(reading_error(folder, with(sound_nifti2(), 424, 1e308)), Catch::Contains("a corner"));
  for (const float coarse : {1e6F, 3e37F}) {
    CHECK_THAT(reading_error(folder, with(sound, 280, coarse)), Catch::Contains("voxel spacing"));
  }
  const std::string by_spacing = with(with(sound, 254, int16_t{0}), 252, int16_t{0});
  for (const float spacing : {3e38F, 20000.0F, 1e-8F}) {
    CHECK_THAT(reading_error(folder, with(by_spacing, 84, spacing)),
               Catch::Contains("voxel spacing") && Catch::Contains("along axis 2"));
  }
  CHECK_THAT(reading_error(folder, with(with(sound, 254, int16_t{0}), 260, 30.0F)),
             Catch::Contains("quaternion"));
  const std::string mha =
      "ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\n";
  const std::string mha_end = "ElementDataFile = LOCAL\n12345678";
  CHECK_THAT(reading_error(folder, mha + "Offset = 0 1e308 0\n" + mha_end, "far.mha"),
             Catch::Contains("a corner"));
  CHECK_THAT(reading_error(folder, mha + "ElementSpacing = 1 1 3e38\n" + mha_end, "wide.mha"),
             Catch::Contains("voxel spacing"));
  const std::string nrrd =
      "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\nspace: LPS\n";
  const std::string axes = "space directions: (1,0,0) (0,1,0) ";
  CHECK_THAT(reading_error(folder, nrrd + axes + "(0,0,1)\nspace origin: (1e308,0,0)\n\n12345678",
                           "far.nrrd"),
             Catch::Contains("a corner"));
  CHECK_THAT(reading_error(folder, nrrd + axes + "(0,0,3e38)\n\n12345678", "wide.nrrd"),
             Catch::Contains("voxel spacing"));
  // Electron microscopes see nanometres, and positions may be given in the room.
  write_file(folder / "fine.mha",
             mha + "ElementSpacing = 1e-6 1e-6 1e-6\nOffset = 9e5 0 0\n" + mha_end);
  CHECK(read_volume<uint8_t>(folder / "fine.mha").grid().spacing_mm.x == 1e-6);
}

TEST_CASE("absurd sizes are refused before memory is taken") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  std::string big = sound;
  for (const size_t offset : {42, 44, 46}) big = with(big, offset, int16_t{32000});
  CHECK_THAT(reading_error(folder, big), Catch::Contains("more than the file can hold"));
  CHECK_THAT(reading_error(folder,
                           "NRRD0004\ntype: double\ndimension: 3\nsizes: 100000 100000 "
                           "2000\nencoding: raw\nendian: little\n\nabc",
                           "big.nrrd"),
             Catch::Contains("damaged"));
  CHECK_THAT(reading_error(folder,
                           "ObjectType = Image\nNDims = 3\nDimSize = 20000 20000 2000\n"
                           "ElementType = MET_DOUBLE\nElementDataFile = LOCAL\nabc",
                           "big.mha"),
             Catch::Contains("more than the file can hold"));
  CHECK_THAT(reading_error(folder,
                           "ObjectType = Image\nNDims = 3000\nDimSize = 2 2 2\n"
                           "ElementType = MET_DOUBLE\nElementDataFile = LOCAL\nabc",
                           "dims.mha"),
             Catch::Contains("dimensions"));
  CHECK_THAT(reading_error(folder,
                           "ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\n"
                           "ElementType = MET_UCHAR\nElementDataFile = gone.raw\n",
                           "gone.mhd"),
             Catch::Contains("gone.raw") && Catch::Contains("missing"));
  CHECK_THAT(reading_error(folder,
                           "ObjectType = Image\nNDims = 3\nDimSize = 2 2 2\n"
                           "ElementType = MET_UCHAR\nElementDataFile = self.mhd\n",
                           "self.mhd"),
             Catch::Contains("names itself"));
}

TEST_CASE("a size whose bytes no number counts is refused by the header alone") {
  const TemporaryFolder folder;
  std::string huge = with(sound_nifti2(), 4, std::array<char, 4>{'n', 'i', '2', '\0'});
  for (const size_t offset : {24, 32, 40}) huge = with(huge, offset, int64_t{INT32_MAX});
  for (const size_t offset : {400, 440, 480}) huge = with(huge, offset, 1e-3);
  write_file(folder / "a.hdr", huge.substr(0, 540));
  write_file(folder / "a.img", "12345678");
  CHECK_THAT(message_of<InputError>([&] { probe_image(folder / "a.hdr"); }),
             Catch::Contains("a.hdr") && Catch::Contains("more than the file can hold"));
}

TEST_CASE("a header that claims more than its file holds is refused before voxels are read") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name) {
    INFO(name);
    CHECK_THAT(message_of<InputError>([&] { probe_image(folder / name); }), Catch::Contains(name));
  };
  const std::string pair = with(with(sound_nifti(folder), 345, 'i'), 108, 0.0F).substr(0, 348);
  const std::string mhd =
      "NDims = 3\nDimSize = 4 3 2\nElementType = MET_SHORT\nElementDataFile = a.raw\n";
  const std::string nhdr =
      "NRRD0004\ntype: short\ndimension: 3\nsizes: 4 3 2\nendian: little\nencoding: raw\n";
  write_file(folder / "a.hdr", pair);
  write_file(folder / "a.mhd", mhd);
  write_file(folder / "skip.mhd", "HeaderSize = 2\n" + mhd);
  write_file(folder / "a.nhdr", nhdr + "data file: a.raw\n");
  write_file(folder / "skip.nhdr", nhdr + "byte skip: 2\ndata file: a.raw\n");
  write_file(folder / "lines.nhdr", nhdr + "line skip: 1\ndata file: a.raw\n");
  write_file(folder / "parts.nhdr", nhdr + "data file: LIST\na.raw\nb.raw\n");
  write_file(folder / "b.raw", std::string(80, '\0'));
  for (const size_t bytes : {48U, 47U}) {
    write_file(folder / "a.img", std::string(bytes, '\0'));
    write_file(folder / "a.raw", "\n" + std::string(bytes - 1, '\0'));
    for (const std::string name : {"a.hdr", "a.mhd", "a.nhdr"}) {
      INFO(name);
      if (bytes == 48) CHECK(probe_image(folder / name).bytes == 48);
      if (bytes == 47) refused(name);
    }
    for (const std::string name : {"skip.mhd", "skip.nhdr", "lines.nhdr"}) refused(name);
  }
  CHECK(probe_image(folder / "parts.nhdr").bytes == 48);
  write_file(folder / "a.raw", std::string(23, '\0'));  // though the other one holds what it lacks
  refused("parts.nhdr");

  // Compressed, at most 1032 times the size.
  for (const std::string ending : {".nii.gz", ".nrrd", ".mha", ".png"}) {
    const Vec3i size{2000, 2000, 1};
    Grid grid;
    grid.size = size;
    const std::string name = "packed" + ending;
    write_volume(folder / name, Volume<uint8_t>(grid));
    CHECK(probe_image(folder / name).bytes == 4000000);
    const std::string bytes = read_file(folder / name);
    write_file(folder / name, bytes.substr(0, 3000));  // of which 3 MB can come
    refused(name);
  }
  ReadOptions one;
  one.frame = 1;
  write_file(folder / "frames.nii",
             with(with(sound_nifti(folder), 40, int16_t{4}), 48, int16_t{2}));
  CHECK_THROWS_AS(probe_image(folder / "frames.nii", one), InputError);
}

TEST_CASE("truncated and bit-flipped compressed files are errors, never short data") {
  const TemporaryFolder folder;
  Grid grid = oblique_grid({20, 20, 10});
  const auto volume = random_volume<int16_t>(grid, -1000, 1000);
  for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
    write_volume(folder / ("t" + extension), volume);
    const std::string bytes = read_file(folder / ("t" + extension));
    for (const double part : {0.0, 0.01, 0.3, 0.7, 0.99}) {
      const auto length = static_cast<size_t>(part * static_cast<double>(bytes.size()));
      INFO(extension << " cut to " << length);
      reading_error(folder, bytes.substr(0, length), "cut" + extension);
    }
    std::string flipped = bytes;
    flipped[bytes.size() * 2 / 3] ^= 0x10;
    INFO(extension << " flipped");
    reading_error(folder, flipped, "flip" + extension);
  }
}

TEST_CASE("no flipped byte of a header crashes a reader") {
  const TemporaryFolder folder;
  const auto volume = random_volume<int16_t>(oblique_grid({4, 3, 2}), -100, 100);
  for (const std::string extension : {".nii", ".nrrd", ".mha"}) {
    write_volume(folder / ("f" + extension), volume);
    const std::string bytes = read_file(folder / ("f" + extension));
    const std::string path = folder / ("flipped" + extension);
    int errors = 0;
    for (size_t at = 0; at < std::min<size_t>(bytes.size(), 560); ++at) {
      for (const int mask : {0x01, 0x80}) {
        std::string flipped = bytes;
        flipped[at] = static_cast<char>(flipped[at] ^ mask);
        write_file(path, flipped);
        try {
          const auto back = read_volume<float>(path);
          CHECK(back.voxels() == back.grid().voxels());
        } catch (const Error& error) {
          ++errors;
          CHECK((error.code() == ExitCode::kInput || error.code() == ExitCode::kMemory));
        }
      }
    }
    INFO(extension);
    CHECK(errors > 20);
  }
}

TEST_CASE("truncated and bit-flipped pictures are errors or pictures, never crashes") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {31, 17, 1};
  for (const std::string extension : {".png", ".tif"}) {
    write_volume(folder / ("p" + extension), random_volume<uint8_t>(grid, 0, 255));
    const std::string bytes = read_file(folder / ("p" + extension));
    for (const double part : {0.0, 0.05, 0.5, 0.95}) {
      const auto length = static_cast<size_t>(part * static_cast<double>(bytes.size()));
      INFO(extension << " cut to " << length);
      reading_error(folder, bytes.substr(0, length), "cut" + extension);
    }
    for (size_t at = 0; at < bytes.size(); at += 3) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
      write_file(folder / ("flip" + extension), flipped);
      try {
        read_volume<float>(folder / ("flip" + extension));
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("TIFF directories in a ring, beyond the file or of another file's size are refused") {
  const TemporaryFolder folder;
  const auto error = [&](const TiffMaker& tiff) {
    return reading_error(folder, tiff.bytes(), "damaged.tif");
  };
  TiffMaker sound;
  for (const bool big : {false, true}) {
    sound.big = big;
    write_file(folder / "sound.tif", sound.bytes());
    const auto picture = read_volume<uint8_t>(folder / "sound.tif");
    CHECK(picture.size() == Vec3i{16, 12, 1});
    for (int64_t i = 0; i < picture.voxels(); ++i) CHECK(picture[i] == i);

    TiffMaker ring = sound;
    ring.next = ring.directory_offset();
    CHECK_THAT(error(ring), Catch::Contains("ring"));
    TiffMaker away = sound;
    away.next = 1 << 20;
    CHECK_THAT(error(away), Catch::Contains("beyond the end"));
    TiffMaker wide_table = sound;
    wide_table.fields[273] = {4, 4000, 8};
    CHECK_THAT(error(wide_table), Catch::Contains("beyond the end"));
    TiffMaker voxels_away = sound;
    voxels_away.fields[273].value = 100000;
    CHECK_THAT(error(voxels_away), Catch::Contains("beyond the end"));
  }
  sound.big = false;
  // Two directories that name each other; the second is the first with another link.
  const std::string bytes = sound.bytes();
  const auto first = static_cast<uint32_t>(sound.directory_offset());
  const auto second = static_cast<uint32_t>(bytes.size());
  const std::string directory = bytes.substr(first);
  std::string pair =
      with(bytes, bytes.size() - 4, second) + with(directory, directory.size() - 4, first);
  CHECK_THAT(reading_error(folder, pair, "pair.tif"), Catch::Contains("ring"));
  // Two pages make a volume, unless they are of different sizes.
  pair = with(pair, pair.size() - 4, uint32_t{0});
  write_file(folder / "pages.tif", pair);
  CHECK(read_volume<uint8_t>(folder / "pages.tif").size() == Vec3i{16, 12, 2});
  CHECK_THAT(reading_error(folder, with(pair, second + 2 + 8, uint32_t{8}), "pair.tif"),
             Catch::Contains("different sizes"));
}

TEST_CASE("a TIFF file that claims more than it holds is refused by its header") {
  const TemporaryFolder folder;
  // Each would make libtiff allocate tables of 2 GB before anything is read.
  for (const uint64_t compression : {1, 5, 8, 32773}) {
    TiffMaker tall;
    tall.fields[259].value = compression;
    tall.fields[257].value = INT32_MAX;
    CHECK_THAT(reading_error(folder, tall.bytes(), "tall.tif"), Catch::Contains("fewer strips"));
    tall.fields[278] = {4, 1, INT32_MAX};  // one strip
    CHECK_THAT(reading_error(folder, tall.bytes(), "tall.tif"),
               Catch::Contains("more than the file can hold"));
  }
  // One tile of which the picture is a corner: libtiff would allocate all of it, 68 GB.
  TiffMaker wide;
  wide.fields[322] = {4, 1, 0x7ffffff0};
  wide.fields[323] = {4, 1, 16};
  wide.fields[324] = wide.fields[273];
  wide.fields[325] = wide.fields[279];
  CHECK_THAT(reading_error(folder, wide.bytes(), "wide.tif"),
             Catch::Contains("promises tiles of 2147483632x16"));
  TiffMaker nothing;
  nothing.fields[256].value = 0;
  CHECK_THAT(reading_error(folder, nothing.bytes(), "none.tif"), Catch::Contains("size of 0x12"));
  TiffMaker bits;
  bits.fields[258].value = 1000;
  CHECK_THAT(reading_error(folder, bits.bytes(), "bits.tif"), Catch::Contains("1000 bits"));
}

TEST_CASE("texts of a TIFF directory that ITK would read beyond their end are refused") {
  const TemporaryFolder folder;
  TiffMaker date;
  date.fields[306] = {2, 4, 0x00333231};
  for (const uint64_t count : {1, 4}) {
    date.fields[306].count = count;
    CHECK_THAT(reading_error(folder, date.bytes(), "date.tif"),
               Catch::Contains("DateTime") && Catch::Contains("tiffset -u 306") &&
                   !Catch::Contains("damaged"));
  }
  TiffMaker open;
  open.fields[50000] = {2, 4, 0x34333231};
  CHECK_THAT(reading_error(folder, open.bytes(), "open.tif"),
             Catch::Contains("tiffset -u 50000") && !Catch::Contains("damaged"));
  open.fields[50000].count = 0;
  CHECK_THAT(reading_error(folder, open.bytes(), "open.tif"), Catch::Contains("tiffset -u 50000"));
  open.fields[50000].count = 4;
  open.fields[50000].value = 0x00333231;
  write_file(folder / "ended.tif", open.bytes());
  CHECK(read_volume<uint8_t>(folder / "ended.tif").voxels() == 192);
}

TEST_CASE("axes of a MetaImage are unit vectors, but for rounding") {
  const TemporaryFolder folder;
  const auto with_axis = [](const std::string& axis) {
    return "ObjectType = Image\nNDims = 3\nDimSize = 1 1 2\nTransformMatrix = " + axis +
           " 0 -0.707 0.707 0 0 0 1\nElementType = MET_UCHAR\nElementDataFile = LOCAL\nab";
  };
  CHECK_THAT(reading_error(folder, with_axis("5 5"), "long.mha"),
             Catch::Contains("axis 1") && Catch::Contains("unit vector"));
  write_file(folder / "rounded.mha", with_axis("0.707 0.707"));
  const Grid grid = read_volume<uint8_t>(folder / "rounded.mha").grid();
  CHECK(norm(grid.direction.column(0)) == Approx(1).epsilon(1e-12));
  CHECK(grid.direction.m[0][0] == Approx(std::sqrt(0.5)));
}
