// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Truncated, bit-flipped and lying image files.
#include <cmath>

#include "tests/io/jpeg_maker.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// The bytes of a small image as Larch writes it; of a picture in the formats that have no others.
std::string written(const TemporaryFolder& folder, const std::string& extension, Vec3i size) {
  const std::string path = folder / ("whole" + extension);
  if (extension == ".png" || extension == ".tif") {
    Grid grid;
    grid.size = {31, 17, 1};
    write_volume(path, random_volume<uint8_t>(grid, 0, 255));
  } else {
    write_volume(path, random_volume<int16_t>(oblique_grid(size), -1000, 1000));
  }
  return read_file(path);
}

}  // namespace

TEST_CASE("damaged NIfTI headers are errors that name the file") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  check_refused(folder,
                {{"a.nii", sound.substr(0, 100), "348"},
                 {"a.nii", "", "is empty (0 bytes)"},
                 {"a.nii", sound.substr(0, 360), "truncated"},
                 {"a.nii", std::string(400, 'x'), "not a NIfTI file"},
                 {"a.nii", with(sound, 42, int16_t{0}), "size of 0"},
                 {"a.nii", with(sound, 42, int16_t{-3}), "size of -3"},
                 {"a.nii", with(sound, 42, int16_t{32767}), "32767x3x2 voxels of int16, more"},
                 {"a.nii", with(sound, 40, int16_t{9}), "dimensions"},
                 {"a.nii", with(sound, 70, int16_t{16}), "bits"},
                 {"a.nii", with(with(sound, 70, int16_t{32}), 72, int16_t{64}), "complex"},
                 {"a.nii", with(sound, 280, NAN), "sform"}});
}

TEST_CASE("voxels that would begin inside a NIfTI header are refused") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder), second = sound_nifti2();
  write_file(folder / "zero.nii", with(sound, 108, 0.0F));  // zero: where they are by default
  CHECK(same_values(read_volume<int16_t>(folder / "zero.nii"),
                    read_volume<int16_t>(folder / "sound.nii")));
  for (const std::string& bytes : {second, with(second, 168, int64_t{0})}) {
    write_file(folder / "second.nii", bytes);
    const auto volume = read_volume<int16_t>(folder / "second.nii");
    for (int64_t i = 0; i < 24; ++i) CHECK(volume[i] == i);
  }
  const std::string inside = "inside the header itself, which takes ";
  for (const float offset : {348.0F, 351.0F, 1.0F, 352.5F, -3.0F, 1e5F}) {
    const bool whole = offset == std::floor(offset) && offset >= 0;
    check_refused(folder, {{"a.nii", with(sound, 108, offset),
                            !whole         ? "impossible offset"
                            : offset > 352 ? "truncated"
                                           : inside + "352 bytes"}});
  }
  for (const int64_t offset : {int64_t{348}, int64_t{352}, int64_t{543}, int64_t{1}, int64_t{-1},
                               int64_t{1} << 62, int64_t{545}}) {
    check_refused(folder, {{"a.nii", with(second, 168, offset),
                            offset == 545                ? "hold"
                            : offset > 0 && offset < 544 ? inside + "544 bytes"
                                                         : "impossible offset"}});
  }
}

TEST_CASE("every extension of a NIfTI header is followed, to the voxels or the end of the .hdr") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  const auto extension = [](int32_t claimed, size_t bytes) {
    return with(with(std::string(bytes, 'x'), 0, claimed), 4, int32_t{6});
  };
  // A single file with what stands between header and voxels, and a pair with it in the .hdr.
  const auto single = [&](const std::string& between, bool placed = true) {
    std::string bytes = with(sound, 348, char{1});
    bytes.insert(352, between);
    return placed ? with(bytes, 108, static_cast<float>(352 + between.size())) : bytes;
  };
  write_file(folder / "pair.img", sound.substr(352));
  const auto pair = [&](const std::string& behind) {
    return pair_header(sound) + std::string("\1\0\0\0", 4) + behind;
  };
  const auto check_read = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    CHECK(same_values(read_volume<int16_t>(folder / name),
                      read_volume<int16_t>(folder / "sound.nii")));
  };
  const std::string first = extension(32, 32);
  // The mark alone, as some programs leave it; sound ones; and what changes no voxel, since it
  // ends before them.
  for (const std::string& chain :
       {std::string(), first, first + extension(48, 48) + extension(16, 16),
        first + std::string(16, '\0'), first + extension(24, 32), first + extension(8, 16),
        first + extension(-16, 16), first + std::string(16, ' '), extension(27, 32)}) {
    check_read("chain.nii", single(chain));
    check_read("pair.hdr", pair(chain));
  }
  for (const std::string& chain :
       {first + extension(64, 48), first + first + extension(2147483632, 16)}) {
    CHECK_THAT(reading_error(folder, single(chain)), Catch::Contains("inside a header extension"));
    check_read("pair.hdr", pair(chain));
  }
  for (const std::string& bytes : {single(extension(67, 32)), single(first, /*placed=*/false)}) {
    CHECK_THAT(reading_error(folder, bytes), Catch::Contains("inside a header extension"));
  }
  // So many that following them has to be cheap.
  std::string many;
  for (int i = 0; i < 100000; ++i) many += extension(16, 16);
  check_read("many.nii", single(many));
}

