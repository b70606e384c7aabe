// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <memory>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/io/file.h"
#include "larch/io/image.h"
#include "larch/io/mesh_io.h"
#include "larch/models/pbt_file.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/pbt_detection.h"

namespace {

using namespace larch;

struct Options {
  InputFile model;
  InputImage input, roi;
  OutputLabelmap output;
  OutputImage probability;
  OutputMesh mesh;
  OutputPicture qc;
  OutputFile candidates;
  std::string series;
  std::optional<double> nan_value;
  pipeline::DetectConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "model of pbt-train"}.required(),
      Field{"input,i", input, "image file or DICOM folder"}.required(),
      Field{"output,o", output, "label map on the grid of the input"},
      Field{"probability", probability, "probability map on the grid of the input"},
      Field{"mesh", mesh, "surface: .vtk, .obj, .ply, .stl or .gii, LPS mm"},
      Field{"qc", qc, "picture of three slices with the contour (.png)"},
      Field{"candidates", candidates, "TSV of the most probable voxels"},
      Field{"roi", roi, "mask on the grid of the input: only there the tree is evaluated"},
      Field{"series", series, "SeriesInstanceUID, if the DICOM folder holds several"},
      Field{"nan-value", nan_value, "stands for voxels that are not numbers"});
  }
  void check() const {
    if (!output && !probability && !mesh && !qc && !candidates) {
      throw UsageError(
          "nothing to write: give --output, --probability, --mesh, --qc or "
          "--candidates");
    }
    for (const std::string* path : {&output.path, &probability.path}) {
      if (!path->empty()) require_image_extension(*path);
    }
    if (mesh) require_mesh_extension(mesh);
    if (qc && file_extension(qc) != ".png") {
      throw UsageError("cannot write '" + qc.path + "': --qc writes a picture that ends in .png");
    }
  }
  std::vector<std::string> companions() const {
    return output ? std::vector<std::string>{table_path()} : std::vector<std::string>{};
  }
  /// The label table beside the label map: seg.nii.gz -> seg.tsv.
  std::string table_path() const {
    const size_t ending = file_extension(output).size();
    return output.path.substr(0, output.path.size() - ending) + ".tsv";
  }
};

Volume<uint8_t> read_roi(const Options& options, const Grid& grid) {
  const Volume<uint8_t> roi = read_volume<uint8_t>(options.roi);
  const std::string difference = describe_difference(roi.grid(), grid, 1e-2);
  if (!difference.empty()) {
    throw InputError("'" + options.roi.path + "' is not on the grid of '" + options.input.path +
                     "': " + difference + "; resample it");
  }
  return roi;
}

Outputs run(const Options& options, Context& context) {
  const pbt::Model model = models::read_model(options.model);
  ReadOptions read;
  read.nan_value = options.nan_value;
  read.series_uid = options.series;
  const auto image = std::make_shared<Volume<float>>(read_volume<float>(options.input, read));
  context.info(describe(image->grid()));
  Volume<uint8_t> roi;
  if (options.roi) roi = read_roi(options, image->grid());
  const auto found = std::make_shared<pipeline::Detection>(
      pipeline::detect_pbt(model, *image, options.roi ? &roi : nullptr, options.config, context));

  const LabelTable table{{model.info.class_value, model.info.class_name, {230, 60, 50}}};
  Outputs outputs;
  outputs.grid(options.input, describe(image->grid()));
  outputs.metric("voxels", static_cast<double>(found->voxels))
      .metric("volume_ml", found->volume_mm3 / 1000);
  for (const auto& [step, seconds] : found->seconds) outputs.metric("seconds: " + step, seconds);
  outputs.add(options.output,
              [=](const std::string& path) { write_labelmap(path, found->labels, table); });
  if (options.output) {
    outputs.add(options.table_path(),
                [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(options.probability,
              [=, type = options.config.probability_type](const std::string& path) {
                pipeline::write_probability(path, found->probability, type);
              });
  outputs.add(options.mesh, [=](const std::string& path) { write_mesh(path, found->surface); });
  outputs.add(options.qc, [=](const std::string& path) {
    picture::QcOptions picture;
    picture.colours = table;
    write_png(path, picture::qc_picture(*image, found->labels, picture));
  });
  outputs.add(options.candidates,
              [=, count = options.config.candidate_count](const std::string& path) {
                write_file(path, pipeline::candidates_tsv(found->probability, count));
              });
  if (found->voxels < options.config.structure.min_voxels) {
    outputs.status("rejected", "nothing was detected: " + std::to_string(found->voxels) +
                                   " voxels of '" + model.info.class_name + "'");
  }
  return outputs;
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "pbt-detect";
  info.summary = "Find a structure with a model of pbt-train.";
  info.description =
      "Evaluates the boosting tree at every voxel, regularises the probabilities, and writes what "
      "is asked for: label map, probability map, surface mesh, picture. All are on the grid of the "
      "input or in LPS mm, whatever the space of the model. The results do not depend on the "
      "device or the number of threads. If nothing is found, the outputs are written with the "
      "status 'rejected' and the exit code is 7.";
  info.examples = {"pbt-detect --model liver.pbt --input patient.nii.gz --output seg.nii.gz",
                   "pbt-detect --model liver.pbt --input dicom-folder/ --output seg.nii.gz "
                   "--probability p.nii.gz --mesh liver.vtk --qc qc.png --report r.json"};
  info.references = {
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011"};
  return run_app<Options>(info, argc, argv, run);
}
