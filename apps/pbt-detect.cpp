// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"
#include "larch/cases/option_groups.h"
#include "larch/models/pbt_file.h"
#include "larch/pipeline/detection/detection_description.h"
#include "larch/pipeline/detection/detection_plan.h"
#include "larch/pipeline/detection/pbt_batch.h"

namespace {

using namespace larch;
using pipeline::Product;

struct Options {
  InputFile model;
  cases::OneImage image;
  OutputLabelmap output;
  OutputImage probability;
  OutputMesh mesh;
  OutputPicture qc;
  OutputFile candidates;
  cases::ManyImages<Product> many{
      .write_help = "with --list: what to write for each image (default labels)",
      .format_help = "with --list: ending of label and probability maps",
      .mesh_format_help = "with --list: ending of meshes",
      .write = {Product::kLabels}};
  InputImage roi;
  cases::MemoryLimit limit;
  pipeline::DetectConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "model of pbt-train"}.required());
    image.fields(f);
    f(Field{"output,o", output, "label map on the grid of the input"},
      Field{"probability", probability, "probability map on the grid of the input"},
      Field{"mesh", mesh, "surface: .vtk, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
      Field{"qc", qc, "picture of three slices with the contour (.png)"},
      Field{"candidates", candidates, "TSV of the most probable voxels"});
    many.fields(f);
    f(Field{"roi", roi, "mask on the grid of the input: only there the tree is evaluated"});
    limit.fields(f);
  }
  ListedInputs listed_inputs() const {
    ListedInputs listed{image.inputs()};
    for (const RunInput& data : cases::detached_inputs("roi", roi)) listed.inputs.push_back(data);
    return listed;
  }
  bool by_case() const { return static_cast<bool>(many); }
  pipeline::DetectionFiles files() const { return {output, probability, mesh, qc, candidates}; }
  void check() const {
    many.check(image);
    if (!many) return pipeline::check_files(files());
    if (!files().all().empty() || roi) {
      throw UsageError(
          "--output, --probability, --mesh, --qc, --candidates and --roi are for one image; with "
          "--list give --output-dir and --write");
    }
    pipeline::check_files(
        pipeline::files_of_case("", "case", many.write, many.image_ending(), many.mesh_ending()));
  }
  std::vector<std::string> companions() const {
    return output ? std::vector{files().table()} : std::vector<std::string>{};
  }
};

pipeline::BatchRequest batch_of(const Options& options, const Context& context) {
  return options.many.batch(options.image, options.limit.memory, context);
}

pipeline::DetectionRequest request_of(const Options& options, const Context& context) {
  return {options.image.input, options.roi, options.files(), options.image.read_options(context),
          options.limit.memory.count};
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
