// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Checkpoints of level sets. Their digests would stop every mutation at once, so that the input is
// put into a container of the right kind and fingerprint, as somebody would who makes such a file
// on purpose. The first byte chooses how the run moves: by bricks (b), voxels (v), seven buffers
// (s) or all voxels (d), with a capital letter with means of regions. The rest is cut at the word
// "fields" into one piece per label. What is accepted goes on to its end, and is stored, read back
// and compared on the way.
#include <algorithm>
#include <map>
#include <utility>

#include "larch/models/file.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"
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

std::string container_of(std::string_view bytes) {
  models::Container container;
  container.kind = "levelset-checkpoint";
  pipeline::put_fingerprint(kFingerprint, container);
  for (int number = 0;; ++number) {
    const size_t end = bytes.find(kCut);
    container.sections["fields/" + std::to_string(number)].bytes = bytes.substr(0, end);
    if (end == std::string_view::npos || number == 8) break;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data, size).substr(1);
  const auto choice = static_cast<char>(data[0]);
  const std::string path = fuzz::file_of("case.ckpt", container_of(bytes));
  std::vector<FieldSnapshot> fields;
  const bool is_read = fuzz::accepts({ExitCode::kInput}, "case.ckpt", [&] {
    fields = pipeline::read_checkpoint(path, kFingerprint, kShape);
  });
  if (!is_read) return 0;
  const SegmentRequest request = request_of(choice);
  SegmentRun run = start_segmentation(request, {});
  if (fuzz::accepts({ExitCode::kInput}, "", [&] { restore(run, std::move(fields), {}); })) {
    move(std::move(run));
  }
  return 0;
}