TEST_CASE("geometries that no scanner gives are refused in every format") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  const std::string by_spacing = with(with(sound, 254, int16_t{0}), 252, int16_t{0});
  const auto mha = [&](const std::string& lines) { return mha_of("2 2 2", lines, "12345678"); };
  const auto nrrd = [&](const std::string& last_axis) {
    const std::string axes = "space: LPS\nspace directions: (1,0,0) (0,1,0) ";
    return nrrd_of("2 2 2", axes + last_axis + "\n", "12345678");
  };
  check_refused(folder, {{"a.nii", with(sound, 292, 1e8F), "a corner"},
                         {"a.nii", with(sound, 292, -3e38F), "a corner"},
                         {"a.nii", with(sound_nifti2(), 424, 1e308), "a corner"},
                         {"a.nii", with(sound, 280, 1e6F), "voxel spacing"},
                         {"a.nii", with(sound, 280, 3e37F), "voxel spacing"},
                         {"a.nii", with(by_spacing, 84, 3e38F), "along axis 2"},
                         {"a.nii", with(by_spacing, 84, 20000.0F), "along axis 2"},
                         {"a.nii", with(by_spacing, 84, 1e-8F), "along axis 2"},
                         {"a.mha", mha("Offset = 0 1e308 0\n"), "a corner"},
                         {"a.mha", mha("ElementSpacing = 1 1 3e38\n"), "voxel spacing"},
                         {"a.nrrd", nrrd("(0,0,1)\nspace origin: (1e308,0,0)"), "a corner"},
                         {"a.nrrd", nrrd("(0,0,3e38)"), "voxel spacing"}});
  // Electron microscopes see nanometres, and positions may be given in the room.
  write_file(folder / "fine.mha", mha("ElementSpacing = 1e-6 1e-6 1e-6\nOffset = 9e5 0 0\n"));
  CHECK(read_volume<uint8_t>(folder / "fine.mha").grid().spacing_mm.x == 1e-6);
}

TEST_CASE("absurd sizes are refused before memory is taken") {
  const TemporaryFolder folder;
  std::string big = sound_nifti(folder);
  for (const size_t offset : {42, 44, 46}) big = with(big, offset, int16_t{32000});
  const std::string lines =
      "DimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = LOCAL\nabc";
  check_refused(
      folder, {{"a.nii", big, "more than the file can hold"},
               {"a.nrrd", nrrd_of("100000 100000 2000", "", "abc"), "more than the file can hold"},
               {"a.mha", mha_of("20000 20000 2000", "", "abc"), "more than the file can hold"},
               {"a.mha", "NDims = 3000\n" + lines, "dimensions"},
               {"gone.mhd", mha_of("2 2 2", "", "", "gone.raw"), "gone.raw', which is missing"},
               {"self.mhd", mha_of("2 2 2", "", "", "self.mhd"), "names itself"}});
}

