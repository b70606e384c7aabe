// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0

#include "larch/app/run_app.h"
#include "larch/cases/case_inputs.h"
#include "larch/config/bytes.h"
#include "larch/models/pbt_file.h"
#include "larch/pipeline/detection/detection_description.h"
#include "larch/pipeline/detection/detection_plan.h"
#include "larch/pipeline/detection/pbt_batch.h"

namespace {

using namespace larch;
using pipeline::Product;

struct Options {
  InputFile model;
  InputImage input, roi;
  InputFile list, dataset;
  OutputLabelmap output;
  OutputImage probability;
  OutputMesh mesh;
  OutputPicture qc;
  OutputFile candidates;
  OutputDir output_dir;
  std::vector<Product> write{Product::kLabels};
  std::string format = "nii.gz", mesh_format = "vtk";
  std::string series, memory;
  std::optional<double> nan_value;
  std::optional<int> frame;
  std::vector<Allow> allow;
  pipeline::DetectConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "model of pbt-train"}.required(),
      Field{"input,i", input, "image file or DICOM folder"},
      Field{"list,l", list, "many images: TSV or CSV with the column image, and id if wanted"}
          .no_effect_on_results(),
      Field{"dataset", dataset, "many images: dataset.json of a Decathlon or nnU-Net folder"}
          .no_effect_on_results(),
      Field{"output,o", output, "label map on the grid of the input"},
      Field{"probability", probability, "probability map on the grid of the input"},
      Field{"mesh", mesh, "surface: .vtk, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
      Field{"qc", qc, "picture of three slices with the contour (.png)"},
      Field{"candidates", candidates, "TSV of the most probable voxels"},
      Field{"output-dir", output_dir, "with --list: folder for <id>.nii.gz ... and status.tsv"},
      Field{"write", write, "with --list: what to write for each image (default labels)"}
          .no_effect_on_results(),  // the names of the outputs tell it, as they do the formats
      Field{"format", format, "with --list: ending of label and probability maps"}
          .no_effect_on_results(),
      Field{"mesh-format", mesh_format, "with --list: ending of meshes"}.no_effect_on_results(),
      Field{"roi", roi, "mask on the grid of the input: only there the tree is evaluated"},
      Field{"series", series, "SeriesInstanceUID, if the DICOM folder holds several"},
      Field{"nan-value", nan_value, "stands for voxels that are not numbers"}, allow_field(allow),
      frame_field(frame),
      Field{"memory", memory,
            "memory of the evaluation, such as 4G or 500M (default: most of what is free)"}
          .no_effect_on_results());
  }
  ListedInputs listed_inputs() const {
    ListedInputs listed{cases::detached_inputs("input", input)};
    for (const RunInput& data : cases::detached_inputs("roi", roi)) listed.inputs.push_back(data);
    return listed;
  }
  bool by_case() const { return list || dataset; }
  pipeline::DetectionFiles files() const { return {output, probability, mesh, qc, candidates}; }
  void check() const {
    memory_bytes();
    if (static_cast<bool>(input) + static_cast<bool>(list) + static_cast<bool>(dataset) > 1) {
      throw UsageError("give one of --input, --list and --dataset");
    }
    if (!by_case()) {
      if (!input) throw UsageError("--input is missing; give it, or --list for many images");
      if (output_dir) throw UsageError("--output-dir goes with --list; give --output");
      return pipeline::check_files(files());
    }
    if (!output_dir) throw UsageError("--output-dir is missing: the folder for the results");
    if (!files().all().empty() || roi || !series.empty()) {
      throw UsageError(
          "--output, --probability, --mesh, --qc, --candidates, --roi and --series are for one "
          "image; with --list give --output-dir and --write");
    }
    pipeline::check_files(
        pipeline::files_of_case("", "case", write, "." + format, "." + mesh_format));
  }
  std::vector<std::string> companions() const {
    return output ? std::vector{files().table()} : std::vector<std::string>{};
  }
  int64_t memory_bytes() const { return memory.empty() ? 0 : parse_bytes("--memory", memory); }
  ReadOptions read_options(const Context& context) const {
    return {nan_value, series, allow, [&](const std::string& text) { context.warn(text); }, frame};
  }
};

pipeline::BatchRequest batch_of(const Options& options, const Context& context) {
  CaseColumns columns;
  columns.files_exist = false;  // a missing image is the failure of one case
  return {cases::cases_of(options.list.path, options.dataset.path, columns),
          options.output_dir,
          options.write,
          "." + options.format,
          "." + options.mesh_format,
          options.read_options(context),
          options.memory_bytes()};
}

pipeline::DetectionRequest request_of(const Options& options, const Context& context) {
  return {options.input, options.roi, options.files(), options.read_options(context),
          options.memory_bytes()};
}

Plan plan(const Options& options, const Context& context, const CaseWriter& writer) {
  const pbt::Model model = models::read_model(options.model);
  if (!options.by_case())
    return pipeline::plan_detection(model, options.config, request_of(options, context), context);
  return pipeline::plan_batch(model, options.config, batch_of(options, context), writer, context);
}

Outputs run(const Options& options, Context& context, const CaseWriter& writer) {
  const pbt::Model model = models::read_model(options.model);
  if (!options.by_case())
    return pipeline::detect_on_image(model, options.config, request_of(options, context), context);
  return pipeline::detect_batch(model, options.config, batch_of(options, context), writer, context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "pbt-detect";
  info.summary = "Find a structure with a model of pbt-train.";
  info.description = pipeline::kDetectDescription;
  info.examples = {"pbt-detect --model liver.pbt --input patient.nii.gz --output seg.nii.gz",
                   "pbt-detect --model liver.pbt --input dicom-folder/ --output seg.nii.gz "
                   "--probability p.nii.gz --mesh liver.vtk --qc qc.png --report r.json",
                   "pbt-detect --model liver.pbt --list cases.tsv --output-dir out --write "
                   "labels,mesh,qc"};
  info.references = {
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011"};
  info.uses_seed = false;
  return run_app<Options>(info, argc, argv, run, plan);
}
