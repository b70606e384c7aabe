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

namespace larch::pipeline {
namespace {

SegmentationJob read_frame(const cases::CaseJob& c, const SegmentationRequest& request) {
  ReadOptions first = c.read;
  first.frame = 1;
  SegmentationJob job;
  job.image = c.row.image;
  job.request = read_segmentation(c.row.image, request.seeds, request.config, first);
  return job;
}

/// A series that is segmented frame by frame.
class Series {
 public:
  Series(const cases::CaseJob& c, const SegmentationRequest& request, const Context& context)
      : case_(c), context_(context), frames_(frames_of_series(c)), job_(read_frame(c, request)) {}

  Outputs run() {
    context_.info(describe(job_.request.image.grid()));
    for (const int32_t label : labels_of(job_.request)) left_.insert(label);
    while (finished() < frames_ && !left_.empty()) do_frame();
    leave_rest_empty();
    return outputs();
  }

 private:
  int finished() const { return static_cast<int>(labels_.size()); }

  void do_frame() {
    const int frame = finished() + 1;
    context_.info("frame " + std::to_string(frame) + " of " + std::to_string(frames_));
    solve(job_, context_);
    take_result();
    if (finished() == frames_ || left_.empty()) return;
    ReadOptions next = case_.read;
    next.frame = frame + 1;
    job_.request = levelset::next_frame(std::move(job_.request), job_.result,
                                        read_image(case_.row.image, next));
  }

  void take_result() {
    levelset::SegmentResult& result = job_.result;
    for (const levelset::LabelResult& label : result.by_label) volume_ml_ += label.volume_ml;
    iterations_ += static_cast<double>(result.by_label[0].progress.iterations);
    reports_.push_back(segmentation_report(result, job_.request.config));
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
    outputs.grid(case_.row.image, describe(labels->front().grid()));
    outputs.metric("frames", frames_)
        .metric("mean_volume_ml", volume_ml_ / frames_)
        .metric("iterations", iterations_);
    outputs.report("frames", reports_);
    outputs.add(case_.file("output"),
                [labels, threads = context_.threads](const std::string& path) {
                  write_labelmap_series(path, *labels, threads);
                });
    if (!gone_.empty()) {
      outputs.status("rejected", config::join(gone_, "; ") +
                                     "; it is missing from there on: segment the frames before it "
                                     "alone (--frame), or choose --lower and --upper that fit all "
                                     "of them");
    }
    return outputs;
  }

  const cases::CaseJob& case_;
  const Context& context_;
  const int frames_;
  SegmentationJob job_;  ///< of the frame after the finished ones
  // Of the finished frames:
  std::vector<LabelVolume> labels_;
  nlohmann::ordered_json reports_ = nlohmann::ordered_json::array();
  double volume_ml_ = 0, iterations_ = 0;
  std::set<int32_t> left_;         ///< labels that were there in all of them
  std::vector<std::string> gone_;  ///< says of each of the others in which frame it vanished
};

}  // namespace

int frames_of_series(const cases::CaseJob& c) {
  ReadOptions read = c.read;
  read.warn = nullptr;  // the reading itself will say it
  const int frames = probe_image(c.row.image, read).frames;
  if (frames < 2) {
    throw InputError("'" + c.row.image + "' has one frame; leave --time-series out");
  }
  return frames;
}

void check_series(const cases::CaseJob& c) {
  if (!c.wants("output") || c.files.size() != 1) {
    throw UsageError("--time-series writes --output, a label map of four axes, and nothing else");
  }
  const std::string ending = file_extension(c.file("output"));
  if (ending != ".nii" && ending != ".nii.gz") {
    throw UsageError("--time-series writes .nii or .nii.gz, not '" + c.file("output") + "'");
  }
  if (c.read.frame) throw UsageError("--time-series takes all frames; leave --frame out");
}

Outputs segment_series(const cases::CaseJob& c, const SegmentationRequest& request) {
  const cases::Turn turn = c.turn();
  return Series(c, request, turn.context()).run();
}

}  // namespace larch::pipeline
