// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/boundary_refinement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/boundary.h"
#include "larch/cases/labelmaps.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/image.h"
#include "larch/io/image/layers.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/case_poses.h"
#include "larch/pipeline/structures.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {
namespace {

constexpr const char* kNotFound = "not found";
constexpr const char* kNoStart = "without a start";

/// One image on its way.
struct RefinementJob {
  Volume<float> image{};                 ///< empty after the refinement unless a picture is wanted
  Grid grid{};                           ///< of the image
  LabelTable structures{};               ///< of the model
  std::vector<RefinedBoundary> found{};  ///< by structure
  std::vector<size_t> shown{};  ///< structures that the files hold: the only one, or those found
};

StartFiles start_of(const cases::CaseJob& c, const StartFiles& given, const Model& model) {
  StartFiles start = given;
  if (c.is_of_list) {
    start = {poses_file(c, {}), c.row.label, c.row.cell(kMeshStart)};
  }
  const int count =
      (start.poses.empty() ? 0 : 1) + (start.labels.empty() ? 0 : 1) + (start.mesh.empty() ? 0 : 1);
  if (count != 1) {
    throw InputError("a refinement starts from one of poses, a label map and a mesh; here are " +
                     std::to_string(count));
  }
  const size_t structures = model.structures().size();
  if (!start.mesh.empty() && structures > 1) {
    throw InputError("'" + start.mesh +
                     "': a mesh is a start for one structure, and the model has " +
                     std::to_string(structures) + "; give poses or a label map");
  }
  return start;
}

/// Reads the starts of a case by structure. Of several structures one without a start is left out,
/// and `found` says so.
std::vector<BoundaryStart> read_starts(const cases::CaseJob& c, const StartFiles& given,
                                       const Model& model, std::vector<RefinedBoundary>& found) {
  const StartFiles files = start_of(c, given, model);
  const LabelTable structures = model.structures();
  LabelVolume labels;
  if (!files.labels.empty()) labels = read_labels(files.labels, label_options(c.read));
  std::vector<DetectedPose> poses;
  if (!files.poses.empty()) poses = read_any_poses(files.poses);
  found.resize(structures.size());
  std::vector<BoundaryStart> starts;
  for (size_t k = 0; k < structures.size(); ++k) {
    BoundaryStart start;
    const std::string& name = structures[k].name;
    if (structures.size() > 1) start.structure = name;
    start.name = "'" + (files.labels.empty() ? files.mesh : files.labels) + "'";
    try {
      if (!files.mesh.empty()) {
        start.mesh = read_mesh(files.mesh, c.read.warn);
      } else if (files.poses.empty()) {
        start.pose = pose_of_labels(model, name, labels, start.name);
      } else {
        start.pose = pose_among(poses, files.poses, name);
      }
      starts.push_back(std::move(start));
    } catch (const InputError& error) {
      if (structures.size() == 1) throw;
      found[k].status = kNoStart;
      found[k].remark = error.what();
    }
  }
  return starts;
}

void warn_of(const cases::CaseJob& c, const std::string& remark) {
  if (remark.empty()) return;
  c.context().warn((c.is_of_list ? "case '" + c.row.id + "': " : "") + remark);
}

/// Writes the meshes of structures as one, with their numbers.
void write_meshes(const std::string& path, const RefinementJob& job,
                  const std::vector<size_t>& structures) {
  Mesh mesh;
  mesh.frame = job.grid.frame;
  std::vector<float> probability, displacement_mm;
  const auto append = [](auto& to, const auto& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const size_t k : structures) {
    const RefinedBoundary& one = job.found[k];
    const auto first = static_cast<int32_t>(mesh.vertices_mm.size());
    for (const Vec3i& t : one.mesh.triangles) {
      mesh.triangles.push_back(t + Vec3i{first, first, first});
    }
    append(mesh.vertices_mm, one.mesh.vertices_mm);
    append(probability, one.probability);
    append(displacement_mm, one.displacement_mm);
  }
  const VertexNumbers numbers[] = {{"probability", probability},
                                   {"displacement_mm", displacement_mm}};
  write_mesh(path, mesh, numbers);
}

/// Returns the labels of the meshes that are shown. A voxel in two of them has the structure that
/// is surer, and the first of equals.
LabelVolume label_map(const RefinementJob& job, Mesh RefinedBoundary::*mesh,
                      const Context& context) {
  std::vector<size_t> order = job.shown;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t k) { return job.found[k].confidence; });
  LabelVolume labels;
  for (const size_t k : order) {
    LabelVolume one = labels_of(job.found[k].*mesh, job.grid, job.structures[k].value, context);
    if (labels.empty()) {
      labels = std::move(one);
    } else {
      std::transform(labels.begin(), labels.end(), one.begin(), labels.begin(),
                     [](int32_t surer, int32_t other) { return surer != 0 ? surer : other; });
    }
  }
  return labels.empty() ? LabelVolume(job.grid) : labels;
}

