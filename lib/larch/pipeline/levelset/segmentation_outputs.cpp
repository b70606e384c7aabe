// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/cases/labelmaps.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/picture/plot.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/levelset/segmentation.h"
#include "larch/pipeline/structures.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;
using levelset::LabelResult;
using levelset::StepCount;

/// Rows of the history in the report, and points of the picture, at most.
constexpr size_t kMaximumRows = 2000;

/// Returns the iterations from one row to the next: 1, 2, 5, 10, ...
size_t stride_of(size_t iterations) {
  size_t stride = 1;
  for (int i = 0; iterations / stride > kMaximumRows; ++i)
    stride = stride * (i % 3 == 1 ? 5 : 4) / 2;
  return stride;
}

/// Returns a row for each iteration at a multiple of the stride, and for the last one. `flipped`:
/// of all iterations since the row before.
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

/// In the order of levelset::Stop.
constexpr const char* kStopTexts[] = {"not at its end", "at rest: no voxel changed",
                                      "labels unchanged", "largest volume", "most iterations"};

Json label_report(const levelset::SegmentResult& result, size_t f) {
  const LabelResult& label = result.by_label[f];
  const levelset::ResolvedLabel& used = result.resolved.labels.at(f);
  const std::vector<StepCount>& history = result.history.at(f);
  uint64_t active = 0;
  for (const StepCount& step : history) active += step.active;
  Json json = {{"label", label.label},
               {"voxels", label.voxels},
               {"volume_ml", label.volume_ml},
               {"iterations", result.progress.iterations},
               {"stopped_by", kStopTexts[static_cast<int>(result.progress.stop)]},
               {"touches_border", label.touches_border},
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
  json["history"] = history_of(history, label.voxels);
  return json;
}

void add_figures(const SegmentationJob& job, Outputs& outputs) {
  int64_t voxels = 0;
  double volume_ml = 0;
  bool touches_border = false;
  for (const LabelResult& label : job.result.by_label) {
    voxels += label.voxels;
    volume_ml += label.volume_ml;
    touches_border = touches_border || label.touches_border;
  }
  outputs.metric("voxels", static_cast<double>(voxels))
      .metric("volume_ml", volume_ml)
      .metric("iterations", static_cast<double>(job.result.progress.iterations))
      .metric("touches_border", touches_border ? 1 : 0);
  outputs.seconds(job.seconds).seconds(job.result.seconds);
  for (const LabelResult& label : job.result.by_label) {
    if (label.voxels == 0) {
      outputs.status("rejected",
                     "nothing is left of label " + std::to_string(label.label) +
                         ": place its seed in the structure, make it larger, or give it "
                         "a --window around its intensities");
    }
    if (!label.fills_body) continue;
    outputs.status(
        "rejected",
        "label " + std::to_string(label.label) +
            " fills more than a third of the body and reaches the border of the image: the "
            "window from its seeds takes what is around it as well; give --lower and "
            "--upper, --background, a --mask or --max-distance-mm");
  }
  if (voxels > 0) return;
  outputs.status("rejected",
                 "nothing is left: the surface has vanished; place the seed in the structure, make "
                 "it larger, or choose --lower and --upper around its intensities");
}

/// Returns the names and colours of the labels: what --label-table says, or else the segments to
/// start from, or else numbers and the colours of the picture.
LabelTable table_of(const cases::CaseJob& c, const SegmentationJob& job) {
  LabelTable table;
  for (const LabelResult& label : job.result.by_label) {
    const auto named = std::ranges::find(job.names, label.label, &LabelEntry::value);
    const picture::Rgb colour = picture::palette_colour(label.label);
    const std::string name = "label " + std::to_string(label.label);
    table.push_back(named != job.names.end()
                        ? *named
                        : LabelEntry{label.label, name, {colour.r, colour.g, colour.b}});
  }
  return cases::named(c, std::move(table));
}

/// Returns the file of one label beside that of all: "wm.label2.vtk" of "wm.vtk".
std::string name_of_label(const std::string& path, int32_t label) {
  return cases::companion_of(path, ".label" + std::to_string(label) + file_extension(path));
}

/// Level set, distance and mesh, of all labels together and, with `by_label`, of each beside them.
void add_surfaces(const cases::CaseJob& c, bool by_label,
                  const std::shared_ptr<const SegmentationJob>& job, Outputs& outputs) {
  if (!job->request.wants_surface) return;
  const Step step(outputs.steps, "surface", 0.97, c.context());
  const int threads = c.context().threads;
  const auto& labels = job->result.by_label;
  const auto all =
      labels.size() == 1
          ? std::shared_ptr<const Volume<float>>(job, &labels[0].surface)
          : std::make_shared<const Volume<float>>(levelset::surface_of_all(job->result));
  const auto add = [&](const char* flag, const Writer& write_all, const auto& write) {
    outputs.add(c.file(flag), write_all);
    if (!by_label || !c.wants(flag)) return;
    for (size_t f = 0; f < job->result.by_label.size(); ++f) {
      const std::string name = name_of_label(c.file(flag), job->result.by_label[f].label);
      outputs.add_companion(
          name, [=](const std::string& path) { write(path, job->result.by_label[f].surface); });
    }
  };
  const auto clamp_mm = static_cast<float>(levelset::kClamp * job->result.resolved.unit_mm);
  const auto distance_from = [=](const Volume<float>& surface) {
    return levelset::surface_distance_mm(surface, double{clamp_mm}, threads);
  };
  const auto write_phi = [=](const std::string& path, const Volume<float>& level_mm) {
    write_volume(path, level_mm, threads, "Larch level set in mm, phi < 0 inside, clamped");
  };
  const auto write_distance = [=](const std::string& path, const Volume<float>& distance_mm) {
    write_volume(path, distance_mm, threads, "Larch signed distance in mm, negative inside");
  };
  // The distance of all labels is made once; it gives the level set where both are wanted.
  const auto of_all = std::make_shared<const Volume<float>>(
      c.wants("distance") ? distance_from(*all) : Volume<float>());
  const auto level_of_all = [=] {
    if (of_all->empty()) return levelset::surface_level_mm(*all, clamp_mm, threads);
    return mapped<float>(*of_all, [=](float mm) { return std::clamp(mm, -clamp_mm, clamp_mm); });
  };
  add(
      "level-set", [=](const std::string& path) { write_phi(path, level_of_all()); },
      [=](const std::string& path, const auto& surface) {
        write_phi(path, levelset::surface_level_mm(surface, clamp_mm, threads));
      });
  add(
      "distance", [=](const std::string& path) { write_distance(path, *of_all); },
      [=](const std::string& path, const auto& surface) {
        write_distance(path, distance_from(surface));
      });
  if (!c.wants("mesh")) return;
  const auto surface = std::make_shared<Mesh>(levelset::surface_mesh(*all, threads));
  outputs.metric("triangles", static_cast<double>(surface->triangles.size()));
  add(
      "mesh", [=](const std::string& path) { write_mesh(path, *surface); },
      [=](const std::string& path, const Volume<float>& of_label) {
        write_mesh(path, levelset::surface_mesh(of_label, threads));
      });
}

}  // namespace

