// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The files that a record of a run counts as the voxels of an image, and NIfTI in two files.
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

/// <name>.hdr and <name>.img of 24 voxels, the first of which has the value `first`.
void write_pair(const TemporaryFolder& folder, const std::string& name, int16_t first) {
  const std::string sound = sound_nifti(folder);
  write_file(folder / (name + ".hdr"), pair_header(sound));
  write_file(folder / (name + ".img"), with(sound.substr(352), 0, first));
}

int16_t first_of(const std::string& path) {
  return read_volume<int16_t>(path)[0];
}

}  // namespace

TEST_CASE("the data file of an .nhdr or .mhd is the one that its reader reads, in any folder") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "data");
  write_file(folder / "data/a.raw", std::string(8, '\1'));
  write_file(folder / "beside.raw", std::string(8, '\1'));
  for (const std::string name : {"data/a.raw", "beside.raw"}) {
    write_file(folder / "a.nhdr", nrrd_of("2 2 2", "data file: " + name + "\n", ""));
    write_file(folder / "a.mhd", mha_of("2 2 2", "", "", name));
    CHECK(detached(folder, "a.nhdr") == Names{name});
    CHECK(detached(folder, "a.mhd") == Names{name});
  }
  write_file(folder / "within.nrrd", nrrd_of("2 2 2", "", "12345678"));
  write_file(folder / "within.mha", mha_of("2 2 2", "", "12345678"));
  write_file(folder / "gone.nhdr", nrrd_of("2 2 2", "data file: gone.raw\n", ""));
  for (const char* name : {"within.nrrd", "within.mha", "gone.nhdr"}) {
    CHECK(detached(folder, name).empty());
  }
}

TEST_CASE("a NIfTI file without another has none") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  CHECK(detached(folder, "sound.nii").empty());
  write_file(folder / "single.hdr", sound);
  write_file(folder / "single.img", "not read");
  CHECK(detached(folder, "single.hdr").empty());
  CHECK(detached(folder, "single.img") == Names{"single.hdr"});
  write_file(folder / "alone.hdr", pair_header(sound));
  CHECK(detached(folder, "alone.hdr").empty());
}

TEST_CASE("the files of a pair are each other's inputs, compressed or not, also named .nii") {
  const TemporaryFolder folder;
  write_pair(folder, "a", 1);
  CHECK(detached(folder, "a.hdr") == Names{"a.img"});
  CHECK(detached(folder, "a.img") == Names{"a.hdr"});
  fs::copy(folder / "a.hdr", folder / "a.nii");
  CHECK(first_of(folder / "a.nii") == 1);
  CHECK(detached(folder, "a.nii") == Names{"a.img"});
  REQUIRE(shell("gzip '" + (folder / "a.nii") + "'"));
  CHECK(detached(folder, "a.nii.gz") == Names{"a.img"});
  REQUIRE(shell("gzip '" + (folder / "a.img") + "'"));
  CHECK(detached(folder, "a.hdr") == Names{"a.img.gz"});
  CHECK(detached(folder, "a.img.gz") == Names{"a.hdr"});
  REQUIRE(shell("gzip '" + (folder / "a.hdr") + "'"));
  CHECK(detached(folder, "a.hdr.gz") == Names{"a.img.gz"});
  CHECK(detached(folder, "a.img.gz") == Names{"a.hdr.gz"});
  CHECK(first_of(folder / "a.img.gz") == 1);
}

TEST_CASE("of two files with the voxels of a pair the one that is named is read") {
  const TemporaryFolder folder;
  write_pair(folder, "a", 1);
  REQUIRE(shell("gzip '" + (folder / "a.img") + "'"));
  write_pair(folder, "a", 2);
  CHECK(first_of(folder / "a.img") == 2);
  CHECK(first_of(folder / "a.img.gz") == 1);
  CHECK(detached(folder, "a.img.gz") == Names{"a.hdr"});
}

TEST_CASE("messages hold no byte of a header that a terminal obeys") {
  const TemporaryFolder folder;
  const std::string escape = "\x1b]0;title\x07";
  for (const std::string& header :
       {nrrd_of("2 2 2", "", "", escape), nrrd_of("2 2 2", escape + ": 1\n", ""),
        nrrd_of("2 2 2", "data file: " + escape + "\n", ""),
        "NRRD0004\ntype: " + escape + "\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n\n",
        "NRRD0004\ntype: uint8\ndimension: " + escape + "\nsizes: 2 2 2\nencoding: raw\n\n"}) {
    CHECK(reading_error(folder, header, "x.nrrd").find('\x1b') == std::string::npos);
  }
}
