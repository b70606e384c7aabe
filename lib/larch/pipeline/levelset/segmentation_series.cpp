// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_series.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/config/suggest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/models/file.h"
#include "larch/pipeline/levelset/outputs/segmentation_report.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"
#include "larch/pipeline/levelset/segmentation_plan.h"
#include "larch/pipeline/levelset/series_checkpoint.h"
#include "larch/pipeline/resume.h"

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

bool is_empty(const LabelVolume& labels) {
  return std::all_of(labels.begin(), labels.end(), [](int32_t label) { return label == 0; });
}

/// The labels that have vanished on the way, each with the first frame that is without it; empty if
/// all are there to the end.
std::string vanished_text(const SeriesProgress& progress) {
  std::set<int32_t> left;
  for (const levelset::LabelResult& label : progress.last.by_label) left.insert(label.label);
  std::vector<std::string> gone;
  for (size_t t = 0; t < progress.labels.size() && !left.empty(); ++t) {
    const std::set<int32_t> there(progress.labels[t].begin(), progress.labels[t].end());
    for (const int32_t label : std::exchange(left, {})) {
      if (there.contains(label)) {
        left.insert(label);
      } else {
        gone.push_back("frame " + std::to_string(t + 1) + ": nothing is left of label " +
                       std::to_string(label));
      }
    }
  }
  return config::join(gone, "; ");
}

/// What the frames of a series depend on beside their images: all settings, for those of the frames
/// that are finished cannot be others any more.
std::string fingerprint_of_series(const levelset::SegmentRequest& first) {
  return digest_of(fingerprint_of(first) + config::to_json(first.config).dump());
}

