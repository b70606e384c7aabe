// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/outputs/segmentation_report.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/levelset/brick_layout.h"
#include "larch/picture/plot.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;
using levelset::StepCount;

/// Rows of the history in the report, and points of the picture, at most.
constexpr size_t kMostRows = 2000;

/// Every how many iterations there is a row: 1, 2, 5, 10, ...
size_t stride_of(size_t iterations) {
  size_t stride = 1;
  for (int i = 0; iterations / stride > kMostRows; ++i) stride = stride * (i % 3 == 1 ? 5 : 4) / 2;
  return stride;
}

int64_t voxels_of(levelset::Tracker tracker) {
  return tracker == levelset::Tracker::kBrick ? levelset::kBrickVoxels : 1;
}

/// What every iteration at a multiple of the stride, and the last one, did. `flipped`: of all
/// iterations since the row before.
Json history_of(const std::vector<StepCount>& history, int64_t inside_at_end) {
  const size_t stride = stride_of(history.size());
  Json rows = {{"every", stride},          {"iteration", Json::array()}, {"active", Json::array()},
               {"changed", Json::array()}, {"flipped", Json::array()},   {"inside", Json::array()}};
  int64_t inside = inside_at_end;
  for (const StepCount& step : history) inside -= step.grown;
  int64_t flipped = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    inside += history[i].grown;
    flipped += history[i].flipped;
    if ((i + 1) % stride != 0 && i + 1 != history.size()) continue;
    rows["iteration"].push_back(i + 1);
    rows["active"].push_back(history[i].active);
    rows["changed"].push_back(history[i].changed);
    rows["flipped"].push_back(flipped);
    rows["inside"].push_back(inside);
    flipped = 0;
  }
  return rows;
}

const char* stop_text(levelset::Stop stop) {
  switch (stop) {
    case levelset::Stop::kNone:
      return "not at its end";
    case levelset::Stop::kAtRest:
      return "at rest: no voxel changed";
    case levelset::Stop::kLabels:
      return "labels unchanged";
    case levelset::Stop::kChanged:
      return "few voxels changed";
    case levelset::Stop::kRms:
      return "small changes";
    case levelset::Stop::kVolume:
      return "largest volume";
    case levelset::Stop::kIterations:
      return "most iterations";
  }
  return "";
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json label_report(const levelset::LabelResult& label, const levelset::ResolvedLabel& used,
                  const std::vector<StepCount>& history) {
  uint64_t active = 0;
  for (const StepCount& step : history) active += step.active;
  Json json = {{"label", label.label},
               {"voxels", label.voxels},
               {"volume_ml", label.volume_ml},
               {"iterations", label.progress.iterations},
               {"stopped_by", stop_text(label.progress.stop)},
               {"touches_border", label.touches_border},
               {"median_gradient", label.median_gradient},
               {"seed_voxels", used.seed_voxels},
               {"seed_not_a_number", used.seed_not_a_number},
               {"seed_mean", used.seed_mean},
               {"seed_fraction_in_window", used.seed_fraction}};
  if (used.window) {
    json["window"] = {{"lower", used.window->lower},
                      {"upper", used.window->upper},
                      {"is_automatic", used.window->is_automatic}};
  }
  json["computed_elements"] = active;
  json["history"] = history_of(history, label.progress.inside);
  return json;
}

}  // namespace

Json segmentation_report(const levelset::SegmentResult& result,
                         const levelset::LevelsetConfig& config) {
  const levelset::Resolved& used = result.resolved;
  Json json = {{"curvature_weight", config.curvature_weight},
               {"time_step", used.time_step},
               {"largest_stable_step", number_or_null(used.largest_stable_step)},
               {"slowest_front", used.slowest_front},
               {"unit_mm", used.unit_mm},
               {"largest_data_speed", used.bounds.data},
               {"speed_scale", used.speed_scale},
               {"edge_contrast_per_mm", used.edge_contrast},
               {"voxels_not_a_number", used.voxels_not_a_number},
               {"pinned_voxels", used.pinned_voxels},
               {"voxels_per_active_element", voxels_of(config.tracker)},
               {"labels", Json::array()}};
  for (size_t f = 0; f < result.by_label.size(); ++f) {
    json["labels"].push_back(
        label_report(result.by_label[f], used.labels.at(f), result.history.at(f)));
  }
  return json;
}

RgbImage segmentation_plot(const levelset::SegmentResult& result, levelset::Tracker tracker,
                           const std::string& name) {
  size_t iterations = 0;
  for (const auto& history : result.history) iterations = std::max(iterations, history.size());
  const size_t stride = stride_of(iterations);
  picture::Curve active{"active voxels"}, changed{"changed voxels"};
  for (size_t i = 0; i < iterations; i += stride) {
    int64_t computed = 0, moved = 0;
    for (const auto& history : result.history) {
      if (i >= history.size()) continue;
      computed += history[i].active * voxels_of(tracker);
      moved += history[i].changed;
    }
    active.x.push_back(static_cast<double>(i + 1));
    active.y.push_back(static_cast<double>(computed));
    changed.x.push_back(static_cast<double>(i + 1));
    changed.y.push_back(static_cast<double>(moved));
  }
  picture::PlotOptions options;
  options.title = name + ": " + std::to_string(iterations) + " iterations";
  options.x_label = "iteration";
  options.y_label = "voxels";
  return picture::plot(std::vector{active, changed}, options);
}

}  // namespace larch::pipeline
