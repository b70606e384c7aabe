// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The files that a record of a run counts as the voxels of an image.
#include <algorithm>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

using Names = std::vector<std::string>;

/// The names that detached_files gives, below the folder.
Names detached(const TemporaryFolder& folder, const std::string& name) {
  Names names;
  for (const std::string& path : detached_files(folder / name)) {
    names.push_back(fs::path(path).lexically_relative(folder.string()).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string nhdr(const std::string& data_file) {
  return "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\ndata file: " +
         data_file + "\n";
}

}  // namespace

TEST_CASE("the files of an .nhdr are those that its reader reads, in whatever folder") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "slices");
  for (const std::string name : {"slices/1.raw", "slices/2.raw", "slices/3.raw", "beside.raw"}) {
    write_file(folder / name, std::string(4, '\1'));
  }
  write_file(folder / "list.nhdr", nhdr("LIST\nslices/1.raw\nslices/3.raw"));
  CHECK(detached(folder, "list.nhdr") == Names{"slices/1.raw", "slices/3.raw"});
  write_file(folder / "pattern.nhdr", nhdr("slices/%d.raw 1 2 1") + "\n");
  CHECK(detached(folder, "pattern.nhdr") == Names{"slices/1.raw", "slices/2.raw"});
  write_file(folder / "one.nhdr", nhdr("beside.raw") + "\n");
  CHECK(detached(folder, "one.nhdr") == Names{"beside.raw"});
  write_file(folder / "within.nrrd",
             "NRRD0004\ntype: uint8\ndimension: 1\nsizes: 1\nencoding: raw\n\n1");
  CHECK(detached(folder, "within.nrrd").empty());
  write_file(folder / "gone.nhdr", nhdr("gone.raw") + "\n");
  CHECK(detached(folder, "gone.nhdr").empty());
}

TEST_CASE("a NIfTI file without another has none") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  CHECK(detached(folder, "sound.nii").empty());
  write_file(folder / "single.hdr", sound);
  write_file(folder / "single.img", "not read");
  CHECK(detached(folder, "single.hdr").empty());
  CHECK(detached(folder, "single.img") == Names{"single.hdr"});
  write_file(folder / "alone.hdr", with(with(sound.substr(0, 348), 345, 'i'), 108, 0.0F));
  CHECK(detached(folder, "alone.hdr").empty());
}

TEST_CASE("the header of a NIfTI pair may be named .nii") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  write_file(folder / "pair.nii", with(with(sound.substr(0, 348), 345, 'i'), 108, 0.0F));
  write_file(folder / "pair.img", sound.substr(352));
  CHECK(read_volume<int16_t>(folder / "pair.nii").voxels() == 24);
  CHECK(detached(folder, "pair.nii") == Names{"pair.img"});
  REQUIRE(shell("gzip '" + (folder / "pair.nii") + "'"));
  CHECK(detached(folder, "pair.nii.gz") == Names{"pair.img"});
}

TEST_CASE("an .nhdr names each file once, by links too, and patterns count the sign") {
  const TemporaryFolder folder;
  for (const std::string name : {"a.raw", "-01.raw", "000.raw", " -1.raw", "  0.raw"}) {
    write_file(folder / name, std::string(4, '\1'));
  }
  fs::create_symlink(folder / "a.raw", folder / "b.raw");
  fs::create_hard_link(folder / "a.raw", folder / "c.raw");
  for (const std::string other : {"b.raw", "c.raw", "./a.raw"}) {
    write_file(folder / "link.nhdr", nhdr("LIST\na.raw\n" + other));
    CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "link.nhdr"); }),
               Catch::Contains("twice as a file of voxels"));
  }
  write_file(folder / "zeros.nhdr", nhdr("%03d.raw -1 0 1") + "\n");
  CHECK(detached(folder, "zeros.nhdr") == Names{"-01.raw", "000.raw"});
  write_file(folder / "unsigned.nhdr", nhdr("%03u.raw -1 0 1") + "\n");
  CHECK(detached(folder, "unsigned.nhdr").empty());
}

TEST_CASE("messages hold no byte of a header that a terminal obeys") {
  const TemporaryFolder folder;
  const std::string escape = "\x1b]0;title\x07";
  const std::string lines = "type: uint8\ndimension: 3\nsizes: 2 2 2\n";
  for (const std::string& header :
       {lines + "encoding: " + escape, lines + "encoding: raw\n" + escape + ": 1",
        "type: " + escape + "\ndimension: 3\nsizes: 2 2 2\nencoding: raw",
        "type: uint8\ndimension: " + escape + "\nsizes: 2 2 2\nencoding: raw",
        lines + "encoding: raw\ndata file: " + escape}) {
    const std::string message = reading_error(folder, "NRRD0004\n" + header + "\n\n", "x.nrrd");
    CHECK(message.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("the data file of an .mhd is the one that its reader reads") {
  const TemporaryFolder folder;
  const std::string lines = "NDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\n";
  fs::create_directory(folder / "data");
  write_file(folder / "data/a.raw", std::string(8, '\1'));
  write_file(folder / "a.mhd", lines + "ElementDataFile = data/a.raw\n");
  CHECK(detached(folder, "a.mhd") == Names{"data/a.raw"});
  write_file(folder / "a.mha", lines + "ElementDataFile = LOCAL\n12345678");
  CHECK(detached(folder, "a.mha").empty());
}
