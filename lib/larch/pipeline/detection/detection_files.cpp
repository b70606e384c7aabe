// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/detection_files.h"

#include <algorithm>

#include "larch/cases/memory.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/picture/qc.h"

namespace larch::pipeline {
namespace {

// The flags that name the outputs of one image.
constexpr const char* kLabelsRole = "output";
constexpr const char* kProbabilityRole = "probability";
constexpr const char* kMeshRole = "mesh";
constexpr const char* kQcRole = "qc";
constexpr const char* kCandidatesRole = "candidates";

}  // namespace

std::string DetectionFiles::table() const {
  if (labels.empty()) return "";
  return labels.substr(0, labels.size() - file_extension(labels).size()) + ".tsv";
}

std::vector<std::string> DetectionFiles::all() const {
  std::vector<std::string> paths;
  for (const CaseOutput& output : names().outputs) paths.push_back(output.path);
  return paths;
}

CaseFiles DetectionFiles::names() const {
  CaseFiles names;
  for (const CaseOutput& output :
       {CaseOutput{labels, kLabelsRole}, CaseOutput{probability, kProbabilityRole},
        CaseOutput{mesh, kMeshRole}, CaseOutput{qc, kQcRole},
        CaseOutput{candidates, kCandidatesRole}}) {
    if (!output.path.empty()) names.outputs.push_back(output);
  }
  if (!labels.empty()) names.companions.push_back(table());
  return names;
}

Wanted DetectionFiles::wanted() const {
  return {!labels.empty() || !mesh.empty() || !qc.empty(), !mesh.empty(), !qc.empty()};
}

void check_files(const DetectionFiles& files) {
  if (files.all().empty()) {
    throw UsageError(
        "nothing to write: give --output, --probability, --mesh, --qc or --candidates");
  }
  for (const std::string& path : {files.labels, files.probability}) {
    if (!path.empty()) require_image_extension(path);
  }
  if (!files.mesh.empty()) require_mesh_extension(files.mesh);
  if (!files.qc.empty()) require_png_extension(files.qc, "--qc");
}

void check_files_hold(const DetectionFiles& files, const Grid& grid) {
  for (const std::string& path : {files.labels, files.probability}) {
    if (!path.empty()) require_image_holds(path, grid.size);
  }
}

DetectionFiles files_of_case(const std::string& folder, const std::string& id,
                             const std::vector<Product>& products, const std::string& image_ending,
                             const std::string& mesh_ending) {
  const std::string stem = folder + (folder.ends_with('/') ? "" : "/") + id;
  const auto has = [&](Product product) {
    return std::find(products.begin(), products.end(), product) != products.end();
  };
  DetectionFiles files;
  if (has(Product::kLabels)) files.labels = stem + image_ending;
  if (has(Product::kProbability)) files.probability = stem + ".probability" + image_ending;
  if (has(Product::kMesh)) files.mesh = stem + mesh_ending;
  if (has(Product::kQc)) files.qc = stem + ".png";
  if (has(Product::kCandidates)) files.candidates = stem + ".candidates.tsv";
  return files;
}

void read_input(const std::string& image, const std::string& roi, const ReadOptions& options,
                DetectionJob& job) {
  job.name = "'" + image + "'";
  job.image = read_volume<float>(image, options);
  if (roi.empty()) return;
  job.roi = read_volume<uint8_t>(roi, label_options(options));
  const std::string difference = describe_difference(job.roi.grid(), job.image.grid(), 1e-2);
  if (!difference.empty()) {
    throw InputError("'" + roi + "' is not on the grid of '" + image + "': " + difference +
                     "; resample it");
  }
}

Outputs detect_on_image(const pbt::Model& model, const DetectConfig& config,
                        const DetectionRequest& request, const Context& context) {
  cases::give_memory_back(request.memory_bytes);
  const auto job = std::make_shared<DetectionJob>();
  job->wanted = request.files.wanted();
  job->memory_bytes = request.memory_bytes;
  read_input(request.image, request.roi, request.read, *job);
  check_files_hold(request.files, job->image.grid());
  context.info(describe(job->image.grid()));
  detect(model, config, *job, context);
  return detection_outputs(model, config, request.files, request.image, job, context.threads);
}

Outputs detection_outputs(const pbt::Model& model, const DetectConfig& config,
                          const DetectionFiles& files, const std::string& input,
                          const std::shared_ptr<const DetectionJob>& job, int threads) {
  const Detection& found = job->found;
  const LabelTable table{{model.info.class_value, model.info.class_name, {230, 60, 50}}};
  Outputs outputs;
  outputs.grid(input, describe(job->grid));
  outputs.metric("voxels", static_cast<double>(found.voxels))
      .metric("volume_ml", found.volume_mm3 / 1000);
  for (const auto& [step, seconds] : found.seconds) outputs.metric("seconds: " + step, seconds);
  outputs.add(
      files.labels,
      [=](const std::string& path) { write_labelmap(path, job->found.labels, table, threads); },
      kLabelsRole);
  outputs.add_companion(files.table(),
                        [=](const std::string& path) { write_label_table(path, table); });
  outputs.add(
      files.probability,
      [=, type = config.probability_type](const std::string& path) {
        write_probability(path, job->found.probability, type, threads);
      },
      kProbabilityRole);
  outputs.add(
      files.mesh, [=](const std::string& path) { write_mesh(path, job->found.surface); },
      kMeshRole);
  outputs.add(
      files.qc,
      [=](const std::string& path) {
        picture::QcOptions picture;
        picture.colours = table;
        write_png(path, picture::qc_picture(job->image, job->found.labels, picture));
      },
      kQcRole);
  outputs.add(
      files.candidates,
      [=, count = config.candidate_count](const std::string& path) {
        write_file(path, candidates_tsv(job->found.probability, count));
      },
      kCandidatesRole);
  if (found.voxels < config.structure.min_voxels) {
    outputs.status("rejected", "nothing was detected: " + std::to_string(found.voxels) +
                                   " voxels of '" + model.info.class_name + "'");
  }
  return outputs;
}

}  // namespace larch::pipeline
