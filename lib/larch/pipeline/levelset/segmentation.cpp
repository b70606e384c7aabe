// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/pipeline/levelset/outputs/segmentation_outputs.h"
#include "larch/pipeline/levelset/segmentation_series.h"

namespace larch::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds that the steps between two looks at the stop flag and the clock shall take.
constexpr double kPauseSeconds = 0.5;
/// Iterations between two looks: at first, and at most.
constexpr int64_t kFirstSteps = 64, kMostSteps = 2000;

/// How far a run is: the least of all fields, of which each is at its end when its labels have not
/// changed for long enough or it has made all of its iterations.
double fraction_done(const levelset::SegmentRun& run) {
  double least = 1;
  for (const levelset::FieldProgress& progress : run.progress) {
    if (progress.stop != levelset::Stop::kNone) continue;
    const auto part = [](int64_t value, int64_t whole) {
      return whole > 0 ? static_cast<double>(value) / static_cast<double>(whole) : 0;
    };
    least = std::min(least, std::max(part(progress.quiet, run.stops.unchanged_labels),
                                     part(progress.iterations, run.stops.max_iterations)));
  }
  return least;
}

std::string progress_text(const levelset::SegmentRun& run, levelset::Tracker tracker) {
  int64_t iteration = 0, active = 0, changed = 0;
  for (size_t f = 0; f < run.history.size(); ++f) {
    iteration = std::max(iteration, run.progress[f].iterations);
    if (run.history[f].empty() || run.progress[f].stop != levelset::Stop::kNone) continue;
    active += run.history[f].back().active;
    changed += run.history[f].back().changed;
  }
  const bool bricks = tracker == levelset::Tracker::kBrick;
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

/// Throws UsageError if an image on this grid does not fit the format of its file.
void check_segmentation_fits(const cases::CaseJob& c, const Grid& grid) {
  for (const char* flag : {"output", "level-set", "distance"}) {
    if (c.wants(flag)) require_image_holds(c.file(flag), grid.size);
  }
}

/// The first of `names` that is the file of some label beside `path`: the labels of a label map are
/// not known before it is read.
std::string file_of_label(const std::string& path, const std::set<std::string>& names) {
  const std::string ending = file_extension(path);
  const std::string resolved = resolved_name(path);
  const std::string start = resolved.substr(0, resolved.size() - ending.size()) + ".label";
  for (auto at = names.lower_bound(start); at != names.end() && at->starts_with(start); ++at) {
    const std::string rest = at->substr(start.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && rest.substr(digits) == ending) return *at;
  }
  return "";
}

void move(SegmentationJob& job, const Context& context) {
  levelset::SegmentRun* const runs[] = {&job.run};
  const Clock::time_point start = Clock::now();
  int64_t steps = kFirstSteps;
  double most = 0;
  while (!levelset::is_done(job.run)) {
    const Clock::time_point before = Clock::now();
    levelset::advance(runs, steps, context);
    const double seconds = cases::seconds_since(before);
    if (context.stop_requested()) {
      throw Stopped("stopped while the surface moved", static_cast<ExitCode>(context.stop->load()));
    }
    most = std::max(most, fraction_done(job.run));
    context.progress(0.02 + 0.93 * most, progress_text(job.run, job.request.config.tracker));
    const double factor = std::clamp(kPauseSeconds / std::max(seconds, 1e-3), 0.25, 4.0);
    steps = std::clamp(static_cast<int64_t>(static_cast<double>(steps) * factor), int64_t{1},
                       kMostSteps);
  }
  job.seconds.emplace_back("solver", cases::seconds_since(start));
}

}  // namespace

void check_segmentation_names(const cases::CaseJob& c, const SegmentationRequest& request,
                              const std::set<std::string>& names) {
  const SegmentationSeeds seeds = seeds_of_case(request.seeds, c.row);
  if (!seeds.has_start()) {
    throw InputError(
        "'" + c.row.image +
        "' has nothing to start from: give the list a column 'sphere_mm' with seeds or "
        "'label' with a label map to start from, or seeds of all images by "
        "--sphere-mm");
  }
  if (request.is_series) check_series(c);
  if (!request.by_label) return;
  if (!c.wants("level-set") && !c.wants("distance") && !c.wants("mesh")) {
    throw UsageError(
        "--by-label is for --level-set, --distance and --mesh (with --list: --write level-set, "
        "distance, mesh); the label map of --output has all labels");
  }
  for (const char* flag : {"level-set", "distance", "mesh"}) {
    const std::string file = c.wants(flag) ? file_of_label(c.file(flag), names) : "";
    if (file.empty()) continue;
    throw UsageError("--by-label: '" + file + "' may be the file of a label beside '" +
                     c.file(flag) + "', and would be replaced; choose other names");
  }
}

Outputs segment_case(const cases::CaseJob& c, const SegmentationRequest& request) {
  if (request.is_series) return segment_series(c, request);
  const auto job = std::make_shared<SegmentationJob>();
  {
    const cases::Step step(job->seconds, "reading", 0, c.context());
    ReadOptions quiet = c.read;
    quiet.warn = nullptr;  // the reading itself will say it
    check_segmentation_fits(c, probe_image(c.row.image, quiet).grid);
    job->image = c.row.image;
    job->request =
        read_segmentation(c.row.image, seeds_of_case(request.seeds, c.row), request.config, c.read);
    c.context().info(describe(job->request.image.grid()));
  }
  {
    const cases::Turn turn = c.turn();
    solve(*job, turn.context());
  }
  return segmentation_outputs(c, request.by_label, job);
}

cases::CaseLook look_at_segmentation(const cases::CaseJob& c, const SegmentationRequest& request) {
  const ImageInfo info = request.is_series ? probe_image(c.row.image, c.read)
                                           : cases::probe_one_volume(c.row.image, c.read);
  check_segmentation_fits(c, info.grid);
  check_on_grid(seeds_of_case(request.seeds, c.row), request.config, c.row.image, info.grid,
                c.read);
  if (request.is_series) frames_of_series(c);
  return cases::look_of(info.grid);
}

void solve(SegmentationJob& job, const Context& context) {
  {
    const cases::Step step(job.seconds, "speed and seeds", 0.01, context);
    job.run = levelset::start_segmentation(job.request, context);
    warn_from(job, job.run.warnings, 0, context);
  }
  move(job, context);
  const cases::Step step(job.seconds, "labels", 0.95, context);
  const size_t told = job.run.warnings.size();
  job.result = levelset::finish_segmentation(std::move(job.run), context);
  warn_from(job, job.result.warnings, told, context);
}

std::string name_of_label(const std::string& path, int32_t label) {
  const std::string ending = file_extension(path);
  return path.substr(0, path.size() - ending.size()) + ".label" + std::to_string(label) + ending;
}

}  // namespace larch::pipeline