/// A series that is segmented frame by frame.
class Series {
 public:
  Series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
         const Context& context)
      : request_(request), config_(config), context_(context), frames_(frames_of(request)) {}

  Outputs run() {
    job_ = read_job(of_frame(request_, 1, frames_), config_, context_);
    if (!request_.checkpoint.empty()) fingerprint_ = fingerprint_of_series(job_->request);
    if (request_.resume) resume();
    try {
      while (finished() < frames_ && has_surfaces()) do_frame();
    } catch (const Stopped& stopped) {
      if (request_.checkpoint.empty()) throw;
      save();
      throw Stopped(stopped_text(request_.checkpoint), stopped.code());
    }
    leave_rest_empty();
    return outputs();
  }

 private:
  int finished() const { return static_cast<int>(progress_.labels.size()); }
  /// Whether there is anything to start the next frame from.
  bool has_surfaces() const { return finished() == 0 || !is_empty(progress_.labels.back()); }

  void do_frame() {
    const int frame = finished() + 1;
    context_.info("frame " + std::to_string(frame) + " of " + std::to_string(frames_));
    start_job(*job_, context_);
    if (!progress_.fields.empty()) {
      go_on_from(request_.checkpoint, job_->run, std::exchange(progress_.fields, {}), context_);
    }
    SegmentationJob* const one[] = {job_.get()};
    move_jobs(
        one,
        [&] {
          if (clock_.is_due(context_) && !context_.stop_requested()) save();
        },
        context_);
    finish_job(*job_, context_);
    take_result();
    if (finished() == frames_ || !has_surfaces()) return;
    job_->request.image = read_frame(frame + 1);
    start_from_last();
  }

  void take_result() {
    const levelset::SegmentResult& result = job_->result;
    for (const levelset::LabelResult& label : result.by_label) {
      progress_.volume_ml += label.volume_ml;
    }
    progress_.iterations += static_cast<double>(result.by_label[0].progress.iterations);
    reports_.push_back(segmentation_report(result, job_->request.config));
    progress_.last = kept_of(result, progress_.last);
    progress_.labels.push_back(std::move(job_->result.labels));
  }

  /// Frames after one in which nothing was left.
  void leave_rest_empty() {
    const Grid grid = progress_.labels.back().grid();
    while (finished() < frames_) {
      progress_.labels.emplace_back(grid);
      reports_.push_back({{"labels", nlohmann::ordered_json::array()}});
    }
  }

  /// The image of a frame, which the fingerprint knows from then on.
  Volume<float> read_frame(int frame) {
    Volume<float> image = read_image(request_.image, of_frame(request_, frame, frames_).read);
    if (!request_.checkpoint.empty()) {
      fingerprint_ = digest_of(fingerprint_ + digest_of(image));
    }
    return image;
  }

  /// The next frame, whose image is in the request of the job already.
  void start_from_last() {
    auto next = std::make_shared<SegmentationJob>();
    next->image = job_->image;
    Volume<float> image = std::move(job_->request.image);
    next->request =
        levelset::next_frame(std::move(job_->request), progress_.last, std::move(image));
    job_ = std::move(next);
  }

  void resume() {
    if (!has_checkpoint_to_resume(request_.checkpoint, "the first frame", context_)) return;
    StoredSeries stored = read_series_checkpoint(request_.checkpoint, job_->request.image.grid(),
                                                 frames_, labels_of(job_->request).size());
    const int done = static_cast<int>(stored.progress.labels.size());
    Volume<float> image;
    for (int frame = 2; frame <= done + 1; ++frame) image = read_frame(frame);
    models::naming_file("checkpoint", request_.checkpoint,
                        [&] { require_fingerprint(stored.fingerprint, fingerprint_); });
    progress_ = std::move(stored.progress);
    reports_ = nlohmann::ordered_json::parse(progress_.reports);
    context_.info("going on from '" + request_.checkpoint + "', which has " + std::to_string(done) +
                  " of " + std::to_string(frames_) + " frames");
    if (done == 0) return;
    job_->request.image = std::move(image);
    start_from_last();
  }

  void save() {
    if (request_.checkpoint.empty()) return;
    progress_.reports = reports_.dump();
    if (job_->is_started) progress_.fields = levelset::snapshot_of(job_->run);
    save_checkpoint(request_.checkpoint, context_, [&](const std::string& temporary) {
      write_series_checkpoint(temporary, fingerprint_, progress_);
    });
    progress_.fields.clear();
    clock_.wrote();
  }

  Outputs outputs() {
    const std::string vanished = vanished_text(progress_);
    auto labels = std::make_shared<std::vector<LabelVolume>>(std::move(progress_.labels));
    Outputs outputs;
    outputs.grid(request_.image, describe(labels->front().grid()));
    outputs.metric("frames", frames_)
        .metric("mean_volume_ml", progress_.volume_ml / frames_)
        .metric("iterations", progress_.iterations);
    outputs.report("frames", reports_);
    outputs.add(
        request_.files.labels,
        [labels](const std::string& path) { write_labelmap_series(path, *labels); }, "output");
    if (!vanished.empty()) {
      outputs.status("rejected", vanished +
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
  std::shared_ptr<SegmentationJob> job_;  // of the frame after the finished ones
  std::string fingerprint_;               // up to that frame
  SeriesProgress progress_;
  nlohmann::ordered_json reports_ = nlohmann::ordered_json::array();
  CheckpointClock clock_;
};

}  // namespace

void check_series(const SegmentationFiles& files, bool has_more) {
  SegmentationFiles labels;
  labels.labels = files.labels;
  if (files.labels.empty() || files.names().outputs.size() != labels.names().outputs.size()) {
    throw UsageError("--time-series writes --output, a label map of four axes, and nothing else");
  }
  const std::string ending = file_extension(files.labels);
  if (ending != ".nii" && ending != ".nii.gz") {
    throw UsageError("--time-series writes .nii or .nii.gz, not '" + files.labels + "'");
  }
  if (has_more) {
    throw UsageError("--time-series goes with neither --frame nor --keep-checkpoint");
  }
}

Outputs segment_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context) {
  return Series(request, config, context).run();
}

Plan plan_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                 const Context& context) {
  const int frames = frames_of(request);
  SegmentationRequest first = of_frame(request, 1, frames);
  first.resume = false;
  Plan plan = plan_segmentation(first, config, {}, context);
  for (Plan::File& file : plan.files) file.bytes *= frames;
  plan.notes.push_back(std::to_string(frames) + " frames, each from the surfaces of the last");
  note_resume(request, "the first frame", context, plan);
  return plan;
}

}  // namespace larch::pipeline
