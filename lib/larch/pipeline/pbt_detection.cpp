// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_detection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/cases/labelmaps.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/image.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/components.h"
#include "larch/pipeline/structures.h"

namespace larch::pipeline {
namespace {

/// One image and what was found in it.
struct DetectionJob {
  Grid grid{};           ///< of the image
  LabelTable classes{};  ///< of the model, beside the background
  Detection found{};
};
using DetectionPtr = std::shared_ptr<DetectionJob>;

/// Returns the request for a case without its region.
DetectRequest request_of(const cases::CaseJob& c, const DetectionFiles& given) {
  DetectRequest request;
  request.config = given.config;
  request.labels = c.wants("output") || c.wants("mesh") || c.wants("qc");
  request.probability = c.wants("probability") || c.wants("candidates");
  request.surfaces = c.wants("mesh");
  request.distribution = c.wants("distribution");
  request.leaves = c.wants("leaves");
  request.shown = c.wants("qc");
  request.memory_bytes = given.memory_bytes;
  request.name = "'" + c.row.image + "'";
  return request;
}

/// Throws UsageError if an image on this grid does not fit the format of its file, or its structure
/// cannot be regularised.
void check_fits(const cases::CaseJob& c, const DetectRequest& request, const Grid& grid) {
  cases::require_labelmap_holds(c, "output", grid.size);
  if (c.wants("probability")) require_image_holds(c.file("probability"), grid.size);
  if (request.cuts_graph()) {
    regularise::check_lambda(request.config.structure.graph_cut, grid);
  }
}

/// Returns the mask of a case; empty: it has none.
std::string roi_of(const cases::CaseJob& c, const DetectionFiles& given) {
  const std::string path = c.is_of_list ? c.row.cell(kRoiColumn) : given.roi;
  return path == "n/a" ? "" : path;
}

Volume<uint8_t> read_region(const cases::CaseJob& c, const std::string& path, const Grid& grid) {
  if (path.empty()) return {};
  const LabelVolume labels = read_labels(path, label_options(c.read, grid));
  cases::require_same_grid(path, labels.grid(), c.row.image, grid);
  return mapped<uint8_t>(labels, [](int32_t label) { return label != 0; });
}

/// Returns the boxes that the poses of a case have; empty: it has none. `outputs` gets the notes.
std::vector<std::optional<Pose>> boxes_of(const cases::CaseJob& c, const DetectionFiles& given,
                                          const Model& model, Outputs& outputs) {
  const std::string path = poses_file(c, given.poses);
  if (path.empty()) return {};
  auto boxes = boxes_in_file(path, model.structures(), outputs.notes);
  for (std::string& note : outputs.notes) note += ", and is not looked for";
  return boxes;
}

/// Writes probabilities, a distribution as the volumes of one file.
template <class T>
void write_maps(const std::string& path, std::span<const Volume<T>> maps, bool is_series,
                int threads) {
  if (is_series) return write_volume_series<T>(path, maps, threads);
  write_volume(path, maps[0], threads);
}

/// Writes them as integers: 1 becomes the largest value of T.
template <class T>
void write_scaled(const std::string& path, std::span<const Volume<float>> maps, bool is_series,
                  int threads) {
  std::vector<Volume<T>> scaled;
  for (const Volume<float>& map : maps) {
    scaled.push_back(mapped<T>(
        map, [](float p) { return std::nearbyint(p * double{std::numeric_limits<T>::max()}); }));
  }
  write_maps<T>(path, scaled, is_series, threads);
}

void write_probabilities(const std::string& path, std::span<const Volume<float>> maps,
                         bool is_series, pbt::ProbabilityType type, int threads) {
  const auto write = type == pbt::ProbabilityType::kFloat32  ? write_maps<float>
                     : type == pbt::ProbabilityType::kUint16 ? write_scaled<uint16_t>
                                                             : write_scaled<uint8_t>;
  write(path, maps, is_series, threads);
}

/// Returns the candidate list as text: rank, index (x, y, z), LPS mm and probability,
/// tab-separated.
std::string candidates_tsv(const Volume<float>& probability, int64_t count) {
  std::string text = "rank\ti\tj\tk\tx_mm\ty_mm\tz_mm\tprobability\n";
  int rank = 1;
  for (const Candidate& c : top_candidates(probability, count)) {
    const Vec3i at = probability.grid().voxel(c.voxel);
    const Vec3d p = world_from_index(probability.grid(), at.cast<double>());
    text += formatted("%d\t%d\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.6f\n", rank++, at.x, at.y, at.z, p.x,
                      p.y, p.z, static_cast<double>(c.probability));
  }
  return text;
}

void add_files(const cases::CaseJob& c, const DetectionPtr& job, const DetectConfig& config,
               Outputs& outputs) {
  const LabelTable& table = job->classes;
  const std::string labels = c.file("output");
  const int threads = c.context().threads;
  outputs.add(labels, [=, write = cases::labelmap_writer(c, table)](const std::string& path) {
    write(path, job->found.labels);
  });
  if (!labels.empty()) {
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("color-table"),
              [=](const std::string& path) { write_label_table(path, table); });
  const pbt::ProbabilityType type = config.probability_type;
  outputs.add(c.file("probability"), [=](const std::string& path) {
    write_probabilities(path, std::span(&job->found.probability, 1), false, type, threads);
  });
  outputs.add(c.file("distribution"), [=](const std::string& path) {
    write_probabilities(path, job->found.distribution, true, type, threads);
  });
  outputs.add(c.file("leaves"), [=](const std::string& path) {
    write_labelmap_series(path, job->found.leaves, {}, threads);
  });
  const std::string mesh = c.file("mesh");
  outputs.add(mesh, [=](const std::string& path) { write_mesh(path, job->found.surfaces[0]); });
  for (size_t k = 1; k < job->found.surfaces.size(); ++k) {
    const std::string ending =
        ".class-" + std::to_string(table[k - 1].value) + file_extension(mesh);
    outputs.add_companion(cases::companion_of(mesh, ending), [=](const std::string& path) {
      write_mesh(path, job->found.surfaces[k]);
    });
  }
  outputs.add(c.file("qc"), [=](const std::string& path) {
    picture::QcOptions picture;
    picture.colours = table;
    write_png(path, picture::qc_picture(job->found.shown, job->found.labels, picture));
  });
  outputs.add(c.file("candidates"), [=, count = config.candidate_count](const std::string& path) {
    write_file(path, candidates_tsv(job->found.probability, count));
  });
}

/// Reports the voxels and the volume of each class.
void add_volumes(const DetectionJob& job, std::map<int32_t, int64_t> counts, Outputs& outputs) {
  auto classes = nlohmann::ordered_json::array();
  for (const LabelEntry& entry : job.classes) {
    const auto voxels = counts[entry.value];
    const double volume_ml = static_cast<double>(voxels) * job.grid.voxel_volume_mm3() / 1000;
    classes.push_back({{"value", entry.value},
                       {"name", entry.name},
                       {"voxels", voxels},
                       {"volume_ml", volume_ml}});
  }
  outputs.report("classes", classes);
}

}  // namespace

void check_for(const Model& model, const std::vector<CaseOutput>& files,
               const DetectConfig& config) {
  const auto refuse = [&](std::initializer_list<const char*> flags, const char* why) {
    for (const char* flag : flags) {
      if (!cases::file_of(files, flag).empty()) throw UsageError(std::string("--") + flag + why);
    }
  };
  check_settings(model, config);
  if (!model.is_forest()) refuse({"distribution", "leaves"}, ": the model is no decision forest");
  if (config.leaf_trees != 0 && cases::file_of(files, "leaves").empty()) {
    throw UsageError("--leaf_trees goes with --leaves");
  }
  if (!model.has_background()) {
    refuse({"probability", "candidates", "mesh"},
           ": the model has no background class, from which structures could be told");
  }
  for (const char* flag : {"distribution", "leaves"}) {
    const std::string path = cases::file_of(files, flag);
    if (!path.empty()) require_series_ending(path);
  }
}

Outputs detect_case(const cases::CaseJob& c, const DetectionFiles& given, const Model& model) {
  const auto job = std::make_shared<DetectionJob>();
  job->classes = cases::named(c, model.structures());
  DetectRequest request = request_of(c, given);
  Outputs outputs;
  std::optional<Step> reading(std::in_place, outputs.steps, "reading", 0, c.context());
  std::vector<Volume<float>> components = read_components(c.row, model.components(), c.read);
  job->grid = components[0].grid();
  check_fits(c, request, job->grid);
  request.region = read_region(c, roi_of(c, given), job->grid);
  request.boxes = boxes_of(c, given, model, outputs);
  reading.reset();
  if (!c.is_of_list) c.context().info(describe(job->grid));
  job->found = detect(model, std::move(components), request, c.context());
  c.context().progress(1, "done");
  for (const size_t k : job->found.outside) {
    outputs.note("the box of '" + job->classes[k].name + "' lies outside of the image");
  }

  const int64_t voxels = job->found.voxels;
  outputs.grid(c.row.image, describe(job->grid));
  if (voxels >= 0) {
    const double volume_mm3 = static_cast<double>(voxels) * job->grid.voxel_volume_mm3();
    outputs.metric("voxels", static_cast<double>(voxels)).metric("volume_ml", volume_mm3 / 1000);
  }
  if (job->found.threshold) outputs.metric("threshold", *job->found.threshold);
  if (!job->found.labels.empty()) {
    auto counts = add_structures(job->found.labels, job->classes, outputs);
    if (model.is_forest()) add_volumes(*job, std::move(counts), outputs);
    const std::string reference = c.row.cell(kReferenceColumn);
    add_dice(c, reference.empty() ? c.row.label : reference, job->found.labels, job->classes,
             &model, outputs);
  }
  outputs.seconds(job->found.seconds);
  add_files(c, job, given.config, outputs);
  if (voxels >= 0 && voxels < given.config.structure.min_voxels) {
    const std::string name = job->classes.size() == 1 ? job->classes[0].name : "any class";
    outputs.status("rejected",
                   "nothing was detected: " + std::to_string(voxels) + " voxels of '" + name + "'");
  }
  return outputs;
}

cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionFiles& given,
                                  const Model& model) {
  const Grid grid = probe_components(c.row, model.components(), c.read);
  const DetectRequest request = request_of(c, given);
  cases::CaseLook look = cases::look_of(grid);
  check_fits(c, request, grid);
  const std::string roi = roi_of(c, given);
  if (!roi.empty()) {
    cases::require_same_grid(roi, probe_image(roi, label_options(c.read, grid)).grid, c.row.image,
                             grid);
  }
  Outputs notes;
  const bool has_region = !roi.empty() || !boxes_of(c, given, model, notes).empty();
  look.bytes = detection_bytes(model, grid, request, has_region, c.context().device);
  return look;
}

}  // namespace larch::pipeline
