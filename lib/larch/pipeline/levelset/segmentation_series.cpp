// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_series.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/levelset/outputs/segmentation_report.h"
#include "larch/pipeline/levelset/segmentation_plan.h"

namespace larch::pipeline {
namespace {

int frames_of(const SegmentationRequest& request) {
  ReadOptions read = request.read;
  read.warn = nullptr;  // the reading itself will say it
  const int frames = probe_image(request.image, read).frames;
  if (frames < 2) {
    throw InputError("'" + request.image + "' has one frame; leave --time-series out");
  }
  return frames;
}

SegmentationRequest of_frame(SegmentationRequest request, int frame) {
  request.read.frame = frame;
  return request;
}

/// Throws ResultError if a label has vanished: the next frame would have nothing to start from.
void require_something(const levelset::SegmentResult& result, int frame) {
  for (const levelset::LabelResult& label : result.by_label) {
    if (label.voxels > 0) continue;
    throw ResultError("frame " + std::to_string(frame) + ": nothing is left of label " +
                      std::to_string(label.label) +
                      "; segment the frames before it alone (--frame), or choose --lower and "
                      "--upper that fit all of them");
  }
}

}  // namespace

void check_series(const SegmentationFiles& files, bool is_part) {
  SegmentationFiles labels;
  labels.labels = files.labels;
  if (files.labels.empty() || files.names().outputs.size() != labels.names().outputs.size()) {
    throw UsageError("--time-series writes --output, a label map of four axes, and nothing else");
  }
  const std::string ending = file_extension(files.labels);
  if (ending != ".nii" && ending != ".nii.gz") {
    throw UsageError("--time-series writes .nii or .nii.gz, not '" + files.labels + "'");
  }
  if (is_part) {
    throw UsageError("--time-series goes with neither --frame nor --resume");
  }
}

Outputs segment_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context) {
  const int frames = frames_of(request);
  auto labels = std::make_shared<std::vector<LabelVolume>>();
  auto table = nlohmann::ordered_json::array();
  std::shared_ptr<SegmentationJob> job = read_job(of_frame(request, 1), config, context);
  double volume_ml = 0, iterations = 0;
  for (int frame = 1; frame <= frames; ++frame) {
    context.info("frame " + std::to_string(frame) + " of " + std::to_string(frames));
    start_job(*job, context);
    SegmentationJob* const one[] = {job.get()};
    move_jobs(one, nullptr, context);
    finish_job(*job, context);
    require_something(job->result, frame);
    for (const levelset::LabelResult& label : job->result.by_label) volume_ml += label.volume_ml;
    iterations += static_cast<double>(job->result.by_label[0].progress.iterations);
    table.push_back(segmentation_report(job->result, job->request.config));
    labels->push_back(std::move(job->result.labels));
    if (frame == frames) break;
    auto next = std::make_shared<SegmentationJob>();
    next->image = job->image;
    next->request =
        levelset::next_frame(std::move(job->request), job->result,
                             read_image(request.image, of_frame(request, frame + 1).read));
    job = std::move(next);
  }
  Outputs outputs;
  outputs.grid(request.image, describe(labels->front().grid()));
  outputs.metric("frames", frames)
      .metric("mean_volume_ml", volume_ml / frames)
      .metric("iterations", iterations);
  outputs.report("frames", table);
  outputs.add(
      request.files.labels,
      [labels](const std::string& path) { write_labelmap_series(path, *labels); }, "output");
  return outputs;
}

Plan plan_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                 const Context& context) {
  const int frames = frames_of(request);
  Plan plan = plan_segmentation(of_frame(request, 1), config, context);
  for (Plan::File& file : plan.files) file.bytes *= frames;
  plan.notes.push_back(std::to_string(frames) + " frames, each from the surfaces of the last");
  return plan;
}

}  // namespace larch::pipeline
