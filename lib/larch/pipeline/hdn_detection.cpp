// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/hdn_detection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/step.h"
#include "larch/image/preprocess.h"
#include "larch/io/markups/markups.h"
#include "larch/models/layout.h"
#include "larch/models/model_file.h"
#include "larch/picture/qc.h"

namespace larch::pipeline {
namespace {

constexpr picture::Rgb kWarning{255, 200, 60};

/// One image on its way.
struct PoseJob {
  std::string name;       ///< of the case
  Volume<float> image{};  ///< empty after the detection unless a picture is wanted
  Grid grid{};            ///< of the image
  std::vector<DetectedPose> poses{};
  std::vector<int32_t> parents{};  ///< by structure; -1: none
  StepSeconds seconds{};
};

std::string rounded(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// "kept_4mm_position": what a detector's number of candidates is called.
std::string kept_name(const hdn::Model& model, const hdn::Stage& stage) {
  return "kept_" + rounded("%g", model.spacing_mm(stage.level)) + "mm_" +
         models::enumerator_name(stage.kind);
}

std::string status_of(const hdn::FoundStructure& found, const hdn::Model& model, size_t s) {
  switch (found.status) {
    case hdn::FoundStatus::kFound:
      return "found";
    case hdn::FoundStatus::kUncertain:
      return "uncertain";
    case hdn::FoundStatus::kNotFound:
      return "not found";
    case hdn::FoundStatus::kSkipped:
      break;
  }
  return "skipped: parent " +
         model.structures[static_cast<size_t>(model.structures[s].parent)].name;
}

/// A structure as files tell it; what was not found has no pose.
DetectedPose detected(const hdn::FoundStructure& found, const hdn::ResidentModel& network,
                      size_t s) {
  DetectedPose out;
  out.name = network.model.structures[s].name;
  out.status = status_of(found, network.model, s);
  if (found.status == hdn::FoundStatus::kSkipped) return out;
  out.confidence = found.confidence;
  out.pose = found.pose;
  out.has_pose = found.status != hdn::FoundStatus::kNotFound;
  out.figures = {{"support", found.support},
                 {"spread_mm", found.spread_mm},
                 {"spread_deg", found.spread_deg},
                 {"truncated", found.truncated ? 1 : 0},
                 {"searched_everywhere", found.is_fallback ? 1 : 0}};
  for (size_t k = 0; k < found.kept.size(); ++k) {
    out.figures.emplace_back(kept_name(network.model, network.detectors[s][k].stage),
                             found.kept[k]);
  }
  return out;
}

/// The image is resampled and quantised as the model wants it; in the turn of the case its
/// structures are looked for.
void find_structures(const cases::CaseJob& c, const hdn::ResidentModel& network, PoseJob& job) {
  Volume<int16_t> voxels;
  {
    const Step step(job.seconds, "model space", 0, c.context());
    voxels =
        image::to_model_space(job.image, network.model.space, c.context(), "'" + c.row.image + "'");
    if (!c.wants("qc")) job.image = {};
  }
  const Turn turn = c.context().turn();
  const Step step(job.seconds, "detection", 0.2, turn.context());
  hdn::SharedTimes shared;
  const std::vector<hdn::FoundStructure> found =
      hdn::detect(network, voxels, job.grid, turn.context(), &shared);
  if (network.on_host) {
    job.seconds.emplace_back("orientation on the CPU", shared.cpu_seconds);
    job.seconds.emplace_back("sending scores, waiting for the GPU", shared.wait_seconds);
  }
  for (size_t s = 0; s < found.size(); ++s) {
    job.poses.push_back(detected(found[s], network, s));
    job.parents.push_back(network.model.structures[s].parent);
  }
}

/// Decides where two boxes overlap: what was found inside of another structure is more special than
/// that; otherwise the surer one is. `later` comes after `earlier` in the model.
bool goes_over(const PoseJob& job, size_t later, size_t earlier) {
  for (int32_t s = job.parents[later]; s >= 0; s = job.parents[static_cast<size_t>(s)]) {
    if (static_cast<size_t>(s) == earlier) return true;
  }
  return job.poses[later].confidence > job.poses[earlier].confidence;
}

/// The voxels first to end - 1 that can lie in a box.
std::pair<Vec3i, Vec3i> voxels_around(const Pose& pose, const Grid& grid) {
  std::pair<Vec3i, Vec3i> range{grid.size, {0, 0, 0}};
  for (int number = 0; number < 8; ++number) {
    const Vec3d at = index_from_world(grid, corner(pose, number));
    for (int axis = 0; axis < 3; ++axis) {
      const double size = grid.size[axis];
      const auto low = static_cast<int>(std::clamp(std::floor(at[axis]), 0.0, size));
      const auto end = static_cast<int>(std::clamp(std::ceil(at[axis]) + 1, 0.0, size));
      range.first[axis] = std::min(range.first[axis], low);
      range.second[axis] = std::max(range.second[axis], end);
    }
  }
  return range;
}

/// The voxels whose centres lie in the box of structure k have the value k + 1.
LabelVolume label_boxes(const PoseJob& job, int threads) {
  LabelVolume labels(job.grid);
  for (size_t k = 0; k < job.poses.size(); ++k) {
    if (!job.poses[k].has_pose) continue;
    const Pose& pose = job.poses[k].pose;
    const auto [first, end] = voxels_around(pose, job.grid);
    const auto label = [&](const Vec3i& at) {
      const Vec3d box = box_from_world(pose, world_from_index(job.grid, at.cast<double>()));
      if (std::max({std::abs(box.x), std::abs(box.y), std::abs(box.z)}) > 0.5) return;
      int32_t& value = labels(at);
      if (value == 0 || goes_over(job, k, static_cast<size_t>(value - 1))) {
        value = static_cast<int32_t>(k) + 1;
      }
    };
    parallel_for(threads, std::max(end.z - first.z, 0), 1,
                 [&, first = first, end = end](int64_t from, int64_t to) {
                   for (int z = first.z + static_cast<int>(from); z < first.z + to; ++z)
                     for (int y = first.y; y < end.y; ++y)
                       for (int x = first.x; x < end.x; ++x) label({x, y, z});
                 });
  }
  return labels;
}

picture::Rgb colour_of(size_t structure) {
  return picture::palette_colour(static_cast<int64_t>(structure) + 1);
}

LabelTable label_table(const PoseJob& job) {
  LabelTable table;
  for (size_t k = 0; k < job.poses.size(); ++k) {
    const auto [r, g, b] = colour_of(k);
    table.push_back({static_cast<int32_t>(k) + 1, job.poses[k].name, {r, g, b}});
  }
  return table;
}

RgbImage picture_of(const PoseJob& job) {
  std::vector<picture::PoseRow> rows;
  for (size_t k = 0; k < job.poses.size(); ++k) {
    const DetectedPose& p = job.poses[k];
    picture::PoseRow& row = rows.emplace_back();
    row.name = p.name;
    row.status = p.status;
    if (std::isfinite(p.confidence)) row.status += rounded(", confidence %.2f", p.confidence);
    row.colour = colour_of(k);
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
              [=](const std::string& path) { write_pose_file(path, job->poses); });
  outputs.add(c.file("markups"), [=](const std::string& path) {
    std::vector<NamedPose> boxes;
    for (const DetectedPose& p : job->poses) {
      if (p.has_pose) boxes.push_back({p.name, p.pose});
    }
    write_poses(path, boxes, /*axial_lines=*/true);
  });
  const std::string labels = c.file("labelmap");
  if (!labels.empty()) {
    const int threads = c.context().threads;
    outputs.add(labels, [=](const std::string& path) {
      write_labelmap(path, label_boxes(*job, threads), label_table(*job), threads);
    });
    outputs.add_companion(cases::companion_of(labels, ".tsv"), [=](const std::string& path) {
      write_label_table(path, label_table(*job));
    });
  }
  outputs.add(c.file("qc"), [=](const std::string& path) { write_png(path, picture_of(*job)); });
}

}  // namespace

hdn::ResidentModel load_network(const std::string& path, const PoseDetectConfig& config,
                                const Device& device, const DigestSink& digest) {
  const PoseDetectConfig::Evaluate& e = config.evaluate;
  const tree::EvaluationRule rule{e.e1 > 0 ? e.e1 : -1, e.hard};
  if (!device.is_cuda()) config::require_default(config, "", "--device cuda", {"gpu_share"});
  hdn::Model model = models::read_model<hdn::Model>(path, digest);
  const bool is_forest = model.structures[0].detectors[0].is_forest();
  if (is_forest) config::require_default(e, "evaluate.", "networks of boosting trees");
  return hdn::make_resident(std::move(model), rule, device, config.gpu_share);
}

Outputs detect_poses(const cases::CaseJob& c, const hdn::ResidentModel& network, bool strict) {
  const auto job = std::make_shared<PoseJob>();
  // As a list names it, so that the picture is the same.
  job->name = c.is_of_list ? c.row.id : cases::companion_of(c.row.id, "");
  job->image = read_volume<float>(c.row.image, c.read);
  job->grid = job->image.grid();
  if (c.wants("labelmap")) require_image_holds(c.file("labelmap"), job->grid.size);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  find_structures(c, network, *job);
  c.context().progress(1, "done");

  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  size_t found = 0, uncertain = 0;
  std::string lacking;
  for (const DetectedPose& p : job->poses) {
    report.push_back(report_of(p));
    found += p.status == "found" ? 1 : 0;
    uncertain += p.status == "uncertain" ? 1 : 0;
    if (!p.has_pose) lacking += (lacking.empty() ? "" : ", ") + p.name + " " + p.status;
  }
  outputs.report("structures", report);
  outputs.metric("structures", static_cast<double>(job->poses.size()))
      .metric("found", static_cast<double>(found))
      .metric("uncertain", static_cast<double>(uncertain));
  for (const auto& [step, seconds] : job->seconds) outputs.metric("seconds: " + step, seconds);
  add_files(c, job, outputs);
  if (found + uncertain == 0) {
    outputs.status("rejected", "nothing was detected");
  } else if (strict && !lacking.empty()) {
    outputs.status("rejected", "not all structures were detected: " + lacking);
  }
  return outputs;
}

cases::CaseLook look_at_poses(const cases::CaseJob& c, const hdn::ResidentModel& network) {
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  if (c.wants("labelmap")) require_image_holds(c.file("labelmap"), grid.size);
  const hdn::Model& model = network.model;
  const Grid space = image::model_grid(grid, model.space, "'" + c.row.image + "'");
  cases::CaseLook look = cases::look_of(grid);
  look.cells.emplace_back("in the model", cases::size_cell(space));
  // The image, and of each level voxels, texels and integrals, the former two twice where the CPU
  // shares the work of a GPU.
  const int64_t twins = network.on_host ? 2 : 1;
  look.bytes = 4 * grid.voxels() + 2 * space.voxels();
  Vec3i size = space.size;
  for (int halvings = 0; halvings < model.halvings + features::kSteerableLevels; ++halvings) {
    const int64_t voxels = int64_t{size.x} * size.y * size.z;
    look.bytes += twins * voxels * static_cast<int64_t>(sizeof(int16_t) + sizeof(image::Texel));
    const int level = model.halvings - halvings;
    if (level >= 0 && network.sums_boxes[static_cast<size_t>(level)]) {
      look.bytes +=
          4 * image::total_elements(image::layouts_for(size, model.channels, network.reach));
    }
    size = image::pyramid_size(size);
  }
  return look;
}

}  // namespace larch::pipeline
