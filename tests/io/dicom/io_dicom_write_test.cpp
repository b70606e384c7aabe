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
#include "larch/io/dicom/dicom_object.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/image/image.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/unit/folder.h"

namespace larch {
namespace {

using test::dicom_element, test::dicom_number;

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
  const io::DicomObject series = io::describe_dicom(io::read_dicom_file(folder / "1.dcm"));
  CHECK(series.series_uid == kNames.series_uid);
  CHECK(series.modality == "MR");
  CHECK(series.description == "a sample");
}

TEST_CASE("a slice has the same bytes each time and names no library but Larch as its writer") {
  const test::Folder folder;
  const Volume<int16_t> image = sample(kPlain, 16);
  write_dicom_slice(folder / "a.dcm", image, 3, kNames);
  write_dicom_slice(folder / "b.dcm", image, 3, kNames);
  const std::string bytes = read_file(folder / "a.dcm");
  CHECK(bytes == read_file(folder / "b.dcm"));
  const std::string meta =
      dicom_element(2, 1, "OB", std::string("\0\1", 2)) +
      dicom_element(2, 2, "UI", "1.2.840.10008.5.1.4.1.1.4") +
      dicom_element(2, 3, "UI", dicom_uid(kNames.series_uid + " 3")) +
      dicom_element(2, 0x10, "UI", "1.2.840.10008.1.2.1") +
      dicom_element(2, 0x12, "UI", "2.25.1079700939050947470694127340517173591") +
      dicom_element(2, 0x13, "SH", "LARCH");
  const std::string start =
      std::string(128, '\0') + "DICM" +
      dicom_element(2, 0, "UL", dicom_number(static_cast<uint32_t>(meta.size()), 4)) + meta;
  CHECK(bytes.substr(0, start.size()) == start);
  CHECK(bytes[start.size()] == 8);
}

TEST_CASE("elements are in ascending order and of even length, sequences end with delimiters") {
  io::DicomWriter item, out;
  item.text(0x0008'1155, "UI", "1.2");
  out.numbers(0x0028'6102, "US", std::array<uint16_t, 2>{1, 0x1234});
  out.sequence(0x0008'1140, {item, item});
  out.text(0x0008'0060, "CS", "first");
  out.text(0x0008'0060, "CS", "MRI");
  CHECK(out.has(0x0008'0060));
  CHECK_FALSE(out.has(0x0008'1155));
  const std::string one = dicom_number(0xe000fffe, 4) + dicom_number(~0U, 4) +
                          dicom_element(0x0008, 0x1155, "UI", "1.2") + dicom_number(0xe00dfffe, 4) +
                          dicom_number(0, 4);
  CHECK(out.data_set() ==
        dicom_element(0x0008, 0x0060, "CS", "MRI ") + dicom_number(0x11400008, 4) + "SQ" +
            dicom_number(0, 2) + dicom_number(~0U, 4) + one + one + dicom_number(0xe0ddfffe, 4) +
            dicom_number(0, 4) + dicom_element(0x0028, 0x6102, "US", dicom_number(0x12340001, 4)));
}

TEST_CASE("a value that is too long for its type has none") {
  const std::string tag = dicom_number(0x61100028, 4);
  CHECK(io::dicom_element_head(0x0028'6110, "US", 0xfffe) == tag + "US" + dicom_number(0xfffe, 2));
  CHECK(io::dicom_element_head(0x0028'6110, "US", 0x10000) ==
        tag + "UN" + dicom_number(0, 2) + dicom_number(0x10000, 4));
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
