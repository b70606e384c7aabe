// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/pipeline/levelset/outputs/segmentation_outputs.h"
#include "larch/pipeline/levelset/segmentation_memory.h"

namespace larch::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds that the steps between two looks at the stop flag and the clock shall take.
constexpr double kPauseSeconds = 0.5;
/// Iterations between two looks: at first, and at most.
constexpr int64_t kFirstSteps = 64, kMostSteps = 2000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// How far the jobs are: the least of all fields, of which each is at its end when its labels have
/// not changed for long enough or it has made all of its iterations.
double fraction_done(std::span<SegmentationJob* const> jobs) {
  double least = 1;
  for (const SegmentationJob* job : jobs) {
    const levelset::StopRules& stops = job->run.stops;
    for (const levelset::FieldProgress& progress : job->run.progress) {
      if (progress.stop != levelset::Stop::kNone) continue;
      const auto part = [](int64_t value, int64_t whole) {
        return whole > 0 ? static_cast<double>(value) / static_cast<double>(whole) : 0;
      };
      least = std::min(least, std::max(part(progress.quiet, stops.unchanged_labels),
                                       part(progress.iterations, stops.max_iterations)));
    }
  }
  return least;
}

std::string progress_text(std::span<SegmentationJob* const> jobs) {
  int64_t iteration = 0, active = 0, changed = 0;
  const bool bricks = jobs.front()->request.config.tracker == levelset::Tracker::kBrick;
  for (const SegmentationJob* job : jobs) {
    for (size_t f = 0; f < job->run.history.size(); ++f) {
      iteration = std::max(iteration, job->run.progress[f].iterations);
      if (job->run.history[f].empty() || job->run.progress[f].stop != levelset::Stop::kNone) {
        continue;
      }
      active += job->run.history[f].back().active;
      changed += job->run.history[f].back().changed;
    }
  }
  return "iteration " + std::to_string(iteration) + ", " + std::to_string(active) +
         (bricks ? " active bricks, " : " active voxels, ") + std::to_string(changed) +
         " voxels changed";
}

/// Logs the warnings from number `first` on.
void warn_from(const SegmentationJob& job, const std::vector<std::string>& warnings, size_t first,
               const Context& context) {
  for (size_t i = first; i < warnings.size(); ++i) {
    context.warn("'" + job.image + "': " + warnings[i]);
  }
}

bool all_done(std::span<SegmentationJob* const> jobs) {
  return std::all_of(jobs.begin(), jobs.end(),
                     [](const SegmentationJob* job) { return levelset::is_done(job->run); });
}

}  // namespace

void check_names(const std::string& image, const SegmentationSeeds& seeds,
                 const SegmentationFiles& files) {
  std::vector<std::string> paths = {image};
  for (const auto& [flag, path] : seeds.images()) paths.push_back(path);
  for (const CaseOutput& file : files.names().outputs) paths.push_back(file.path);
  check_label_files({files}, paths);
}

void require_label_files_free(const SegmentationRequest& request,
                              const std::vector<int32_t>& labels,
                              const std::vector<RunInput>& inputs, const CaseWriter& writer) {
  // Without a label map the skeleton has known the names from the start.
  if (!request.files.by_label || !request.seeds.init_labelmap) return;
  const CaseFiles files = request.files.names(labels);
  if (writer.require_free) writer.require_free({{}, files.companions});
  if (!writer.earlier) return;
  const EarlierOutputs earlier = writer.earlier(files, inputs);
  if (earlier.state == EarlierOutputs::State::kOther) throw OutputError(earlier.what);
}

std::shared_ptr<SegmentationJob> read_job(const SegmentationRequest& request,
                                          const levelset::LevelsetConfig& config,
                                          const Context& context) {
  auto job = std::make_shared<SegmentationJob>();
  const cases::Step step(job->seconds, "reading", 0, context);
  ReadOptions quiet = request.read;
  quiet.warn = nullptr;  // the reading itself will say it
  const ImageInfo info = probe_image(request.image, quiet);
  check_files_hold(request.files, info.grid);
  const auto require = [&](int64_t labels, bool is_read) {
    SegmentationMemory memory =
        segmentation_memory(info, request, config, labels, context.device.is_cuda());
    memory.device = 0;  // others may be there now: known when the job starts
    const auto free_bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
    require_memory(memory, info.grid, free_bytes + (is_read ? memory.images : 0), 0);
  };
  const auto known = static_cast<int64_t>(request.seeds.known_labels().size());
  require(std::max<int64_t>(1, known), /*is_read=*/false);
  job->image = request.image;
  job->request = read_segmentation(request.image, request.seeds, config, request.read);
  context.info(describe(job->request.image.grid()));
  require(static_cast<int64_t>(labels_of(job->request).size()), /*is_read=*/true);
  return job;
}

void start_job(SegmentationJob& job, const Context& context) {
  const cases::Step step(job.seconds, "speed and seeds", 0.01, context);
  if (context.device.is_cuda()) {
    const Grid& grid = job.request.image.grid();
    SegmentationMemory memory;
    memory.labels = static_cast<int64_t>(labels_of(job.request).size());
    memory.device = device_bytes(job.request);
    require_memory(memory, grid, context.device);
  }
  job.run = levelset::start_segmentation(job.request, context);
  job.is_started = true;
  warn_from(job, job.run.warnings, 0, context);
}

void move_jobs(std::span<SegmentationJob* const> jobs, const Context& context) {
  std::vector<levelset::SegmentRun*> runs;
  for (SegmentationJob* job : jobs) runs.push_back(&job->run);
  const Clock::time_point start = Clock::now();
  int64_t steps = kFirstSteps;
  double most = 0;
  while (!all_done(jobs)) {
    const Clock::time_point before = Clock::now();
    levelset::advance(runs, steps, context);
    const double seconds = seconds_since(before);
    if (context.stop_requested()) {
      throw Stopped("stopped while the surface moved", static_cast<ExitCode>(context.stop->load()));
    }
    most = std::max(most, fraction_done(jobs));
    context.progress(0.02 + 0.93 * most, progress_text(jobs));
    const double factor = std::clamp(kPauseSeconds / std::max(seconds, 1e-3), 0.25, 4.0);
    steps = std::clamp(static_cast<int64_t>(static_cast<double>(steps) * factor), int64_t{1},
                       kMostSteps);
  }
  const double seconds = seconds_since(start);
  for (SegmentationJob* job : jobs) job->seconds.emplace_back("solver", seconds);
}

void finish_job(SegmentationJob& job, const Context& context) {
  const cases::Step step(job.seconds, "labels", 0.95, context);
  const size_t told = job.run.warnings.size();
  job.result = levelset::finish_segmentation(std::move(job.run), context);
  warn_from(job, job.result.warnings, told, context);
}

Outputs segment_image(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                      const CaseWriter& writer, const Context& context) {
  const std::shared_ptr<SegmentationJob> job = read_job(request, config, context);
  const std::vector<int32_t> labels = labels_of(job->request);
  require_label_files_free(request, labels, {}, writer);
  for (const std::string& path : files_of_other_labels(request.files, labels)) {
    context.warn("'" + path +
                 "' is of a label that this run has not, and stays; if an earlier run "
                 "left it, remove it");
  }
  start_job(*job, context);
  SegmentationJob* const one[] = {job.get()};
  move_jobs(one, context);
  finish_job(*job, context);
  return segmentation_outputs(request.files, job, context);
}

}  // namespace larch::pipeline
