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
#include "larch/levelset/arithmetic_version.h"
#include "larch/levelset/brick_layout.h"
#include "larch/models/bytes.h"
#include "larch/models/file.h"
#include "larch/pipeline/levelset/input/itk_scalings.h"
#include "larch/pipeline/levelset/outputs/segmentation_files.h"
#include "larch/pipeline/levelset/outputs/segmentation_outputs.h"
#include "larch/pipeline/levelset/outputs/segmentation_report.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"
#include "larch/pipeline/levelset/segmentation_memory.h"
#include "larch/pipeline/levelset/series_checkpoint.h"
#include "larch/pipeline/resume.h"

namespace larch::pipeline {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

ImageInfo image_of(const Vec3i& size) {
  ImageInfo info;
  info.grid.size = size;
  info.bytes = info.grid.voxels();
  return info;
}

/// Of snapshot(), with two labels.
constexpr CheckpointShape kShape{.bricks = 3, .labels = 2};

levelset::FieldSnapshot snapshot() {
  levelset::FieldSnapshot field;
  for (auto& phi : field.phi) phi.assign(3 * levelset::kBrickVoxels, 3);
  field.phi[0][700] = field.phi[1][700] = -1.25F;  // a brick with two values, in both
  field.phi[1][1300] = 0.5F;                       // one that differs between them
  field.progress = {17, 3, 41, levelset::Stop::kInterrupted};
  field.active = {{1, 2}, true};
  field.history = {{2, 9, 1, -1, 77}, {2, 8, 0, 0, 5}};
  field.means = {101.5, 20.25};
  field.means_at = 10;
  return field;
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
  levelset::LevelsetConfig config;
  config.tracker = levelset::Tracker::kDense;
  const int64_t dense = device_bytes(info.grid.size, config, 1);
  CHECK(memory.device == dense + 5 * info.grid.voxels() / 8);
  // Lists of voxels are as long as the image on a device, however few are active.
  config.tracker = levelset::Tracker::kVoxel;
  CHECK(device_bytes(info.grid.size, config, 1) == dense + 12 * info.grid.voxels());
  config.duplicates = levelset::Duplicates::kBuffers;
  CHECK(device_bytes(info.grid.size, config, 2) ==
        2 * (dense + 16 * info.grid.voxels()) + 32 * info.grid.voxels());
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

TEST_CASE("the memory of a segmentation counts labels, frames, images beside it and checkpoints") {
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
  request.checkpoint = "c.ckpt";
  CHECK(host(2).computing >= 2 * (10 + 3 * 8) * voxels);
  request.frames = 20;
  CHECK(host(1).most() >= one.most() + 20 * 4 * voxels);
  CHECK(host(1).computing >= 20 * 8 * voxels);  // the frames as they are and as they are stored
  request.frames = 1;
  request.checkpoint.clear();
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
  request.checkpoint = "c.ckpt";
  levelset::LevelsetConfig config;
  config.tracker = levelset::Tracker::kVoxel;
  config.duplicates = levelset::Duplicates::kBuffers;
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

TEST_CASE("a checkpoint holds every value, and is refused where it is damaged or of another run") {
  const test::Folder folder;
  const std::string path = folder / "c.ckpt";
  const std::vector<levelset::FieldSnapshot> written{snapshot(), snapshot()};
  write_checkpoint(path, "print", written);
  const std::vector<levelset::FieldSnapshot> read = read_checkpoint(path, "print", kShape);
  REQUIRE(read.size() == 2);
  const levelset::FieldSnapshot &a = written[1], &b = read[1];
  CHECK(a.phi[0] == b.phi[0]);
  CHECK(a.phi[1] == b.phi[1]);
  CHECK(b.progress.iterations == 17);
  CHECK(b.progress.quiet == 3);
  CHECK(b.progress.inside == 41);
  CHECK(b.progress.stop == levelset::Stop::kInterrupted);
  CHECK(b.active.items == a.active.items);
  CHECK(b.active.is_known);
  REQUIRE(b.history.size() == 2);
  CHECK(b.history[0].grown == -1);
  CHECK(b.history[0].squares == 77);
  CHECK(b.means.inside == 101.5);
  CHECK(b.means_at == 10);
  CHECK_THROWS_WITH(read_checkpoint(path, "other", kShape),
                    Catch::Contains(path) && Catch::Contains("other settings or other images"));
  const std::string bytes = read_file(path);
  for (const size_t length : {size_t{0}, size_t{10}, bytes.size() / 2, bytes.size() - 1}) {
    write_file(path, bytes.substr(0, length));
    CHECK_THROWS_AS(read_checkpoint(path, "print", kShape), InputError);
  }
  std::string changed = bytes;
  changed[bytes.size() / 2] ^= 1;
  write_file(path, changed);
  CHECK_THROWS_AS(read_checkpoint(path, "print", kShape), InputError);
}

TEST_CASE("a checkpoint that claims more than its request can have is refused before it is read") {
  const test::Folder folder;
  const std::string path = folder / "c.ckpt";
  models::Container container;
  container.kind = "levelset-checkpoint";
  put_fingerprint("print", container);
  models::ByteWriter claim;  // bytes enough for the bricks, of which each is of no known kind
  claim.u64(4);
  claim.raw(std::string(64, '\x7f'));
  container.sections["fields/0"].bytes = std::move(claim).take();
  models::write_container(path, container);
  CHECK_THROWS_WITH(read_checkpoint(path, "print", kShape),
                    Catch::Contains(path) && Catch::Contains("image of another size"));
  CHECK_THROWS_WITH(read_checkpoint(path, "print", {.bricks = 4, .labels = 1}),
                    Catch::Contains("way that is not known"));
  write_checkpoint(path, "print", {snapshot(), snapshot(), snapshot()});
  CHECK_THROWS_WITH(read_checkpoint(path, "print", kShape),
                    Catch::Contains(path) && Catch::Contains("more than 2 labels"));
  levelset::SegmentRequest request;
  request.image = Volume<float>(Grid{{17, 8, 9}});
  request.spheres = {{{1, 1, 1}, 2, true, 1}, {{5, 5, 5}, 2, true, 7}};
  CHECK(shape_of(request).bricks == 6);
  CHECK(shape_of(request).labels == 2);
}

TEST_CASE("a checkpoint of another version of the arithmetic is refused") {
  const test::Folder folder;
  const std::string path = folder / "c.ckpt";
  const auto refuses = [&](const std::string& fingerprint) {
    for (const char* kind : {"levelset-checkpoint", "levelset-series"}) {
      models::Container container;
      container.kind = kind;
      container.sections["fingerprint"].bytes = fingerprint;
      models::write_container(path, container);
      const bool is_series = std::string(kind) == "levelset-series";
      CHECK_THROWS_WITH(is_series ? (void)read_series_checkpoint(path, Grid{{4, 4, 4}}, 2, 1)
                                  : (void)read_checkpoint(path, "print", kShape),
                        Catch::Contains(path) && Catch::Contains("computes other bits"));
    }
  };
  refuses("print");  // as checkpoints were written before they had a version
  refuses(std::to_string(levelset::kArithmeticVersion + 1) + ":print");
  refuses(std::to_string(levelset::kArithmeticVersion) + "0:print");
  models::Container container;
  put_fingerprint("print", container);
  CHECK(take_fingerprint(container) == "print");
}

TEST_CASE("fields that a run cannot go on from are refused with the name of their file") {
  levelset::SegmentRequest request;
  request.image = Volume<float>(Grid{{17, 8, 8}}, 100);
  request.spheres = {{{8, 4, 4}, 2, true, 1}};
  request.config.lower = 50;
  request.config.upper = 150;
  levelset::SegmentRun run = levelset::start_segmentation(request, {});
  CHECK_THROWS_AS(go_on_from("some.ckpt", run, {snapshot()}, {}), InputError);
  CHECK_THROWS_WITH(go_on_from("some.ckpt", run, {snapshot()}, {}),
                    Catch::Contains("'some.ckpt'") && Catch::Contains("checkpoint is damaged"));
  CHECK_NOTHROW(go_on_from("some.ckpt", run, levelset::snapshot_of(run), {}));
}

TEST_CASE("a checkpoint of a series holds its frames, and is refused for another image") {
  const test::Folder folder;
  const std::string path = folder / "s.ckpt";
  const Grid grid{{20, 4, 3}};
  SeriesProgress written;
  written.labels = {LabelVolume(grid), LabelVolume(grid, 3)};
  written.labels[0][17] = 60000;
  written.reports = "[{},{}]";
  written.volume_ml = 1.5;
  written.iterations = 123;
  written.last.by_label = {{.label = 3, .phi_mm = Volume<float>(grid, -2)},
                           {.label = 60000, .phi_mm = Volume<float>(grid, 6)}};
  written.last.by_label[1].phi_mm[59] = -0.25F;
  written.last.resolved.labels = {{.label = 3, .window = levelset::Window{10, 20}},
                                  {.label = 60000}};
  written.fields = {snapshot()};
  write_series_checkpoint(path, "print", written);
  const StoredSeries read = read_series_checkpoint(path, grid, 3, 2);
  CHECK(read.fingerprint == "print");
  REQUIRE(read.progress.labels.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const LabelVolume &a = read.progress.labels[i], &b = written.labels[i];
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  CHECK(read.progress.reports == "[{},{}]");
  CHECK(read.progress.volume_ml == 1.5);
  CHECK(read.progress.iterations == 123);
  REQUIRE(read.progress.last.by_label.size() == 2);
  CHECK(read.progress.last.by_label[1].label == 60000);
  CHECK(read.progress.last.by_label[1].phi_mm[59] == -0.25F);
  CHECK(read.progress.last.resolved.labels[0].window->upper == 20);
  CHECK_FALSE(read.progress.last.resolved.labels[1].window);
  REQUIRE(read.progress.fields.size() == 1);
  CHECK(read.progress.fields[0].phi[1] == snapshot().phi[1]);

  CHECK_THROWS_WITH(read_series_checkpoint(path, Grid{{20, 4, 2}}, 3, 2), Catch::Contains(path));
  CHECK_THROWS_WITH(read_series_checkpoint(path, grid, 2, 2), Catch::Contains("more frames"));
  CHECK_THROWS_AS(read_checkpoint(path, "print", kShape), InputError);
  CHECK_THROWS_WITH(read_series_checkpoint(path, grid, 3, 1), Catch::Contains("more labels"));
  written.last = {};  // there is nothing that the third frame could start from
  write_series_checkpoint(path, "print", written);
  CHECK_THROWS_WITH(read_series_checkpoint(path, grid, 3, 2), Catch::Contains("no surfaces"));
  write_checkpoint(path, "print", {snapshot()});
  CHECK_THROWS_WITH(read_series_checkpoint(path, grid, 3, 2),
                    Catch::Contains("no checkpoint of a"));
}

TEST_CASE("a checkpoint of a series that no run can have written is refused") {
  const test::Folder folder;
  const std::string path = folder / "s.ckpt";
  const Grid grid{{5, 4, 3}};
  const auto refused = [&](const std::function<void(SeriesProgress&)>& damage, const char* why) {
    SeriesProgress written;
    written.labels = {LabelVolume(grid, 3)};
    written.reports = "[{}]";
    written.last.by_label = {{.label = 3, .phi_mm = Volume<float>(grid, -2)},
                             {.label = 9, .phi_mm = Volume<float>(grid, 6)}};
    written.last.resolved.labels = {{.label = 3, .window = levelset::Window{10, 20}}, {.label = 9}};
    damage(written);
    write_series_checkpoint(path, "print", written);
    CHECK_THROWS_WITH(read_series_checkpoint(path, grid, 3, 2), Catch::Contains(why));
  };
  refused([](SeriesProgress& p) { p.labels[0][7] = -7; }, "labels that its surfaces have not");
  refused([](SeriesProgress& p) { p.last.by_label[0].label = -5; }, "ascending");
  refused([](SeriesProgress& p) { p.last.by_label[1].label = 3; }, "ascending");
  refused([](SeriesProgress& p) { p.last.by_label[1].phi_mm[1] = NAN; }, "not a number");
  refused([](SeriesProgress& p) { p.last.by_label[0].phi_mm = p.last.by_label[1].phi_mm; },
          "no surfaces");
  refused([](SeriesProgress& p) { p.last.resolved.labels[0].window->upper = 10; }, "window");
  refused([](SeriesProgress& p) { p.volume_ml = NAN; }, "figures");
  refused([](SeriesProgress& p) { p.iterations = -1; }, "figures");
  refused([](SeriesProgress& p) { p.reports = "[{},{}]"; }, "one per frame");
  refused([](SeriesProgress& p) { p.reports = "[{}"; }, "one per frame");
  refused(
      [](SeriesProgress& p) { p.reports = std::string(1000000, '[') + std::string(1000000, ']'); },
      "nested too deep");
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

TEST_CASE("a file that is no checkpoint is not removed as one") {
  const test::Folder folder;
  const std::string text = folder / "notes.txt", checkpoint = folder / "s.ckpt";
  std::ofstream(text) << "what somebody wrote down";
  const std::string series = folder / "t.ckpt", model = folder / "m.pbt";
  write_checkpoint(checkpoint, "print", {snapshot()});
  write_series_checkpoint(series, "print", {});
  models::Container other;
  other.kind = "pbt";
  models::write_container(model, other);
  for (const std::string& path : {text, checkpoint, series, model, folder / "nothing"}) {
    remove_checkpoint(path, {kCheckpointKind, kSeriesCheckpointKind});
  }
  CHECK(is_file(text));
  CHECK(is_file(model));
  CHECK_FALSE(is_file(checkpoint));
  CHECK_FALSE(is_file(series));
}

TEST_CASE("a fingerprint changes with everything that the result depends on") {
  levelset::SegmentRequest request;
  request.image = Volume<float>(Grid{{4, 4, 4}});
  request.spheres.push_back({{1, 1, 1}, 2, true, 1});
  const std::string before = fingerprint_of(request);
  CHECK(fingerprint_of(request) == before);
  const auto differs = [&](auto&& change) {
    levelset::SegmentRequest other = request;
    change(other);
    return fingerprint_of(other) != before;
  };
  CHECK(differs([](auto& r) { r.image[5] = 1; }));
  CHECK(differs([](auto& r) { r.spheres[0].radius = 3; }));
  CHECK(differs([](auto& r) { r.spheres[0].is_index = false; }));
  CHECK(differs([](auto& r) { r.spheres[0].label = 2; }));
  CHECK(differs([](auto& r) { r.config.curvature_weight = 0.5; }));
  CHECK(differs([](auto& r) { r.mask = Volume<uint8_t>(r.image.grid(), 1); }));
  CHECK(differs([](auto& r) { r.frozen = LabelVolume(r.image.grid()); }));
  CHECK(differs([](auto& r) { r.initial_labels = LabelVolume(r.image.grid(), 1); }));
  CHECK(differs([](auto& r) { r.initial_phi.push_back({1, r.image}); }));
  CHECK(differs([](auto& r) { r.windows.push_back({1, 2, 3}); }));
  CHECK(differs([](auto& r) { r.speed = r.image; }));
  CHECK(differs([](auto& r) { r.arrival_mm = 1; }));
  CHECK(differs([](auto& r) { r.initial_level_mm = 1; }));
  CHECK(differs([](auto& r) { r.config.tracker = levelset::Tracker::kDense; }));
}

TEST_CASE(
    "a fingerprint leaves out what says when a run ends, with a region term its length alone") {
  levelset::SegmentRequest request;
  request.image = Volume<float>(Grid{{4, 4, 4}});
  for (const double region_weight : {0.0, 0.5}) {
    request.config.region_weight = region_weight;
    const std::string before = fingerprint_of(request);
    const auto differs = [&](auto&& change) {
      levelset::SegmentRequest other = request;
      change(other.config);
      return fingerprint_of(other) != before;
    };
    const bool is_rest_fixed = region_weight > 0;
    CHECK_FALSE(differs([](auto& c) { c.max_iterations = 7; }));
    CHECK(differs([](auto& c) { c.unchanged_labels = 7; }) == is_rest_fixed);
    CHECK(differs([](auto& c) { c.most_changed = 7; }) == is_rest_fixed);
    CHECK(differs([](auto& c) { c.rms = 0.5; }) == is_rest_fixed);
    CHECK(differs([](auto& c) { c.max_volume_ml = 7; }) == is_rest_fixed);
    CHECK(differs([](auto& c) { c.max_distance_mm = 7; }));
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
  CHECK_NOTHROW(segmentation_plot(result_of(0), levelset::Tracker::kDense, "empty"));
}

TEST_CASE("a distance where nothing or all is inside is the diagonal of the image") {
  levelset::SegmentResult result = result_of(1);
  CHECK(distance_of_all(result, 1)[0] == Approx(std::sqrt(48.0)));
  for (int32_t& label : result.labels) label = 1;
  CHECK(distance_of_all(result, 1)[0] == Approx(-std::sqrt(48.0)));
}

}  // namespace
}  // namespace larch::pipeline
