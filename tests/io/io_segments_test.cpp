// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Segmentations of 3D Slicer (.seg.nrrd): flat and in layers, written and read.
#include <algorithm>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

constexpr const char* kLayers =
    "type: uint8\ndimension: 4\nsizes: 2 4 3 2\nkinds: list domain domain domain\n";

std::string segment(int number, const std::string& name, const std::string& more) {
  const std::string start = "Segment" + std::to_string(number) + "_";
  std::string lines =
      start + "ID:=Segment_" + std::to_string(number + 1) + "\n" + start + "Name:=" + name + "\n";
  for (size_t at = 0; at < more.size(); at = more.find('\n', at) + 1) {
    lines += start + more.substr(at, more.find('\n', at) + 1 - at);
  }
  return lines;
}

/// A file of two layers whose voxels have the values of `pairs` first, one for each layer.
std::string layered(const std::string& segments, std::vector<uint8_t> pairs) {
  pairs.resize(48);
  return "NRRD0004\n" + std::string(kLayers) + "encoding: raw\n" + segments + "\n" +
         std::string(pairs.begin(), pairs.end());
}

const std::string kTwo = segment(0, "liver", "LabelValue:=4\nLayer:=0\nColor:=1 0.2 0\n") +
                         segment(1, "tumour", "LabelValue:=7\nLayer:=1\n");

LabelVolume read(const TemporaryFolder& folder, const std::string& bytes,
                 std::string* warning = nullptr) {
  write_file(folder / "s.seg.nrrd", bytes);
  ReadOptions options;
  options.warn = [&](const std::string& text) {
    if (warning != nullptr) *warning += text;
  };
  return read_labels(folder / "s.seg.nrrd", options);
}

std::string error_of(const TemporaryFolder& folder, const std::string& bytes) {
  try {
    read(folder, bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

LabelVolume box(int from, int to, int32_t value) {
  Grid grid;
  grid.size = {5, 4, 3};
  grid.spacing_mm = {1, 2, 3};
  grid.origin_mm = {-4, 5, 6};
  LabelVolume labels(grid);
  for (int i = from; i < to; ++i) labels[i] = value;
  return labels;
}

}  // namespace

TEST_CASE("A label map comes back from .seg.nrrd with its names and colours") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.seg.nrrd";
  LabelVolume labels = box(3, 9, 300);
  labels[20] = -2;
  const LabelTable table{{300, "a \\ b\n\xc3\xa4", {10, 20, 255}}, {5, "nowhere", {1, 2, 3}}};
  write_labelmap(path, labels, table);
  const LabelVolume back = read_labels(path);
  CHECK(describe(back.grid()) == describe(labels.grid()));
  CHECK(std::equal(back.begin(), back.end(), labels.begin()));
  const LabelTable names = probe_image(path).labels;
  REQUIRE(names.size() == 3);
  CHECK(names[0].name == "a   b \xc3\xa4");
  CHECK(std::equal(names[0].rgb, names[0].rgb + 3, table[0].rgb));
  CHECK(names[1].value == 5);
  CHECK(names[2].value == -2);
  CHECK(names[2].name == "Segment_-2");
}

TEST_CASE("Layers that do not overlap are one label map, as a whole and as floats") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.seg.nrrd";
  const LabelVolume layers[] = {box(3, 9, 1), box(12, 40, 2)};
  write_segmentation(path, layers, {{1, "one"}, {2, "two"}});
  CHECK(probe_image(path).components == 1);
  const LabelVolume back = read_labels(path);
  const Volume<float> floats = read_volume<float>(path);
  for (int64_t i = 0; i < back.voxels(); ++i) {
    REQUIRE(back[i] == layers[0][i] + layers[1][i]);
    REQUIRE(floats[i] == static_cast<float>(back[i]));
  }
  CHECK(read(folder, layered(kTwo, {4, 0, 0, 7}))[1] == 7);
}

TEST_CASE("Segments that overlap are named, with the place") {
  const TemporaryFolder folder;
  CHECK_THAT(error_of(folder, layered(kTwo, {0, 0, 4, 0, 4, 7})),
             Catch::Contains("'liver' and 'tumour' overlap, the first time at index (2,0,0)"));
  const LabelVolume boxes[] = {box(3, 9, 1), box(8, 12, 2)};
  write_segmentation(folder / "b.seg.nrrd", boxes, {{1, "one"}, {2, "two"}});
  CHECK_THROWS_WITH(read_labels(folder / "b.seg.nrrd"),
                    Catch::Contains("'one' and 'two' overlap, the first time at index (3,1,0)"));
}

TEST_CASE("Files of Slicer before 4.11, and label values that layers share") {
  const TemporaryFolder folder;
  std::string warning;
  const LabelVolume old =
      read(folder, layered(segment(0, "a", "") + segment(1, "b", ""), {1, 0, 0, 1}), &warning);
  CHECK(old[0] == 1);
  CHECK(old[1] == 2);
  CHECK_THAT(warning, Catch::Contains("numbered from 1 in their order instead"));
  CHECK(probe_image(folder / "s.seg.nrrd").labels[1].value == 2);
}

TEST_CASE("Segments that cannot be label maps are refused") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& lines, std::vector<uint8_t> pairs = {}) {
    return error_of(folder, layered(lines, std::move(pairs)));
  };
  CHECK_THAT(error(kTwo, {5, 0}), Catch::Contains("has the value 5, which is that of no segment"));
  CHECK_THAT(error(kTwo + "Segmentation_MasterRepresentation:=Fractional labelmap\n"),
             Catch::Contains("export it there as binary label map"));
  CHECK_THAT(error(segment(0, "a", "Layer:=2\n")), Catch::Contains("'a' is in layer 2 of 2"));
  CHECK_THAT(error(segment(0, "a", "Layer:=1\n") + segment(1, "b", "Layer:=1\n")),
             Catch::Contains("'b' is in layer 1 of 2 (from 0) with the value 1"));
  CHECK_THAT(error(segment(0, "a", "LabelValue:=1.5\n")), Catch::Contains("is no whole number"));
  CHECK_THAT(error(segment(0, "a", "LabelValue:=0\n")), Catch::Contains("with the value 0"));
}
