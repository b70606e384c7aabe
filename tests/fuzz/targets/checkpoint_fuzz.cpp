// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Checkpoints of level sets. Their digests would stop every mutation at once, so that the input is
// put into a container of the right kind and fingerprint, as somebody would who makes such a file
// on purpose. The first byte chooses how the run moves: by bricks (b), voxels (v), seven buffers
// (s) or all voxels (d), with a capital letter with means of regions. The rest is cut at the word
// "fields" into one piece per label. What is accepted goes on to its end, and is stored, read back
// and compared on the way. With a t (or T) it is the checkpoint of a time series, whose first
// pieces are its frames, its reports and its surfaces: the next frame starts from them.
#include <algorithm>
#include <map>
#include <utility>

#include "larch/models/file.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"
#include "larch/pipeline/levelset/series_checkpoint.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;
using namespace larch::levelset;

constexpr const char* kFingerprint = "0123";
constexpr std::string_view kCut = "fields";
/// Of request_of().
constexpr pipeline::CheckpointShape kShape{.bricks = 4, .labels = 2};

SegmentRequest request_of(char choice) {
  SegmentRequest request;
  Grid grid;
  grid.size = {11, 9, 3};
  grid.spacing_mm = {1, 1, 2};
  request.image = Volume<float>(grid);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    request.image[i] = static_cast<float>(80 + 5 * (i % 7));
  }
  request.spheres = {{.centre = {3, 4, 1}, .radius = 2.5, .is_index = true},
                     {.centre = {8, 4, 1}, .radius = 2.5, .is_index = true, .label = 2}};
  LevelsetConfig& config = request.config;
  config.lower = 70;
  config.upper = 130;
  config.max_iterations = 40;
  if (choice < 'a') config.region_weight = 0.3;
  config.region_every = 7;
  const std::map<char, Tracker> trackers{
      {'v', Tracker::kVoxel}, {'s', Tracker::kVoxel}, {'d', Tracker::kDense}};
  const auto found = trackers.find(static_cast<char>(choice | 0x20));
  config.tracker = found == trackers.end() ? Tracker::kBrick : found->second;
  if ((choice | 0x20) == 's') config.duplicates = Duplicates::kBuffers;
  return request;
}

/// The names of the pieces of an input, in their order.
std::vector<std::string> section_names(bool is_series) {
  std::vector<std::string> names;
  if (is_series) names = {"frames", "reports", "last"};
  for (int number = 0; number < 9; ++number) names.push_back("fields/" + std::to_string(number));
  return names;
}

std::string container_of(std::string_view bytes, bool is_series) {
  models::Container container;
  container.kind = is_series ? "levelset-series" : "levelset-checkpoint";
  pipeline::put_fingerprint(kFingerprint, container);
  for (const std::string& name : section_names(is_series)) {
    const size_t end = bytes.find(kCut);
    container.sections[name].bytes = bytes.substr(0, end);
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + kCut.size());
  }
  return models::encode_container(container);
}

bool is_same(const FieldSnapshot& a, const FieldSnapshot& b) {
  return a.phi == b.phi && a.progress.iterations == b.progress.iterations &&
         a.progress.stop == b.progress.stop && a.active.items == b.active.items &&
         a.history.size() == b.history.size() && a.means_at == b.means_at;
}

/// Moves a run to its end; what it stores on the way is what is read back.
void move(SegmentRun run) {
  advance(run, 5, {});
  const std::vector<FieldSnapshot> fields = snapshot_of(run);
  const std::string path = fuzz::folder() + "/back.ckpt";
  pipeline::write_checkpoint(path, kFingerprint, fields);
  const std::vector<FieldSnapshot> back = pipeline::read_checkpoint(path, kFingerprint, kShape);
  fuzz::require(std::equal(fields.begin(), fields.end(), back.begin(), back.end(), is_same),
                "a checkpoint changed on its way through a file");
  advance(run, 1000, {});
  fuzz::require(is_done(run), "a run goes on beyond its largest number of iterations");
  for (const LabelResult& label : finish_segmentation(std::move(run), {}).by_label) {
    fuzz::require(std::all_of(label.phi_mm.begin(), label.phi_mm.end(),
                              [](float value) { return value >= -3 && value <= 3; }),
                  "a level set beyond its clamp");
  }
}

template <class T>
bool same_voxels(const Volume<T>& a, const Volume<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void require_same(const pipeline::SeriesProgress& a, const pipeline::SeriesProgress& b) {
  bool is_equal =
      a.labels.size() == b.labels.size() && a.reports == b.reports && a.volume_ml == b.volume_ml &&
      a.iterations == b.iterations && a.last.by_label.size() == b.last.by_label.size() &&
      std::equal(a.fields.begin(), a.fields.end(), b.fields.begin(), b.fields.end(), is_same);
  for (size_t i = 0; is_equal && i < a.labels.size(); ++i) {
    is_equal = same_voxels(a.labels[i], b.labels[i]);
  }
  for (size_t f = 0; is_equal && f < a.last.by_label.size(); ++f) {
    is_equal = same_voxels(a.last.by_label[f].phi_mm, b.last.by_label[f].phi_mm);
  }
  fuzz::require(is_equal, "a series changed on its way through a file");
}

/// Moves the frame that a run is in; `fields` is where it was, if it had begun.
void go_on(const SegmentRequest& request, std::vector<FieldSnapshot> fields) {
  SegmentRun run = start_segmentation(request, {});
  const bool has_begun = !fields.empty();
  if (!has_begun ||
      fuzz::accepts({ExitCode::kInput}, "", [&] { restore(run, std::move(fields), {}); })) {
    move(std::move(run));
  }
}

void read_series(const std::string& path, char choice) {
  constexpr int kFrames = 3;
  SegmentRequest request = request_of(choice);
  const Grid grid = request.image.grid();
  pipeline::StoredSeries stored;
  const bool is_read = fuzz::accepts({ExitCode::kInput}, "case.ckpt", [&] {
    stored = pipeline::read_series_checkpoint(path, grid, kFrames, kShape.labels);
  });
  if (!is_read) return;
  const std::string back = fuzz::folder() + "/back.ckpt";
  pipeline::write_series_checkpoint(back, kFingerprint, stored.progress);
  require_same(stored.progress,
               pipeline::read_series_checkpoint(back, grid, kFrames, kShape.labels).progress);
  if (!stored.progress.labels.empty()) {
    request = next_frame(std::move(request), stored.progress.last, request_of(choice).image);
  }
  go_on(request, std::move(stored.progress.fields));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data, size).substr(1);
  const auto choice = static_cast<char>(data[0]);
  const bool is_series = (choice | 0x20) == 't';
  const std::string path = fuzz::file_of("case.ckpt", container_of(bytes, is_series));
  if (is_series) {
    read_series(path, choice);
    return 0;
  }
  std::vector<FieldSnapshot> fields;
  const bool is_read = fuzz::accepts({ExitCode::kInput}, "case.ckpt", [&] {
    fields = pipeline::read_checkpoint(path, kFingerprint, kShape);
  });
  if (is_read) go_on(request_of(choice), std::move(fields));
  return 0;
}
