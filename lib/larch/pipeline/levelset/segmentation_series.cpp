// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_series.h"

#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/config/suggest.h"
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

SegmentationRequest of_frame(SegmentationRequest request, int frame, int frames) {
  request.read.frame = frame;
  request.frames = frames;
  return request;
}

/// A series that is segmented frame by frame.
class Series {
 public:
  Series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
         const Context& context)
      : request_(request), config_(config), context_(context), frames_(frames_of(request)) {}

  Outputs run() {
    job_ = read_job(of_frame(request_, 1, frames_), config_, context_);
    for (const int32_t label : labels_of(job_->request)) left_.insert(label);
    while (finished() < frames_ && !left_.empty()) do_frame();
    leave_rest_empty();
    return outputs();
  }

 private:
  int finished() const { return static_cast<int>(labels_.size()); }

  void do_frame() {
    const int frame = finished() + 1;
    context_.info("frame " + std::to_string(frame) + " of " + std::to_string(frames_));
    start_job(*job_, context_);
    SegmentationJob* const one[] = {job_.get()};
    move_jobs(one, context_);
    finish_job(*job_, context_);
    take_result();
    if (finished() == frames_ || left_.empty()) return;
    Volume<float> image = read_image(request_.image, of_frame(request_, frame + 1, frames_).read);
    auto next = std::make_shared<SegmentationJob>();
    next->image = job_->image;
    next->request = levelset::next_frame(std::move(job_->request), job_->result, std::move(image));
    job_ = std::move(next);
  }

  void take_result() {
    levelset::SegmentResult& result = job_->result;
    for (const levelset::LabelResult& label : result.by_label) volume_ml_ += label.volume_ml;
    iterations_ += static_cast<double>(result.by_label[0].progress.iterations);
    reports_.push_back(segmentation_report(result, job_->request.config));
    const std::set<int32_t> there(result.labels.begin(), result.labels.end());
    for (const int32_t label : std::exchange(left_, {})) {
      if (there.contains(label)) {
        left_.insert(label);
      } else {
        gone_.push_back("frame " + std::to_string(finished() + 1) + ": nothing is left of label " +
                        std::to_string(label));
      }
    }
    labels_.push_back(std::move(result.labels));
  }

  /// Frames after one in which nothing was left.
  void leave_rest_empty() {
    const Grid grid = labels_.back().grid();
    while (finished() < frames_) {
      labels_.emplace_back(grid);
      reports_.push_back({{"labels", nlohmann::ordered_json::array()}});
    }
  }

  Outputs outputs() {
    auto labels = std::make_shared<std::vector<LabelVolume>>(std::move(labels_));
    Outputs outputs;
    outputs.grid(request_.image, describe(labels->front().grid()));
    outputs.metric("frames", frames_)
        .metric("mean_volume_ml", volume_ml_ / frames_)
        .metric("iterations", iterations_);
    outputs.report("frames", reports_);
    outputs.add(
        request_.files.labels,
        [labels, threads = context_.threads](const std::string& path) {
          write_labelmap_series(path, *labels, threads);
        },
        "output");
    if (!gone_.empty()) {
      outputs.status("rejected", config::join(gone_, "; ") +
                                     "; it is missing from there on: segment the frames before it "
                                     "alone (--frame), or choose --lower and --upper that fit all "
                                     "of them");
    }
    return outputs;
  }

  const SegmentationRequest& request_;
  const levelset::LevelsetConfig& config_;
  const Context& context_;
  const int frames_;
  std::shared_ptr<SegmentationJob> job_;  ///< of the frame after the finished ones
  // Of the finished frames:
  std::vector<LabelVolume> labels_;
  nlohmann::ordered_json reports_ = nlohmann::ordered_json::array();
  double volume_ml_ = 0, iterations_ = 0;
  std::set<int32_t> left_;         ///< labels that were there in all of them
  std::vector<std::string> gone_;  ///< says of each of the others in which frame it vanished
};

}  // namespace

void check_series(const SegmentationFiles& files, bool has_frame) {
  SegmentationFiles labels;
  labels.labels = files.labels;
  if (files.labels.empty() || files.names().outputs.size() != labels.names().outputs.size()) {
    throw UsageError("--time-series writes --output, a label map of four axes, and nothing else");
  }
  const std::string ending = file_extension(files.labels);
  if (ending != ".nii" && ending != ".nii.gz") {
    throw UsageError("--time-series writes .nii or .nii.gz, not '" + files.labels + "'");
  }
  if (has_frame) throw UsageError("--time-series takes all frames; leave --frame out");
}

Outputs segment_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context) {
  return Series(request, config, context).run();
}

Plan plan_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                 const Context& context) {
  const int frames = frames_of(request);
  Plan plan = plan_segmentation(of_frame(request, 1, frames), config, {}, context);
  for (Plan::File& file : plan.files) file.bytes *= frames;
  plan.notes.push_back(std::to_string(frames) + " frames, each from the surfaces of the last");
  return plan;
}

}  // namespace larch::pipeline
