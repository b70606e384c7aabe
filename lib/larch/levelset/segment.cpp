// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/segment.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/initial/first_surfaces.h"
#include "larch/levelset/initial/spheres.h"
#include "larch/levelset/place_surface.h"
#include "larch/levelset/speed/edges.h"

namespace larch::levelset {
namespace {

/// Calls body(i) for every voxel, which writes nothing but what belongs to it.
template <class Body>
void for_voxels(int threads, int64_t voxels, const Body& body) {
  parallel_for_each(threads, voxels, int64_t{1} << 16, [&](int64_t i) { body(i); });
}

/// Counts the voxels of a label, and looks whether they touch the border.
void measure(LabelResult& result, int threads) {
  const Volume<float>& phi = result.phi_mm;
  const Vec3i size = phi.size();
  std::atomic<int64_t> voxels{0};
  std::atomic<bool> touches_border{false};
  const int64_t rows = int64_t{size.y} * size.z;
  const auto is_end = [&](int64_t at, int32_t length) {
    return length > 1 && (at == 0 || at == length - 1);
  };
  parallel_for_each(threads, rows, fair_grain(threads, rows, 256), [&](int64_t row) {
    const float* values = phi.data() + row * size.x;
    const int64_t inside = std::count_if(values, values + size.x, [](float v) { return v < 0; });
    voxels += inside;
    const bool has_end = size.x > 1 && (values[0] < 0 || values[size.x - 1] < 0);
    if (has_end || (inside > 0 && (is_end(row % size.y, size.y) || is_end(row / size.y, size.z))))
      touches_border = true;
  });
  result.voxels = voxels;
  result.touches_border = touches_border;
}

LabelResult label_result(const SegmentRun& run, size_t f, const Context& context) {
  LabelResult result;
  result.label = run.resolved.labels[f].label;
  result.phi_mm = phi_volume(run.job.fields[f], run.job.progress.iterations,
                             run.request->image.grid(), context);
  const auto unit_mm = static_cast<float>(run.resolved.unit_mm);
  if (unit_mm != 1) {
    for_voxels(context.threads, result.phi_mm.voxels(),
               [&](int64_t i) { result.phi_mm[i] *= unit_mm; });
  }
  measure(result, context.threads);
  result.volume_ml =
      static_cast<double>(result.voxels) * result.phi_mm.grid().voxel_volume_mm3() / 1000;
  return result;
}

/// Returns the voxels of an image that are brighter than its mean.
int64_t body_voxels(const Volume<float>& image) {
  double sum = 0, count = 0;
  for (const float value : image) {
    if (std::isfinite(value)) sum += double{value}, ++count;
  }
  return std::count_if(image.begin(), image.end(), [mean = sum / count](float value) {
    return std::isfinite(value) && double{value} > mean;
  });
}

/// Tells whether a label looks as if its window took the body for the structure.
bool fills_body(const SegmentRun& run, size_t f, const LabelResult& label) {
  const std::optional<Window>& window = run.resolved.labels[f].window;
  return window && window->is_automatic && label.touches_border &&
         3 * label.voxels > body_voxels(run.request->image);
}

/// Each voxel gets the label whose level set is lowest there, and 0 where none is below 0.
LabelVolume labels_of(const std::vector<LabelResult>& by_label, const Grid& grid, int threads) {
  auto labels = LabelVolume::unfilled(grid);
  for_voxels(threads, labels.voxels(), [&](int64_t i) {
    float lowest = 0;
    labels[i] = 0;
    for (const LabelResult& one : by_label) {
      if (!(one.phi_mm[i] < lowest)) continue;
      lowest = one.phi_mm[i];
      labels[i] = one.label;
    }
  });
  return labels;
}

void warn_of_result(const LabelResult& label, SegmentRun& run) {
  std::vector<std::string>& warnings = run.warnings;
  const std::string name = "label " + std::to_string(label.label) + ": ";
  if (label.voxels == 0) {
    warnings.push_back(name +
                       "nothing is inside at the end; put the seeds into the structure, or "
                       "choose another window or a smaller curvature_weight");
    return;
  }
  if (label.touches_border) {
    warnings.push_back(name + "it touches the border of the image, where it may be cut off");
  }
  if (run.job.progress.stop == Stop::kIterations) {
    warnings.push_back(name + "stopped at max_iterations (" +
                       std::to_string(run.job.progress.iterations) +
                       ") before it was at rest; raise it, and look whether the surface leaks");
  }
}

/// Seconds that the steps between two looks at the stop flag and the clock shall take.
constexpr double kPauseSeconds = 0.5;
/// Iterations between two looks: at first, and at most.
constexpr int64_t kFirstSteps = 64, kMaximumSteps = 2000;

/// Returns the part of a job that is done: it is at its end when its labels have not changed for
/// long enough or it has made all of its iterations.
double fraction_done(const EvolveJob& job) {
  if (job.progress.stop != Stop::kNone) return 1;
  const auto part = [](int64_t value, int64_t whole) {
    return whole > 0 ? static_cast<double>(value) / static_cast<double>(whole) : 0;
  };
  return std::max(part(job.progress.quiet, job.stops.unchanged_labels),
                  part(job.progress.iterations, job.stops.max_iterations));
}

std::string progress_text(const EvolveJob& job) {
  int64_t active = 0, changed = 0;
  for (const std::vector<StepCount>& history : job.history) {
    if (history.empty() || job.progress.stop != Stop::kNone) continue;
    active += history.back().active;
    changed += history.back().changed;
  }
  return "iteration " + std::to_string(job.progress.iterations) + ", " + std::to_string(active) +
         (job.tracker == Tracker::kBrick ? " active bricks, " : " active voxels, ") +
         std::to_string(changed) + " voxels changed";
}

/// Moves the surface until it is at rest.
void move(EvolveJob& job, const Context& context) {
  int64_t steps = kFirstSteps;
  double most = 0;
  while (job.progress.stop == Stop::kNone) {
    const auto before = std::chrono::steady_clock::now();
    evolve(job, steps, context);
    const double seconds = seconds_since(before);
    context.throw_if_stopped("stopped while the surface moved");
    most = std::max(most, fraction_done(job));
    context.progress(0.02 + 0.93 * most, progress_text(job));
    const double factor = std::clamp(kPauseSeconds / std::max(seconds, 1e-3), 0.25, 4.0);
    steps = std::clamp(static_cast<int64_t>(static_cast<double>(steps) * factor), int64_t{1},
                       kMaximumSteps);
  }
}

}  // namespace

SegmentResult finish_segmentation(SegmentRun run, const Context& context) {
  SegmentResult result;
  const size_t fields = run.job.fields.size();
  for (size_t f = 0; f < fields; ++f) {
    result.by_label.push_back(label_result(run, f, context));
    result.by_label.back().fills_body = fills_body(run, f, result.by_label.back());
    warn_of_result(result.by_label.back(), run);
  }
  result.labels = labels_of(result.by_label, run.request->image.grid(), context.threads);
  // This is true where they came to their end because they hardly move.
  const bool is_calm =
      run.job.progress.stop == Stop::kAtRest || run.job.progress.stop == Stop::kLabels;
  for (size_t f = 0; f < fields && run.request->wants_surface; ++f) {
    LabelResult& label = result.by_label[f];
    label.surface = is_calm ? place_surface(run.job.fields[f],
                                            {label.phi_mm, result.labels, label.label}, context)
                            : label.phi_mm;
  }
  result.progress = run.job.progress;
  result.voxels_per_active = run.job.tracker == Tracker::kBrick ? kBrickVoxels : 1;
  result.resolved = std::move(run.resolved);
  result.warnings = std::move(run.warnings);
  result.history = std::move(run.job.history);
  return result;
}

void check_on_grid(const SegmentRequest& request, const Grid& grid, bool has_speed) {
  for (const auto& [spheres, name] :
       {std::pair(&request.spheres, "seed "), std::pair(&request.background, "background ")}) {
    for (size_t i = 0; i < spheres->size(); ++i) {
      ball_of((*spheres)[i], grid, name + std::to_string(i + 1));
    }
  }
  if (!has_speed) make_step(request.config, {}, grid.spacing_mm, grid.size);
}

SegmentResult segment(const SegmentRequest& request, const Context& whole) {
  const Turn turn = whole.turn();
  const Context& context = turn.context();
  size_t told = 0;
  const auto warn = [&](const std::vector<std::string>& warnings) {
    const std::string start = request.name.empty() ? "" : "'" + request.name + "': ";
    for (; told < warnings.size(); ++told) context.warn(start + warnings[told]);
  };
  StepSeconds seconds;
  SegmentRun run;
  {
    const larch::Step step(seconds, "speed and seeds", 0.01, context);
    run = start_segmentation(request, context);
    warn(run.warnings);
  }
  const auto start = std::chrono::steady_clock::now();
  move(run.job, context);
  seconds.emplace_back("solver", seconds_since(start));
  SegmentResult result;
  {
    const larch::Step step(seconds, "labels", 0.95, context);
    result = finish_segmentation(std::move(run), context);
    warn(result.warnings);
  }
  result.seconds = std::move(seconds);
  return result;
}

SegmentRequest next_frame(SegmentRequest request, const SegmentResult& last, Volume<float> image) {
  request.image = std::move(image);
  request.spheres.clear();
  request.initial_labels = {};
  request.initial_level_mm = 0;
  request.arrival_mm = 0;
  request.initial_phi.clear();
  request.windows.clear();
  for (size_t f = 0; f < last.by_label.size(); ++f) {
    const LabelResult& label = last.by_label[f];
    if (!has_inside(label.phi_mm)) continue;
    request.initial_phi.push_back({label.label, label.phi_mm});
    const std::optional<Window>& window = last.resolved.labels.at(f).window;
    if (window) request.windows.push_back({label.label, window->lower, window->upper});
  }
  return request;
}

Volume<float> smoothed_image(const Volume<float>& image, double sigma_mm, int threads) {
  Volume<float> smooth = smoothed(image, sigma_mm, threads);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    if (!std::isfinite(image[i])) smooth[i] = image[i];
  }
  return smooth;
}

double weight_of_ball(double radius_mm, const Grid& grid) {
  const auto axes = int{grid.size.x > 1} + int{grid.size.y > 1} + int{grid.size.z > 1};
  const double bent = (axes - 1) * smallest_spacing_mm(grid.spacing_mm, grid.size);
  return radius_mm / (radius_mm + std::max(bent, 0.0));
}

double weight_of_itk(double propagation, double curvature, double half_width, const Grid& grid) {
  const double unit_mm = smallest_spacing_mm(grid.spacing_mm, grid.size);
  const double whole = curvature + propagation * half_width * unit_mm;
  if (!(whole > 0) || !std::isfinite(whole)) {
    throw UsageError(
        "--propagation and --curvature with this window are too small or too large to be one "
        "weight; give --curvature-weight");
  }
  return curvature / whole;
}

}  // namespace larch::levelset
