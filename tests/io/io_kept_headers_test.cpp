// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/image/image.h"
#include "larch/io/itk/door.h"
#include "tests/io/io_test_util.h"

namespace larch::test {
namespace {

Volume<int16_t> counted(const Vec3i& size) {
  Grid grid;
  grid.size = size;
  Volume<int16_t> volume(grid);
  for (int64_t i = 0; i < volume.voxels(); ++i) volume[i] = static_cast<int16_t>(i);
  return volume;
}

/// Headers of files that were just written are not kept.
void wait_until_settled() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
}

void write_series(const TemporaryFolder& folder, const Volume<int16_t>& volume) {
  const DicomSeriesNames names{
      "Larch^Sample", "1", "a sample", dicom_uid("study"), dicom_uid("series"), dicom_uid("frame")};
  fs::create_directories(folder / "series");
  for (int k = 0; k < volume.size().z; ++k) {
    write_dicom_slice(folder / ("series/" + std::to_string(k) + ".dcm"), volume, k, names);
  }
}

TEST_CASE("a file that is another one later is looked at again, and never read by an old header") {
  const TemporaryFolder folder;
  const Volume<int16_t> wide = counted({6, 2, 5}), high = counted({2, 6, 5});
  write_series(folder, wide);
  for (const char* ending : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    write_volume(folder / (std::string("a") + ending), wide);
  }
  wait_until_settled();
  for (const char* name : {"a.nii", "a.nii.gz", "a.nrrd", "a.mha", "series"}) {
    INFO(name);
    const std::string path = folder / name;
    CHECK(probe_image(path).grid.size == wide.size());
    CHECK(probe_image(path).grid.size == wide.size());
    io::OpenImage open(path, {});
    if (name == std::string("series")) {
      write_series(folder, high);
    } else {
      write_volume(path, high);
    }
    std::vector<float> voxels(static_cast<size_t>(wide.voxels()));
    CHECK_THAT(message_of<InputError>([&] {
                 open.read({0, 5}, voxels.data());
               }),
               Catch::Contains("changed after its header was read"));
    CHECK(probe_image(path).grid.size == high.size());
    CHECK(read_volume<int16_t>(path).size() == high.size());
  }
}

TEST_CASE("the digest of what is read whole is told once") {
  const TemporaryFolder folder;
  const Volume<int16_t> volume = counted({6, 2, 5});
  std::map<std::string, std::string> told;
  ReadOptions options;
  options.digest = [&](const std::string& path, const std::string& digest) {
    CHECK(told.emplace(path, digest).second);
  };
  for (const char* name : {"a.nii", "a.nii.gz", "a.nrrd", "a.mha"}) {
    const std::string path = folder / name;
    write_volume(path, volume);
    std::ofstream(path, std::ios::app) << "what stands behind the voxels belongs to the file";
    CHECK(probe_image(path, options).grid.size == volume.size());
    CHECK(told.empty());
    CHECK(read_volume<float>(path, options)[59] == 59);
    CHECK(told == std::map<std::string, std::string>{{path, sha256_of_file(path)}});
    told.clear();
  }
  write_series(folder, volume);
  read_volume<float>(folder / "series", options);
  CHECK(told.size() == 5);
  for (const auto& [path, digest] : told) CHECK(digest == sha256_of_file(path));
  told.clear();
  // Of a series a frame is read, not the file.
  const std::vector<Volume<float>> frames(3, mapped<float>(volume, [](int16_t v) { return v; }));
  write_volume_series<float>(folder / "series.nii", frames);
  options.frame = 1;
  read_volume<float>(folder / "series.nii", options);
  CHECK(told.empty());
}

}  // namespace
}  // namespace larch::test
