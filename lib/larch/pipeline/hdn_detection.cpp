// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/hdn_detection.h"

#include <cmath>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/cases/labelmaps.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/image.h"
#include "larch/picture/qc.h"
#include "larch/poses.h"

namespace larch::pipeline {
namespace {

constexpr picture::Rgb kWarning{255, 200, 60};

/// One image on its way.
struct PoseJob {
  std::string name;       ///< of the case
  Volume<float> image{};  ///< empty after the detection unless a picture is wanted
  Grid grid{};            ///< of the image
  FoundPoses found{};
  LabelTable structures{};
};

/// "found, confidence 0.93".
std::string status_of(const DetectedPose& p) {
  if (!std::isfinite(p.confidence)) return p.status;
  return p.status + formatted(", confidence %.2f", p.confidence);
}

RgbImage picture_of(const PoseJob& job) {
  std::vector<picture::PoseRow> rows;
  for (size_t k = 0; k < job.found.poses.size(); ++k) {
    const DetectedPose& p = job.found.poses[k];
    picture::PoseRow& row = rows.emplace_back();
    row.name = p.name;
    row.status = status_of(p);
    const uint8_t* rgb = job.structures[k].rgb;
    row.colour = {rgb[0], rgb[1], rgb[2]};
    row.status_colour = p.status == "found" ? picture::kWhite : kWarning;
    if (p.has_pose) row.pose = p.pose;
  }
  return picture::pose_picture(job.image, job.name, rows);
}

nlohmann::ordered_json report_of(const DetectedPose& p) {
  nlohmann::ordered_json entry{{"name", p.name}, {"status", p.status}};
  if (std::isfinite(p.confidence)) entry["confidence"] = p.confidence;
  if (p.has_pose) {
    const Vec3d& at = p.pose.centre_mm;
    entry["center_mm"] = {at.x, at.y, at.z};
  }
  for (const auto& [name, value] : p.figures) entry[name] = value;
  return entry;
}

void add_files(const cases::CaseJob& c, const std::shared_ptr<const PoseJob>& job,
               Outputs& outputs) {
  outputs.add(c.file("output"),
              [=](const std::string& path) { write_pose_file(path, job->found.poses); });
  outputs.add(c.file("markups"), [=](const std::string& path) {
    std::vector<NamedPose> boxes;
    for (const DetectedPose& p : job->found.poses) {
      if (p.has_pose) boxes.push_back({p.name, p.pose});
    }
    write_poses(path, boxes, /*axial_lines=*/true);
  });
  const std::string labels = c.file("labelmap");
  if (!labels.empty()) {
    const int threads = c.context().threads;
    const auto write = cases::labelmap_writer(c, job->structures);
    outputs.add(labels, [=](const std::string& path) {
      if (file_extension(path) == ".seg.nrrd") {
        return write_segmentation(path, layered_boxes(job->found, job->grid, threads),
                                  job->structures, threads);
      }
      write(path, label_boxes(job->found, job->grid, threads));
    });
    outputs.add_companion(cases::companion_of(labels, ".tsv"), [=](const std::string& path) {
      write_label_table(path, job->structures);
    });
  }
  outputs.add(c.file("color-table"),
              [=](const std::string& path) { write_label_table(path, job->structures); });
  outputs.add(c.file("qc"), [=](const std::string& path) { write_png(path, picture_of(*job)); });
}

}  // namespace

Outputs detect_poses(const cases::CaseJob& c, const Model& network, bool strict) {
  const auto job = std::make_shared<PoseJob>();
  // As a list names it, so that the picture is the same.
  job->name = c.is_of_list ? c.row.id : cases::companion_of(c.row.id, "");
  Outputs outputs;
  {
    const Step step(outputs.steps, "reading", 0, c.context());
    job->image = read_volume<float>(c.row.image, c.read);
  }
  job->grid = job->image.grid();
  cases::require_labelmap_holds(c, "labelmap", job->grid.size);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  job->structures = cases::named(c, network.structures());
  Volume<float> image = c.wants("qc") ? job->image : std::move(job->image);
  job->found = find_poses(network, std::move(image), c.context(), "'" + c.row.image + "'");
  c.context().progress(1, "done");

  outputs.grid(c.row.image, describe(job->grid));
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  size_t found = 0, uncertain = 0;
  std::string lacking;
  for (const DetectedPose& p : job->found.poses) {
    report.push_back(report_of(p));
    const uint8_t* rgb = job->structures[outputs.structures.size()].rgb;
    outputs.structures.push_back({p.name, {rgb[0], rgb[1], rgb[2]}, {}, {}, status_of(p)});
    found += p.status == "found" ? 1 : 0;
    uncertain += p.status == "uncertain" ? 1 : 0;
    if (!p.has_pose) lacking += (lacking.empty() ? "" : ", ") + p.name + " " + p.status;
  }
  outputs.report("structures", report);
  outputs.metric("structures", static_cast<double>(job->found.poses.size()))
      .metric("found", static_cast<double>(found))
      .metric("uncertain", static_cast<double>(uncertain));
  outputs.seconds(job->found.seconds);
  add_files(c, job, outputs);
  if (found + uncertain == 0) {
    outputs.status("rejected", "nothing was detected");
  } else if (strict && !lacking.empty()) {
    outputs.status("rejected", "not all structures were detected: " + lacking);
  }
  return outputs;
}

cases::CaseLook look_at_poses(const cases::CaseJob& c, const Model& network) {
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  cases::require_labelmap_holds(c, "labelmap", grid.size);
  const ModelFit fit = fit_of(network, grid, "'" + c.row.image + "'");
  cases::CaseLook look = cases::look_of(grid);
  look.cells.emplace_back("in the model", cases::size_cell(fit.grid));
  look.bytes = fit.bytes;
  return look;
}

}  // namespace larch::pipeline