Json segmentation_report(const levelset::SegmentResult& result,
                         const levelset::LevelsetConfig& config) {
  const levelset::Resolved& used = result.resolved;
  const double largest = used.largest_stable_step;
  Json json = {{"curvature_weight", config.curvature_weight},
               {"time_step", used.time_step},
               {"largest_stable_step", std::isfinite(largest) ? Json(largest) : Json()},
               {"slowest_front", used.slowest_front},
               {"unit_mm", used.unit_mm},
               {"largest_data_speed", used.bounds.data},
               {"speed_scale", used.speed_scale},
               {"edge_contrast_per_mm", used.edge_contrast},
               {"voxels_not_a_number", used.voxels_not_a_number},
               {"pinned_voxels", used.pinned_voxels},
               {"voxels_per_active_element", result.voxels_per_active},
               {"labels", Json::array()}};
  for (size_t f = 0; f < result.by_label.size(); ++f) {
    json["labels"].push_back(label_report(result, f));
  }
  return json;
}

RgbImage segmentation_plot(const levelset::SegmentResult& result, const std::string& name) {
  size_t iterations = 0;
  for (const auto& history : result.history) iterations = std::max(iterations, history.size());
  const size_t stride = stride_of(iterations);
  picture::Curve active{"active voxels"}, changed{"changed voxels"};
  for (size_t i = 0; i < iterations; i += stride) {
    int64_t computed = 0, moved = 0;
    for (const auto& history : result.history) {
      if (i >= history.size()) continue;
      computed += history[i].active * result.voxels_per_active;
      moved += history[i].changed;
    }
    active.x.push_back(static_cast<double>(i + 1));
    active.y.push_back(static_cast<double>(computed));
    changed.y.push_back(static_cast<double>(moved));
  }
  changed.x = active.x;
  picture::PlotOptions options{.title = name + ": " + std::to_string(iterations) + " iterations",
                               .x_label = "iteration",
                               .y_label = "voxels"};
  return picture::plot(std::vector{active, changed}, options);
}

Outputs segmentation_outputs(const cases::CaseJob& c, bool by_label,
                             const std::shared_ptr<const SegmentationJob>& job) {
  const levelset::LevelsetConfig& config = job->request.config;
  Outputs outputs;
  outputs.grid(c.row.image, describe(job->request.image.grid()));
  add_figures(*job, outputs);
  const LabelTable table = table_of(c, *job);
  add_structures(job->result.labels, table, outputs);
  add_dice(c, c.row.cell(kReferenceColumn), job->result.labels, table, nullptr, outputs);
  outputs.report("segmentation", segmentation_report(job->result, config));
  for (const std::string& warning : job->result.warnings) outputs.note(warning);
  outputs.add(c.file("output"), [job, write = cases::labelmap_writer(c, table, kDeformable)](
                                    const std::string& path) { write(path, job->result.labels); });
  add_surfaces(c, by_label, job, outputs);
  outputs.add(c.file("qc"), [=](const std::string& path) {
    picture::QcOptions options;
    options.colours = table;
    write_png(path, picture::qc_picture(job->request.image, job->result.labels, options));
  });
  outputs.add(c.file("plot"), [=](const std::string& path) {
    const std::string name = std::filesystem::path(job->request.name).filename().string();
    write_png(path, segmentation_plot(job->result, name));
  });
  return outputs;
}

}  // namespace larch::pipeline
