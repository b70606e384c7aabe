// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "folder.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/levelset/brick_layout.h"
#include "larch/pipeline/levelset/input/itk_scalings.h"
#include "larch/pipeline/levelset/outputs/segmentation_files.h"
#include "larch/pipeline/levelset/outputs/segmentation_outputs.h"
#include "larch/pipeline/levelset/outputs/segmentation_report.h"
#include "larch/pipeline/levelset/segmentation_memory.h"

namespace larch::pipeline {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

ImageInfo image_of(const Vec3i& size) {
  ImageInfo info;
  info.grid.size = size;
  info.bytes = info.grid.voxels();
  return info;
}

TEST_CASE("more device memory than is free: the bytes, and what to do") {
  const ImageInfo info = image_of({2000, 2000, 2000});
  const SegmentationMemory memory = segmentation_memory(info, {.image = ""}, {}, 1, true);
  CHECK(memory.device >= 10 * info.grid.voxels());
  CHECK_THROWS_AS(require_memory(memory, info.grid, 10000 * kGiB, 16 * kGiB), MemoryError);
  CHECK_THROWS_WITH(require_memory(memory, info.grid, 10000 * kGiB, 16 * kGiB),
                    Catch::Contains(std::to_string(memory.device) + " bytes") &&
                        Catch::Contains("of the device's memory") &&
                        Catch::Contains(std::to_string(16 * kGiB) + " bytes") &&
                        Catch::Contains("--device cpu"));
  CHECK_NOTHROW(require_memory(memory, info.grid, 10000 * kGiB, 10000 * kGiB));
  CHECK_THROWS_AS(require_memory(memory, info.grid, 16 * kGiB, 10000 * kGiB), MemoryError);
  // Without a GPU none of its memory is needed; fields of two labels take twice as much.
  CHECK(segmentation_memory(info, {.image = ""}, {}, 1, false).device == 0);
  CHECK(segmentation_memory(info, {.image = ""}, {}, 2, true).device == 2 * memory.device);
  // Five bits per voxel say what bricks have to write.
  const int64_t fields = 10 * info.grid.voxels();
  CHECK(memory.device == fields + 5 * info.grid.voxels() / 8);
  // Lists of voxels are as long as the image on a device, however few are active.
  levelset::LevelsetConfig config;
  config.tracker = levelset::Tracker::kBuffers;
  CHECK(device_bytes(info.grid.size, config, 2) ==
        2 * (fields + 16 * info.grid.voxels()) + 32 * info.grid.voxels());
}

TEST_CASE("device memory with a region term holds images, and bits of three sets of voxels") {
  const Vec3i size{2000, 2000, 2000};
  const int64_t voxels = int64_t{2000} * 2000 * 2000, words = int64_t{63} * 2000 * 2000;
  levelset::LevelsetConfig config;
  const int64_t plain = device_bytes(size, config, 1);
  CHECK(device_bytes(size, config, 1, {true, true}) == plain);
  config.region_weight = 0.3;
  const int64_t near = device_bytes(size, config, 1);
  CHECK(near == plain + 4 * voxels + 3 * 4 * words);
  CHECK(device_bytes(size, config, 1, {true, false}) == near + 4 * voxels);
  CHECK(device_bytes(size, config, 2, {false, true}) == near + plain + 2 * voxels);
  config.region_band_mm = 0;
  CHECK(device_bytes(size, config, 1) == near - 2 * 4 * words);
  // A request that is read takes what was foreseen.
  levelset::SegmentRequest request;
  request.config = config;
  request.image = Volume<float>(image_of({40, 24, 16}).grid);
  request.spheres = {{{1, 1, 1}, 2, true, 9}, {{2, 2, 2}, 2, true, 4}};
  CHECK(device_bytes(request) == device_bytes({40, 24, 16}, config, 2));
  request.speed = request.image;
  request.config.max_distance_mm = 3;
  CHECK(device_bytes(request) == device_bytes({40, 24, 16}, config, 2, {true, true}));
}

TEST_CASE("the memory of a segmentation counts labels, frames, and images beside it") {
  const ImageInfo info = image_of({96, 80, 64});
  const int64_t voxels = info.grid.voxels();
  SegmentationRequest request{.image = ""};
  const auto host = [&](int64_t labels) {
    return segmentation_memory(info, request, {}, labels, false).host;
  };
  const cases::MemoryNeed one = host(1);
  CHECK(one.computing >= 30 * voxels);
  CHECK(host(0).most() == one.most());  // such as of a label map that is empty
  CHECK(host(3).computing >= one.computing + 2 * 14 * voxels);
  CHECK(host(3).finishing >= one.finishing + 2 * 4 * voxels);
  CHECK(one.resting >= 12 * voxels);  // image, labels and level set, until they are written
  request.frames = 20;
  CHECK(host(1).most() >= one.most() + 20 * 4 * voxels);
  request.frames = 1;
  request.seeds.mask.path = "mask.nii";
  CHECK(host(1).computing >= one.computing + voxels);
  // What it pins is kept where means are taken anew.
  levelset::LevelsetConfig regions;
  regions.region_weight = 0.3;
  const auto with_means = segmentation_memory(info, request, regions, 3, false).host;
  CHECK(with_means.computing >= host(3).computing + 3 * voxels);
  CHECK(host(1).reading >= one.reading + voxels);
}

TEST_CASE("what a header can claim at most is more memory than there is, and no overflow") {
  ImageInfo info = image_of({2000000, 2000000, 2000000});
  info.bytes = INT64_MAX;
  SegmentationRequest request{.image = ""};
  levelset::LevelsetConfig config;
  config.tracker = levelset::Tracker::kBuffers;
  for (const int frames : {1, INT32_MAX}) {
    request.frames = frames;
    const SegmentationMemory memory = segmentation_memory(info, request, config, 65535, true);
    CHECK(memory.device > 1000000 * kGiB);
    for (const int64_t bytes : {memory.host.reading, memory.host.computing, memory.host.finishing,
                                memory.host.resting, memory.images}) {
      CHECK(bytes >= 4096 * kGiB);
    }
  }
}

TEST_CASE("a lack of memory names the number of labels, for an image may be given as a label map") {
  const ImageInfo info = image_of({256, 256, 256});
  const SegmentationRequest request{.image = ""};
  const auto require = [&](int64_t labels) {
    require_memory(segmentation_memory(info, request, {}, labels, false), info.grid, kGiB / 4, 0);
  };
  CHECK_THROWS_WITH(require(1000), Catch::Contains("256x256x256 voxels") &&
                                       Catch::Contains("with 1000 labels") &&
                                       Catch::Contains("start from fewer labels"));
  CHECK_THROWS_WITH(require(1), !Catch::Contains("labels"));
}

TEST_CASE("labels to start from are found, whatever their values and wherever they come from") {
  levelset::SegmentRequest request;
  CHECK(labels_of(request).empty());
  request.spheres = {{{1, 1, 1}, 2, true, 9}, {{2, 2, 2}, 2, true, 9}};
  CHECK(labels_of(request) == std::vector{9});
  request.initial_labels = LabelVolume(Grid{{4, 4, 4}});
  request.initial_labels[3] = 60000;
  request.initial_labels[4] = request.initial_labels[7] = 9;
  request.initial_phi.push_back({2, {}});
  CHECK(labels_of(request) == std::vector{2, 9, 60000});
}

TEST_CASE("no file may be named as one of a label would be, whatever the label") {
  SegmentationFiles files;
  files.mesh = "out/a.vtk";
  files.distance = "out/d.nii.gz";
  const auto check = [&](const std::string& path) { check_label_files({files}, {path}); };
  CHECK_NOTHROW(check("out/a.label2.vtk"));  // there are no such files without --by-label
  files.by_label = true;
  CHECK_THROWS_WITH(check("out/a.label2.vtk"), Catch::Contains("out/a.label2.vtk"));
  CHECK_THROWS_AS(check("out/../out/d.label17.nii.gz"), UsageError);
  for (const char* other : {"out/a.vtk", "out/b.label2.vtk", "a.label2.vtk", "out/a.label2.stl",
                            "out/a.label.vtk", "out/a.label2b.vtk", "out/d.label2.nii"}) {
    CHECK_NOTHROW(check(other));
  }
}

TEST_CASE("ITK's scalings stand for a curvature weight, by the window and the spacing") {
  const ItkScalings scalings{.propagation = 1, .curvature = 0.2};
  levelset::LevelsetConfig config;
  config.lower = 87;
  config.upper = 130;
  Grid grid{{10, 10, 10}};
  const auto weight = [&] { return scalings.applied(config, grid).curvature_weight; };
  CHECK(weight() == Approx(0.2 / 21.7));  // 0.0092
  // Fronts in mm: p (eps - |I - T|) - k kappa, and a unit h of ours: D eps - k kappa h, the s-th
  // part of which is (1 - a) D - a (kappa h), with kappa h in units of 1 / h.
  grid.spacing_mm = {2, 0.5, 1};
  const double a = weight();
  CHECK(a / (1 - a) == Approx(0.2 / (1 * 21.5 * 0.5)));
  grid.size.y = 1;  // an axis that does not count
  CHECK(weight() == Approx(0.2 / (0.2 + 21.5)));
  CHECK(ItkScalings{.propagation = 0, .curvature = 3}.applied(config, grid).curvature_weight == 1);
  CHECK(ItkScalings{.propagation = 2, .curvature = 0}.applied(config, grid).curvature_weight == 0);
  CHECK(ItkScalings{}.applied(config, grid).curvature_weight == 0.03);
}

levelset::SegmentResult result_of(size_t steps) {
  levelset::SegmentResult result;
  result.labels = LabelVolume(Grid{{4, 4, 4}});
  levelset::LabelResult label;
  label.phi_mm = Volume<float>(result.labels.grid(), 3);
  label.progress.iterations = static_cast<int64_t>(steps);
  label.progress.inside = static_cast<int64_t>(steps);
  result.by_label.push_back(label);
  result.resolved.labels.emplace_back();
  // Every step one voxel comes in.
  result.history.emplace_back(steps, levelset::StepCount{1, 2, 1, 1, 0});
  return result;
}

TEST_CASE("a long history is thinned out, to the last iteration, without losing a voxel") {
  for (const size_t steps : {size_t{1}, size_t{2000}, size_t{2001}, size_t{123456}}) {
    const auto report = segmentation_report(result_of(steps), {});
    const auto& rows = report["labels"][0]["history"];
    CHECK(rows["iteration"].size() <= 2001);
    CHECK(rows["iteration"].back() == steps);
    CHECK(rows["inside"].back() == steps);
    int64_t flipped = 0;
    for (const auto& row : rows["flipped"]) flipped += row.get<int64_t>();
    CHECK(flipped == static_cast<int64_t>(steps));
  }
  CHECK(segmentation_report(result_of(0), {})["labels"][0]["iterations"] == 0);
  CHECK_NOTHROW(segmentation_plot(result_of(0), levelset::Tracker::kBrick, "empty"));
}

TEST_CASE("a distance where nothing or all is inside is the diagonal of the image") {
  levelset::SegmentResult result = result_of(1);
  CHECK(distance_of_all(result, 1)[0] == Approx(std::sqrt(48.0)));
  for (int32_t& label : result.labels) label = 1;
  CHECK(distance_of_all(result, 1)[0] == Approx(-std::sqrt(48.0)));
}

}  // namespace
}  // namespace larch::pipeline