TEST_CASE("a size whose bytes no number counts is refused by the header alone") {
  const TemporaryFolder folder;
  std::string huge = with(sound_nifti2(), 5, 'i');
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
  const std::string mhd =
      "NDims = 3\nDimSize = 4 3 2\nElementType = MET_SHORT\nElementDataFile = a.raw\n";
  const std::string nhdr =
      "NRRD0004\ntype: short\ndimension: 3\nsizes: 4 3 2\nendian: little\nencoding: raw\n"
      "data file: a.raw\n";
  // Beside 48 bytes, one less, and with something to pass over before them.
  for (const size_t bytes : {48U, 47U}) {
    write_file(folder / "a.img", std::string(bytes, '\0'));
    write_file(folder / "a.raw", "\n" + std::string(bytes - 1, '\0'));
    for (const auto& [name, header] :
         {std::pair<std::string, std::string>("a.hdr", pair_header(sound_nifti(folder))),
          {"a.mhd", mhd},
          {"a.nhdr", nhdr},
          {"skip.mhd", "HeaderSize = 2\n" + mhd},
          {"skip.nhdr", nhdr + "byte skip: 2\n"},
          {"lines.nhdr", nhdr + "line skip: 1\n"}}) {
      INFO(name);
      write_file(folder / name, header);
      if (bytes == 48 && name[0] == 'a') {
        CHECK(probe_image(folder / name).bytes == 48);
      } else {
        refused(name);
      }
    }
  }
  // Compressed, at most 1032 times the size.
  for (const std::string ending : {".nii.gz", ".nrrd", ".mha", ".png"}) {
    Grid grid;
    grid.size = {2000, 2000, 1};
    const std::string name = "packed" + ending;
    write_volume(folder / name, Volume<uint8_t>(grid));
    CHECK(probe_image(folder / name).bytes == 4000000);
    const std::string bytes = read_file(folder / name);
    write_file(folder / name, bytes.substr(0, 3000));  // of which 3 MB can come
    refused(name);
  }
  ReadOptions one;
  one.frame = 1;
  write_file(folder / "frames.nii", with_shorts(sound_nifti(folder), {{40, 4}, {48, 2}}));
  CHECK_THROWS_AS(probe_image(folder / "frames.nii", one), InputError);
}

TEST_CASE("truncated files are errors, never short data, and so are flipped compressed bits") {
  const TemporaryFolder folder;
  for (const std::string extension : {".nii.gz", ".nrrd", ".mha", ".png", ".tif"}) {
    const std::string bytes = written(folder, extension, {20, 20, 10});
    for (const double part : {0.0, 0.01, 0.05, 0.3, 0.5, 0.7, 0.95}) {
      const auto length = static_cast<size_t>(part * static_cast<double>(bytes.size()));
      INFO(extension << " cut to " << length);
      // The file is named, not its descriptor.
      CHECK_THAT(reading_error(folder, bytes.substr(0, length), "cut" + extension),
                 !Catch::Contains("fd:"));
    }
    if (extension == ".png" || extension == ".tif") continue;
    std::string flipped = bytes;
    flipped[bytes.size() * 2 / 3] ^= 0x10;
    CHECK_THAT(reading_error(folder, flipped, "flip" + extension),
               Catch::Contains("damaged or truncated"));
  }
}

TEST_CASE("no flipped byte of a header or a picture crashes a reader") {
  const TemporaryFolder folder;
  for (const std::string extension : {".nii", ".nrrd", ".mha", ".png", ".tif"}) {
    INFO(extension);
    written(folder, extension, {4, 3, 2});
    const std::string path = folder / ("whole" + extension);
    CHECK(errors_of_flipped_bytes(path, {0x01, 0x41, 0x80}, 1,
                                  [&] { return read_volume<float>(path).voxels() > 0; }) > 20);
  }
}

TEST_CASE("axes of a MetaImage are unit vectors, but for rounding") {
  const TemporaryFolder folder;
  const auto with_axis = [](const std::string& axis) {
    return mha_of("1 1 2", "TransformMatrix = " + axis + " 0 -0.707 0.707 0 0 0 1\n", "ab");
  };
  CHECK_THAT(reading_error(folder, with_axis("5 5"), "long.mha"),
             Catch::Contains("axis 1") && Catch::Contains("unit vector"));
  write_file(folder / "rounded.mha", with_axis("0.707 0.707"));
  const Grid grid = read_volume<uint8_t>(folder / "rounded.mha").grid();
  CHECK(norm(grid.direction.column(0)) == Approx(1).epsilon(1e-12));
  CHECK(grid.direction.m[0][0] == Approx(std::sqrt(0.5)));
}

#ifndef __SANITIZE_ADDRESS__  // which takes more address space than there is
TEST_CASE("a JPEG for which memory is missing is not called damaged") {
  const TemporaryFolder folder;
  const std::string path = folder / "large.jpg";
  write_file(path, progressive_jpeg(3200));
  CHECK(read_volume<float>(path)[0] == 128);
  write_file(folder / "some.jpg", progressive_jpeg(32, 7));  // hundreds of scans, below the limit
  CHECK(read_volume<float>(folder / "some.jpg")[0] == 128);
  bool fails = false, succeeds = false;
  for (rlim_t mebibytes = 4; mebibytes <= 128; mebibytes += 4) {
    INFO(mebibytes);
    const int code = code_within(RLIMIT_AS, address_space() + (mebibytes << 20),
                                 [&] { read_volume<float>(path); });
    CHECK((code == 0 || code == static_cast<int>(ExitCode::kMemory)));
    fails = fails || code != 0;
    succeeds = succeeds || code == 0;
  }
  CHECK(fails);
  CHECK(succeeds);
}
#endif
