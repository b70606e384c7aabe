// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/dicom/dicom_write.h"
#include "tests/unit/folder.h"

namespace larch {
namespace {

const DicomSeriesNames kNames{
    "Larch^Sample", "1", "a sample", dicom_uid("study"), dicom_uid("series"), dicom_uid("frame")};

/// Voxels of every value on a turned grid whose axes are those of the patient in another order.
Volume<int16_t> sample(const std::array<int, 3>& axes, int slices) {
  const double c = std::cos(0.5), s = std::sin(0.5);
  const Mat3 about_x{{{1, 0, 0}, {0, c, -s}, {0, s, c}}};
  const Mat3 about_z{{{c, -s, 0}, {s, c, 0}, {0, 0, 1}}};
  Grid grid;
  grid.size = {21, 18, slices};
  grid.spacing_mm = {1.0 / 3, 0.7, 2.25};
  grid.origin_mm = {-123.456789, 7.0 / 3, 1000};
  Mat3 order{{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
  for (size_t k = 0; k < 3; ++k) order.m[std::abs(axes[k]) - 1][k] = axes[k] > 0 ? 1 : -1;
  grid.direction = about_z * (about_x * order);
  Volume<int16_t> image(grid);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    image[i] = static_cast<int16_t>(hash64(1, 2, static_cast<uint64_t>(i)));
  }
  image[0] = -32768;
  image[1] = 32767;
  return image;
}

const std::array<int, 3> kPlain{1, 2, 3};

TEST_CASE("a series that was written is read with its voxels and its geometry") {
  const auto [axes, slices] = GENERATE(std::pair{kPlain, 16}, std::pair{std::array{-1, -2, 3}, 17},
                                       std::pair{std::array{3, 1, 2}, 16}, std::pair{kPlain, 1});
  const test::Folder folder;
  const Volume<int16_t> image = sample(axes, slices);
  for (int slice = 0; slice < slices; ++slice) {
    write_dicom_slice(folder / (std::to_string(slices - slice) + ".dcm"), image, slice, kNames);
  }
  const auto read = read_volume<int16_t>(folder.path.string());
  CHECK(describe_difference(image.grid(), read.grid(), 1e-6).empty());
  CHECK(std::equal(image.begin(), image.end(), read.begin(), read.end()));
  const io::DicomObject series = io::read_dicom_object(folder / "1.dcm");
  CHECK(series.series_uid == kNames.series_uid);
  CHECK(series.modality == "MR");
  CHECK(series.description == "a sample");
}

TEST_CASE("a slice has the same bytes each time") {
  const test::Folder folder;
  const Volume<int16_t> image = sample(kPlain, 16);
  write_dicom_slice(folder / "a.dcm", image, 3, kNames);
  write_dicom_slice(folder / "b.dcm", image, 3, kNames);
  CHECK(read_file(folder / "a.dcm") == read_file(folder / "b.dcm"));
}

TEST_CASE("grids that a series cannot hold are refused") {
  const test::Folder folder;
  CHECK_THROWS_AS(write_dicom_slice(folder / "a.dcm", sample({-1, 2, 3}, 16), 0, kNames),
                  UsageError);
  Volume<int16_t> sheared = sample(kPlain, 16);
  Grid grid = sheared.grid();
  grid.direction.m[0][2] += 0.01;
  sheared.set_geometry(grid);
  CHECK_THROWS_AS(write_dicom_slice(folder / "a.dcm", sheared, 0, kNames), UsageError);
  Grid wide;
  wide.size = {65536, 1, 1};
  CHECK_THROWS_AS(write_dicom_slice(folder / "a.dcm", Volume<int16_t>(wide), 0, kNames),
                  UsageError);
  CHECK(std::filesystem::is_empty(folder.path));
  CHECK_THROWS_AS(write_dicom_slice(folder / "no/a.dcm", sample(kPlain, 16), 0, kNames),
                  OutputError);
}

TEST_CASE("identifiers are those of UUIDs, and differ with their text") {
  const std::string uid = dicom_uid("a");
  CHECK(uid.substr(0, 5) == "2.25.");
  CHECK(uid.size() <= 64);
  CHECK(uid.find_first_not_of("0123456789.") == std::string::npos);
  CHECK(uid == dicom_uid("a"));
  CHECK(uid != dicom_uid("b"));
}

}  // namespace
}  // namespace larch
