// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// NIfTI in two files: which ones are read, and that a run records all of them.
#include <catch2/catch.hpp>

#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

using Files = std::vector<std::string>;

/// <name>.hdr and <name>.img of 24 voxels, the first of which has the value `first`.
void write_pair(const TemporaryFolder& folder, const std::string& name, uint8_t first) {
  Grid grid;
  grid.size = {4, 3, 2};
  Volume<uint8_t> volume(grid, 7);
  volume[0] = first;
  write_volume(folder / "whole.nii", volume);
  const std::string bytes = read_file(folder / "whole.nii");
  std::string header = bytes.substr(0, 348);
  header.replace(108, 4, std::string(4, '\0'));  // vox_offset
  header.replace(344, 4, std::string("ni1\0", 4));
  write_file(folder / (name + ".hdr"), header);
  write_file(folder / (name + ".img"), bytes.substr(352));
}

}  // namespace

TEST_CASE("the files of a pair are each other's inputs, compressed or not") {
  const TemporaryFolder folder;
  write_pair(folder, "a", 1);
  const std::string header = folder / "a.hdr", voxels = folder / "a.img";
  CHECK(detached_files(header) == Files{voxels});
  CHECK(detached_files(voxels) == Files{header});
  REQUIRE(shell("gzip '" + voxels + "'"));
  CHECK(detached_files(header) == Files{voxels + ".gz"});
  CHECK(detached_files(voxels + ".gz") == Files{header});
  REQUIRE(shell("gzip '" + header + "'"));
  CHECK(detached_files(header + ".gz") == Files{voxels + ".gz"});
  CHECK(detached_files(voxels + ".gz") == Files{header + ".gz"});
  CHECK(read_volume<uint8_t>(voxels + ".gz")[0] == 1);
}

TEST_CASE("of two files with the voxels of a pair the one that is named is read") {
  const TemporaryFolder folder;
  write_pair(folder, "a", 1);
  REQUIRE(shell("gzip '" + (folder / "a.img") + "'"));
  write_pair(folder, "a", 2);
  CHECK(read_volume<uint8_t>(folder / "a.img")[0] == 2);
  CHECK(read_volume<uint8_t>(folder / "a.img.gz")[0] == 1);
  CHECK(detached_files(folder / "a.img.gz") == Files{folder / "a.hdr"});
}