void add_files(const cases::CaseJob& c, const std::shared_ptr<const RefinementJob>& job,
               Outputs& outputs) {
  Context host;
  host.threads = c.context().threads;
  const LabelTable& table = job->structures;
  const std::string mesh = c.file("output");
  outputs.add(mesh, [=](const std::string& path) { write_meshes(path, *job, job->shown); });
  for (const size_t k : job->shown) {
    if (mesh.empty() || table.size() == 1) break;
    const std::string ending = ".class-" + std::to_string(table[k].value) + file_extension(mesh);
    outputs.add_companion(cases::companion_of(mesh, ending),
                          [=](const std::string& path) { write_meshes(path, *job, {k}); });
  }
  const std::string labels = c.file("labelmap");
  if (!labels.empty()) {
    const auto write = cases::labelmap_writer(c, table, kDeformable);
    outputs.add(labels, [=](const std::string& path) {
      if (file_extension(path) != ".seg.nrrd") {
        return write(path, label_map(*job, &RefinedBoundary::mesh, host));
      }
      const auto alone = [&](size_t i) {
        const size_t k = job->shown[i];
        return labels_of(job->found[k].mesh, job->grid, table[k].value, host);
      };
      write_segmentation(path, layers_of(job->shown.size(), job->grid, alone), table, host.threads);
    });
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("color-table"),
              [=](const std::string& path) { write_label_table(path, table); });
  outputs.add(c.file("qc"), [=](const std::string& path) {
    const LabelVolume start = label_map(*job, &RefinedBoundary::start, host);
    picture::QcOptions options;
    options.reference = &start;
    options.colours = table;
    write_png(path, picture::qc_picture(job->image, label_map(*job, &RefinedBoundary::mesh, host),
                                        options));
  });
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::abs(static_cast<double>(value));
  return sum / static_cast<double>(values.size());
}

/// Figures of a structure, and how they are told of several.
struct Figure {
  const char* name;
  double value;
  bool is_sum = false;  ///< or a mean
};
std::vector<Figure> figures_of(const RefinedBoundary& found) {
  if (found.probability.empty()) return {};
  return {{"volume_ml", found.volume_mm3 / 1000, true},
          {"area_cm2", found.area_mm2 / 100, true},
          {"probability", mean(found.probability)},
          {"displacement_mm", mean(found.displacement_mm)},
          {"displacement_voxels", found.displacement_voxels},
          {"flipped_triangles", static_cast<double>(found.flipped_triangles), true},
          {"without_boundary", found.without_boundary}};
}

/// Returns what is to be said of a structure; nothing of one that is simply found.
std::string message_of(const RefinementJob& job, size_t k) {
  const RefinedBoundary& found = job.found[k];
  if (found.status == "found") return found.remark;
  std::string text;
  if (found.confidence >= 0) {
    text = formatted(" (confidence %.2f)", found.confidence);
  } else if (found.status != kNoStart) {
    text = formatted(": %.0f %% of the vertices find no boundary", 100 * found.without_boundary);
  }
  return "'" + job.structures[k].name + "' is " + found.status + text +
         (found.remark.empty() ? "" : "; " + found.remark);
}

