// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/segment.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/initial/first_surfaces.h"
#include "larch/levelset/place_surface.h"

namespace larch::levelset {
namespace {

/// Calls body(i) for every voxel, which writes nothing but what belongs to it.
template <class Body>
void for_voxels(int threads, int64_t voxels, const Body& body) {
  parallel_for(threads, voxels, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

bool same_rules(const StopRules& a, const StopRules& b) {
  return a.max_iterations == b.max_iterations && a.unchanged_labels == b.unchanged_labels &&
         a.most_voxels == b.most_voxels;
}

Volume<float> phi_of(const SegmentRun& run, size_t f, const Context& context) {
  return phi_volume(run.fields[f].field, run.progress[f].iterations, run.request->image.grid(),
                    context);
}

/// Whether a field came to its end because it hardly moves.
bool is_calm(const FieldProgress& progress) {
  return progress.stop == Stop::kAtRest || progress.stop == Stop::kLabels;
}

/// Runs of one job: their fields with what belongs to them are lent to it.
class Together {
 public:
  explicit Together(std::vector<SegmentRun*> runs) : runs_(std::move(runs)) {
    job_.config = &runs_[0]->request->config;
    job_.stops = runs_[0]->stops;
    int32_t group = 0;
    for (SegmentRun* run : runs_) {
      for (size_t f = 0; f < run->fields.size(); ++f) {
        run->fields[f].field.group = run->fields.size() > 1 ? group : -1;
        job_.fields.push_back(&run->fields[f].field);
        job_.progress.push_back(run->progress[f]);
        job_.active.push_back(std::move(run->active[f]));
        job_.history.push_back(std::move(run->history[f]));
      }
      ++group;
    }
  }
  ~Together() {
    size_t k = 0;
    for (SegmentRun* run : runs_) {
      for (size_t f = 0; f < run->fields.size(); ++f, ++k) {
        run->progress[f] = job_.progress[k];
        run->active[f] = std::move(job_.active[k]);
        run->history[f] = std::move(job_.history[k]);
      }
    }
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  EvolveJob& job() { return job_; }

 private:
  std::vector<SegmentRun*> runs_;
  EvolveJob job_{};
};

/// Moves runs with the same stop rules.
void advance_together(const std::vector<SegmentRun*>& runs, int64_t steps, const Context& context) {
  const auto all_done = [&] {
    return std::all_of(runs.begin(), runs.end(), [](const SegmentRun* r) { return is_done(*r); });
  };
  while (steps > 0 && !all_done() && !context.stop_requested()) {
    evolve(Together(runs).job(), steps, context);
    steps = 0;
  }
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
  parallel_for(threads, rows, fair_grain(threads, rows, 256), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* values = phi.data() + row * size.x;
      const int64_t inside = std::count_if(values, values + size.x, [](float v) { return v < 0; });
      voxels += inside;
      const bool has_end = size.x > 1 && (values[0] < 0 || values[size.x - 1] < 0);
      if (has_end || (inside > 0 && (is_end(row % size.y, size.y) || is_end(row / size.y, size.z))))
        touches_border = true;
    }
  });
  result.voxels = voxels;
  result.touches_border = touches_border;
}

LabelResult label_result(const SegmentRun& run, size_t f, const Context& context) {
  LabelResult result;
  result.label = run.fields[f].label;
  result.progress = run.progress[f];
  result.phi_mm = phi_of(run, f, context);
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

/// The voxels of an image that are brighter than its mean.
int64_t body_voxels(const Volume<float>& image) {
  double sum = 0, count = 0;
  for (const float value : image) {
    if (std::isfinite(value)) sum += double{value}, ++count;
  }
  return std::count_if(image.begin(), image.end(), [mean = sum / count](float value) {
    return std::isfinite(value) && double{value} > mean;
  });
}

/// Whether a label looks as if its window took the body for the structure.
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

void warn_of_result(const LabelResult& label, std::vector<std::string>& warnings) {
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
  if (label.progress.stop == Stop::kIterations) {
    warnings.push_back(name + "stopped at max_iterations (" +
                       std::to_string(label.progress.iterations) +
                       ") before it was at rest; raise it, and look whether the surface leaks");
  }
}

}  // namespace

void advance(std::span<SegmentRun* const> runs, int64_t steps, const Context& context) {
  std::vector<SegmentRun*> left(runs.begin(), runs.end());
  while (!left.empty()) {
    std::vector<SegmentRun*> same, others;
    for (SegmentRun* run : left) {
      (same_rules(run->stops, left[0]->stops) ? same : others).push_back(run);
    }
    advance_together(same, steps, context);
    left = std::move(others);
  }
}

void advance(SegmentRun& run, int64_t steps, const Context& context) {
  SegmentRun* const runs[] = {&run};
  advance(runs, steps, context);
}

bool is_done(const SegmentRun& run) {
  return std::all_of(run.progress.begin(), run.progress.end(),
                     [](const FieldProgress& progress) { return progress.stop != Stop::kNone; });
}

SegmentResult finish_segmentation(SegmentRun run, const Context& context) {
  SegmentResult result;
  for (size_t f = 0; f < run.fields.size(); ++f) {
    result.by_label.push_back(label_result(run, f, context));
    result.by_label.back().fills_body = fills_body(run, f, result.by_label.back());
    warn_of_result(result.by_label.back(), run.warnings);
  }
  result.labels = labels_of(result.by_label, run.request->image.grid(), context.threads);
  for (size_t f = 0; f < run.fields.size() && run.request->wants_surface; ++f) {
    LabelResult& label = result.by_label[f];
    label.surface = is_calm(label.progress)
                        ? place_surface(run.fields[f].field,
                                        {label.phi_mm, result.labels, label.label}, context)
                        : label.phi_mm;
  }
  result.resolved = std::move(run.resolved);
  result.warnings = std::move(run.warnings);
  result.history = std::move(run.history);
  return result;
}

SegmentResult segment(const SegmentRequest& request, const Context& context) {
  SegmentRun run = start_segmentation(request, context);
  while (!is_done(run) && !context.stop_requested()) advance(run, 2000, context);
  return finish_segmentation(std::move(run), context);
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

}  // namespace larch::levelset
