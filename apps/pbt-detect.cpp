// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/bytes.h"
#include "larch/app/run_app.h"
#include "larch/models/pbt_file.h"
#include "larch/pipeline/detection_plan.h"
#include "larch/pipeline/image_inputs.h"
#include "larch/pipeline/pbt_batch.h"

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
      Field{"memory", memory,
            "memory of the evaluation, such as 4G or 500M (default: most of what is free)"}
          .no_effect_on_results());
  }
  ListedInputs listed_inputs() const {
    ListedInputs listed{pipeline::detached_inputs("input", input)};
    for (const RunInput& data : pipeline::detached_inputs("roi", roi))
      listed.inputs.push_back(data);
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
    return {nan_value, series, allow, [&](const std::string& text) { context.warn(text); }};
  }
};

pipeline::BatchRequest batch_of(const Options& options, const Context& context) {
  CaseColumns columns;
  columns.files_exist = false;  // a missing image is the failure of one case
  return {pipeline::cases_of(options.list.path, options.dataset.path, columns),
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

constexpr const char* kDescription =
    "Evaluates the boosting tree at every voxel, regularises the probabilities, and writes what is "
    "asked for: label map, probability map, surface mesh, picture. All are on the grid of the "
    "input or in LPS mm, whatever the space of the model; only GIFTI meshes (.gii) are RAS mm, as "
    "that format has it: their x and y have the other sign. The results do not depend on the "
    "device or the number of threads. If nothing is found, the outputs are written with the status "
    "'rejected' and the exit code is 7.\n\n"
    "With --list or --dataset and --output-dir the model is loaded once, and images are read and "
    "results written while others are computed. The folder gets what --write says, with the bytes "
    "that each image by itself would give: <id>.nii.gz and <id>.tsv (labels), "
    "<id>.probability.nii.gz, <id>.vtk (mesh), <id>.png (qc) and <id>.candidates.tsv; and "
    "status.tsv with a row for each case: ok, rejected, failed or skipped. A case that fails does "
    "not stop the others; the exit code is 7 if any failed or was rejected, and 5 if memory is "
    "what all that failed lacked: with more of it and --skip-existing the run goes on.\n\n"
    "--skip-existing goes on with an interrupted run: cases whose outputs are all there are left "
    "out, if their sidecars tell of the same content of image and model, the same configuration "
    "and the same version of the results. Device, threads, memory and the names of folders do not "
    "count. Otherwise, and if an output is not what its run wrote, the row of the case is failed "
    "and says what differs; --force beside --skip-existing computes such cases again. A case that "
    "was "
    "rejected is so again. A label table that is missing is made again with its label map. "
    "--skip-existing=name goes by the "
    "names of what --write says, whatever made it, and looks for no label table; where only a part "
    "is there, it is replaced if its sidecars tell of the same run, else the case fails. A file "
    "beside a missing output that no sidecar tells to be of an earlier run is not replaced: the "
    "case "
    "fails.\n\n"
    "Several runs may write into one folder at the same time, such as the tasks of an array with a "
    "part of the list each. The folder may hold other cases; a case of the list whose outputs "
    "exist is refused before anything is done, unless --force or --skip-existing is given. "
    "status.tsv gets the rows of all runs, in natural order of the ids (c2 before c10); of two "
    "rows of a case the one that ended later stays, but a skipped row never replaces a result. A "
    "case that is skipped because sidecars confirm its result has the row of that result, "
    "'computed "
    "by an earlier run', and counts as skipped. "
    "Columns that other programs added are kept. Until a run ends, its rows are in the folder "
    ".larch as well, so that a run that is killed loses none: the next run takes them over. "
    "larch.json tells of the run that ended last, and of those before it in \"EarlierRuns\".\n\n"
    "--memory bounds what the evaluation takes on its device, beside the image (6 bytes per voxel "
    "while it is read) and the probabilities (4): a volume that needs more is evaluated in slabs, "
    "with the same result. --probability and --candidates need no more than that; then the voxels "
    "above the threshold are counted as found. Labels, mesh and picture need up to 36 bytes per "
    "voxel, 97 for each voxel near the surface that the graph cut may change "
    "(structure.graph_cut.max_band_voxels), and 64 and 36 for each vertex and triangle of a mesh, "
    "which are counted before it is made. With --list all images in flight together stay below the "
    "same bound, the cut and the mesh included: as many are finished at a time as fit, and a case "
    "whose reading, structure or mesh alone would take more fails with the bytes that it needs.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "pbt-detect";
  info.summary = "Find a structure with a model of pbt-train.";
  info.description = kDescription;
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
