// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/detection_case.h"

#include <memory>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/pbt/evaluate/slabs.h"
#include "larch/picture/qc.h"

namespace larch::pipeline {
namespace {

using DetectionPtr = std::shared_ptr<DetectionJob>;

Wanted wanted_of(const cases::CaseJob& c) {
  return {c.wants("output") || c.wants("mesh") || c.wants("qc"), c.wants("mesh"), c.wants("qc")};
}

/// Throws UsageError if an image on this grid does not fit the format of its file.
void check_detection_fits(const cases::CaseJob& c, const Grid& grid) {
  for (const char* flag : {"output", "probability"}) {
    if (c.wants(flag)) require_image_holds(c.file(flag), grid.size);
  }
}

void require_roi_on_grid(const std::string& roi, const Grid& grid, const std::string& image,
                         const Grid& image_grid) {
  const std::string difference = describe_difference(grid, image_grid, 1e-2);
  if (difference.empty()) return;
  throw InputError("'" + roi + "' is not on the grid of '" + image + "': " + difference +
                   "; resample it");
}

void read_input(const cases::CaseJob& c, const std::string& roi, DetectionJob& job) {
  job.name = "'" + c.row.image + "'";
  job.image = read_volume<float>(c.row.image, c.read);
  check_detection_fits(c, job.image.grid());
  if (roi.empty()) return;
  job.roi = read_volume<uint8_t>(roi, label_options(c.read));
  require_roi_on_grid(roi, job.roi.grid(), c.row.image, job.image.grid());
}

void add_files(const cases::CaseJob& c, const DetectionPtr& job, const LabelTable& table,
               const DetectConfig& config, Outputs& outputs) {
  const std::string labels = c.file("output");
  const int threads = c.context().threads;
  outputs.add(labels, [=](const std::string& path) {
    write_labelmap(path, job->found.labels, table, threads);
  });
  if (!labels.empty()) {
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("probability"), [=, type = config.probability_type](const std::string& path) {
    write_probability(path, job->found.probability, type, threads);
  });
  outputs.add(c.file("mesh"),
              [=](const std::string& path) { write_mesh(path, job->found.surface); });
  outputs.add(c.file("qc"), [=](const std::string& path) {
    picture::QcOptions picture;
    picture.colours = table;
    write_png(path, picture::qc_picture(job->image, job->found.labels, picture));
  });
  outputs.add(c.file("candidates"), [=, count = config.candidate_count](const std::string& path) {
    write_file(path, candidates_tsv(job->found.probability, count));
  });
}

Outputs outputs_of(const cases::CaseJob& c, const DetectConfig& config, const pbt::Model& model,
                   const DetectionPtr& job) {
  const Detection& found = job->found;
  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  outputs.metric("voxels", static_cast<double>(found.voxels))
      .metric("volume_ml", found.volume_mm3 / 1000);
  for (const auto& [step, seconds] : found.seconds) outputs.metric("seconds: " + step, seconds);
  add_files(c, job, {{model.info.class_value, model.info.class_name, {230, 60, 50}}}, config,
            outputs);
  if (found.voxels < config.structure.min_voxels) {
    outputs.status("rejected", "nothing was detected: " + std::to_string(found.voxels) +
                                   " voxels of '" + model.info.class_name + "'");
  }
  return outputs;
}

}  // namespace

Outputs detect_case(const cases::CaseJob& c, const DetectionRequest& request,
                    const pbt::Model& model) {
  const DetectConfig& config = request.config;
  const auto job = std::make_shared<DetectionJob>();
  job->wanted = wanted_of(c);
  job->memory_bytes = request.memory_bytes;
  read_input(c, request.roi, *job);
  if (!c.is_of_list) c.context().info(describe(job->image.grid()));
  // The image, resampled and quantised as the model wants it.
  prepare(model, config, *job, c.context());
  {
    // Channels, integrated, and the trees at every voxel: the posterior in the model's space.
    const cases::Turn turn = c.turn();
    evaluate(model, config, *job, turn.context());
  }
  // The probability on the grid of the image; graph cut, components, holes; the labels.
  find_structure(model, config, *job, c.context());
  // Marching cubes and smoothing.
  find_surface(config, *job, c.context());
  c.context().progress(1, "done");
  return outputs_of(c, config, model, job);
}

cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionRequest& request,
                                  const pbt::Model& model) {
  pbt::check_config(request.config.evaluate);
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  cases::CaseLook look = cases::look_of(grid);
  check_detection_fits(c, grid);
  check_structure(request.config, wanted_of(c), grid);
  if (!request.roi.empty()) {
    const Grid of_roi = probe_image(request.roi, label_options(c.read)).grid;
    require_roi_on_grid(request.roi, of_roi, c.row.image, grid);
  }
  const Device& device = c.context().device;
  pbt::SlabProblem problem{image::model_grid(grid, model.space).size};
  problem.roi = !request.roi.empty();
  problem.on_gpu = device.is_cuda();
  problem.memory_bytes =
      request.memory_bytes > 0 ? request.memory_bytes : pbt::default_memory_bytes(device);
  look.bytes = pbt::plan_slabs(model, problem).bytes;
  return look;
}

}  // namespace larch::pipeline
