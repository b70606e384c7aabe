// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/segment.h"

#include <algorithm>
#include <atomic>
#include <cmath>

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
  // Whether they came to their end because they hardly move.
  const bool is_calm =
      run.job.progress.stop == Stop::kAtRest || run.job.progress.stop == Stop::kLabels;
  for (size_t f = 0; f < fields && run.request->wants_surface; ++f) {
    LabelResult& label = result.by_label[f];
    label.surface = is_calm ? place_surface(run.job.fields[f],
                                            {label.phi_mm, result.labels, label.label}, context)
                            : label.phi_mm;
  }
  result.progress = run.job.progress;
  result.resolved = std::move(run.resolved);
  result.warnings = std::move(run.warnings);
  result.history = std::move(run.job.history);
  return result;
}

SegmentResult segment(const SegmentRequest& request, const Context& context) {
  SegmentRun run = start_segmentation(request, context);
  while (goes_on(run.job, context)) evolve(run.job, 2000, context);
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
