// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/boundary_refinement.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/boundary.h"
#include "larch/cases/labelmaps.h"
#include "larch/core/error.h"
#include "larch/image.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/case_poses.h"
#include "larch/pipeline/structures.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {
namespace {

/// One image on its way.
struct RefinementJob {
  Volume<float> image{};  ///< empty after the refinement unless a picture is wanted
  Grid grid{};            ///< of the image
  LabelEntry structure{};
  RefinedBoundary found{};
};

StartFiles start_of(const cases::CaseJob& c, const StartFiles& given) {
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
  return start;
}

/// Reads the start of a case, which one of the files has.
BoundaryStart read_start(const cases::CaseJob& c, const StartFiles& given,
                         const std::string& structure) {
  const StartFiles files = start_of(c, given);
  BoundaryStart start;
  start.name = "'" + (files.labels.empty() ? files.mesh : files.labels) + "'";
  if (!files.poses.empty()) {
    start.pose = pose_in_file(files.poses, structure);
  } else if (!files.labels.empty()) {
    start.labels = read_labels(files.labels, label_options(c.read));
  } else {
    start.mesh = read_mesh(files.mesh, c.read.warn);
  }
  return start;
}

void warn_of(const cases::CaseJob& c, const std::string& remark) {
  if (remark.empty()) return;
  c.context().warn((c.is_of_list ? "case '" + c.row.id + "': " : "") + remark);
}

void add_files(const cases::CaseJob& c, const std::shared_ptr<const RefinementJob>& job,
               Outputs& outputs) {
  Context host;
  host.threads = c.context().threads;
  outputs.add(c.file("output"), [=](const std::string& path) {
    const VertexNumbers numbers[] = {{"probability", job->found.probability},
                                     {"displacement_mm", job->found.displacement_mm}};
    write_mesh(path, job->found.mesh, numbers);
  });
  const std::string labels = c.file("labelmap");
  const LabelTable table = cases::named(c, {job->structure});
  if (!labels.empty()) {
    const auto write = cases::labelmap_writer(c, table, kDeformable);
    outputs.add(labels, [=](const std::string& path) {
      write(path, labels_of(job->found.mesh, job->grid, job->structure.value, host));
    });
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("color-table"),
              [=](const std::string& path) { write_label_table(path, table); });
  outputs.add(c.file("qc"), [=](const std::string& path) {
    const LabelVolume start = labels_of(job->found.start, job->grid, job->structure.value, host);
    picture::QcOptions options;
    options.reference = &start;
    options.colours = table;
    write_png(path,
              picture::qc_picture(job->image,
                                  labels_of(job->found.mesh, job->grid, job->structure.value, host),
                                  options));
  });
}

void add_figures(const RefinementJob& job, Outputs& outputs) {
  const RefinedBoundary& found = job.found;
  const auto count = static_cast<double>(found.probability.size());
  double sum = 0, moved = 0;
  for (const float p : found.probability) sum += p;
  for (const float mm : found.displacement_mm) moved += std::abs(static_cast<double>(mm));
  outputs.metric("volume_ml", found.volume_mm3 / 1000)
      .metric("area_cm2", found.area_mm2 / 100)
      .metric("probability", sum / count)
      .metric("displacement_mm", moved / count)
      .metric("displacement_voxels", found.displacement_voxels)
      .metric("flipped_triangles", found.flipped_triangles)
      .metric("without_boundary", found.without_boundary);
  for (const auto& [step, seconds] : found.seconds) outputs.metric("seconds: " + step, seconds);
  nlohmann::ordered_json structure{{"name", job.structure.name}, {"status", found.status}};
  std::string message;
  if (found.status != "found") message = "'" + job.structure.name + "' is " + found.status;
  char text[64];
  if (found.confidence >= 0) {
    outputs.metric("confidence", found.confidence);
    structure["confidence"] = found.confidence;
    std::snprintf(text, sizeof text, " (confidence %.2f)", found.confidence);
  } else {
    std::snprintf(text, sizeof text, ": %.0f %% of the vertices find no boundary",
                  100 * found.without_boundary);
  }
  if (!message.empty()) message += text;
  if (!found.remark.empty()) message += (message.empty() ? "" : "; ") + found.remark;
  outputs.report("structure", structure);
  const uint8_t* rgb = job.structure.rgb;
  outputs.structures.push_back(
      {job.structure.name, {rgb[0], rgb[1], rgb[2]}, found.volume_mm3 / 1000});
  if (!message.empty()) outputs.note(message);
  outputs.status(found.status == "not found" ? "rejected" : "done", message);
}

}  // namespace

Outputs refine_case(const cases::CaseJob& c, const Model& model, const StartFiles& given) {
  const auto job = std::make_shared<RefinementJob>();
  start_of(c, given);
  job->image = read_volume<float>(c.row.image, c.read);
  job->grid = job->image.grid();
  job->structure = model.structures()[0];
  cases::require_labelmap_holds(c, "labelmap", job->grid.size);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  BoundaryStart start = read_start(c, given, job->structure.name);
  Volume<float> image = c.wants("qc") ? job->image : std::move(job->image);
  job->found =
      refine_boundary(model, std::move(image), start, c.context(), "'" + c.row.image + "'");
  warn_of(c, job->found.remark);
  c.context().progress(1, "done");
  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  add_figures(*job, outputs);
  const std::string reference = c.row.cell(kReferenceColumn);
  if (!reference.empty()) {
    const auto labels = labels_of(job->found.mesh, job->grid, job->structure.value, c.context());
    add_dice(c, reference, labels, {job->structure}, &model, outputs);
  }
  add_files(c, job, outputs);
  return outputs;
}

void check_start(const cases::CaseJob& c, const Model& model, const StartFiles& given) {
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  const BoundaryStart start = read_start(c, given, model.structures()[0].name);
  warn_of(c, larch::check_start(model, start, grid));
}

cases::CaseLook look_at_boundary(const cases::CaseJob& c, const Model& model,
                                 const StartFiles& start) {
  start_of(c, start);
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  cases::require_labelmap_holds(c, "labelmap", grid.size);
  const ModelFit fit = fit_of(model, grid, "'" + c.row.image + "'");
  cases::CaseLook look = cases::look_of(grid);
  look.cells.emplace_back("in the model", cases::size_cell(fit.grid));
  look.bytes = fit.bytes;
  return look;
}

}  // namespace larch::pipeline