/// Adds the figures of each structure, and sums and means over those that are shown; of their
/// confidences the least.
void add_figures(const RefinementJob& job, Outputs& outputs) {
  auto report = nlohmann::ordered_json::array();
  std::vector<Figure> all;
  double confidence = 2;
  std::string message;
  bool is_found = false;
  for (size_t k = 0; k < job.found.size(); ++k) {
    const RefinedBoundary& found = job.found[k];
    const LabelEntry& structure = job.structures[k];
    nlohmann::ordered_json entry{{"name", structure.name}, {"status", found.status}};
    if (found.confidence >= 0) entry["confidence"] = found.confidence;
    const std::vector<Figure> figures = figures_of(found);
    for (const Figure& one : figures) entry[one.name] = one.value;
    report.push_back(entry);
    const std::string said = message_of(job, k);
    if (!said.empty()) message += (message.empty() ? "" : "; ") + said;
    const uint8_t* rgb = structure.rgb;
    outputs.structures.push_back({structure.name, {rgb[0], rgb[1], rgb[2]}});
    if (found.status != "found") outputs.structures[k].status = found.status;
    if (std::ranges::count(job.shown, k) == 0) continue;
    is_found = is_found || found.status != kNotFound;
    outputs.structures[k].volume_ml = found.volume_mm3 / 1000;
    if (found.confidence >= 0) confidence = std::min(confidence, found.confidence);
    all.resize(figures.size());
    for (size_t i = 0; i < figures.size(); ++i) {
      const auto [name, value, is_sum] = figures[i];
      const size_t count = is_sum ? 1 : job.shown.size();
      all[i] = {name, all[i].value + value / static_cast<double>(count)};
    }
  }
  for (const Figure& one : all) outputs.metric(one.name, one.value);
  if (confidence <= 1) outputs.metric("confidence", confidence);
  for (const RefinedBoundary& one : job.found) outputs.seconds(one.seconds);
  outputs.report("structures", report);
  if (!message.empty()) outputs.note(message);
  outputs.status(is_found ? "done" : "rejected", message);
}

}  // namespace

Outputs refine_case(const cases::CaseJob& c, const Model& model, const StartFiles& given) {
  const auto job = std::make_shared<RefinementJob>();
  start_of(c, given, model);
  Outputs outputs;
  std::optional<Step> reading(std::in_place, outputs.steps, "reading", 0, c.context());
  job->image = read_volume<float>(c.row.image, c.read);
  job->grid = job->image.grid();
  job->structures = cases::named(c, model.structures());
  cases::require_labelmap_holds(c, "labelmap", job->grid.size);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  const std::vector<BoundaryStart> starts = read_starts(c, given, model, job->found);
  reading.reset();
  Volume<float> image = c.wants("qc") ? job->image : std::move(job->image);
  std::vector<RefinedBoundary> refined =
      refine_boundaries(model, std::move(image), starts, c.context(), "'" + c.row.image + "'");
  for (size_t k = 0, next = 0; k < job->found.size(); ++k) {
    if (job->found[k].status.empty()) job->found[k] = std::move(refined[next++]);
    const RefinedBoundary& found = job->found[k];
    warn_of(c, found.remark);
    const bool is_left_out = found.status == kNotFound || found.status == kNoStart;
    if (job->found.size() == 1 || !is_left_out) job->shown.push_back(k);
  }
  c.context().progress(1, "done");
  outputs.grid(c.row.image, describe(job->grid));
  add_figures(*job, outputs);
  const std::string reference = c.row.cell(kReferenceColumn);
  if (!reference.empty()) {
    const LabelVolume labels = label_map(*job, &RefinedBoundary::mesh, c.context());
    add_dice(c, reference, labels, job->structures, &model, outputs);
  }
  add_files(c, job, outputs);
  return outputs;
}

void check_start(const cases::CaseJob& c, const Model& model, const StartFiles& given) {
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  std::vector<RefinedBoundary> found;
  for (const BoundaryStart& start : read_starts(c, given, model, found)) {
    warn_of(c, larch::check_start(model, start, grid));
  }
  for (const RefinedBoundary& one : found) warn_of(c, one.remark);
}

cases::CaseLook look_at_boundary(const cases::CaseJob& c, const Model& model,
                                 const StartFiles& start) {
  start_of(c, start, model);
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  cases::require_labelmap_holds(c, "labelmap", grid.size);
  const ModelFit fit = fit_of(model, grid, "'" + c.row.image + "'");
  cases::CaseLook look = cases::look_of(grid);
  look.cells.emplace_back("in the model", cases::size_cell(fit.grid));
  look.bytes = fit.bytes;
  return look;
}

}  // namespace larch::pipeline
