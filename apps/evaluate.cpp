// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/evaluate.h"

#include <algorithm>

#include "larch/app/run_app.h"
#include "larch/cases/case_list.h"
#include "larch/cases/images.h"
#include "larch/config/config.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/pipeline/evaluation/evaluation.h"
#include "larch/pipeline/evaluation/score_tables.h"

namespace {

using namespace larch;

using Kind = pipeline::PredictionKind;

struct Options {
  Kind kind = Kind::kLabels;
  InputImage prediction, reference;
  InputFile list, model, baseline;
  InputList dataset;
  std::string prediction_dir;
  OutputFile table;
  std::vector<Allow> allow;
  Bytes memory;
  LabelScoreConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"kind", kind,
            "labels: segmentations, which are images; meshes: surfaces; poses: boxes in files of "
            "poses (.json) or of 3D Slicer (.mrk.json)"},
      Field{"prediction,p", prediction, "segmentation to judge, mesh or file of poses"},
      Field{"reference,r", reference,
            "the truth; of a segmentation on the same grid, of a mesh another one or a label map"},
      Field{"list", list,
            "instead of both: TSV or CSV with the columns prediction and reference; with "
            "--prediction-dir with image (or id) and label or poses"}
          .no_effect_on_results()
          .endings(".tsv,.csv"),
      Field{"dataset", dataset,
            "with --prediction-dir: a Decathlon or nnU-Net folder with the labels, or its "
            "dataset.json"}
          .no_effect_on_results()
          .endings(".json"),
      Field{"prediction-dir", prediction_dir,
            "folder of the predictions, which are found by the ids of --list or --dataset"}
          .no_effect_on_results(),
      Field{"baseline", baseline, "--table of another run, from which paired differences are given"}
          .endings(".tsv"),
      Field{"model", model,
            "with --kind poses: network of pbt-train, to whose mean shapes label maps are fitted"}
          .endings(".hdn"),
      Field{"table", table, "TSV with one line per case and structure"}.endings(".tsv"),
      allow_field(allow),
      Field{"memory", memory,
            "memory of label maps and surfaces, such as 4G or 500M (default: half of what is free, "
            "or what one case takes)"}
          .no_effect_on_results());
  }
  ListedInputs listed_inputs() const;
  void check() const {
    const bool is_folder = !prediction_dir.empty();
    if (is_folder != (list || dataset) && (is_folder || dataset)) {
      throw UsageError("--prediction-dir and one of --list and --dataset go together; see --help");
    }
    if ((list || dataset) && (prediction || reference || (list && dataset))) {
      throw UsageError("give either --prediction and --reference or --list or --dataset");
    }
    if (!list && !dataset && !(prediction && reference)) {
      throw UsageError("give --prediction and --reference, or --list; see --help");
    }
    if (kind == Kind::kPoses && !allow.empty() && !model) {
      throw UsageError("--allow is of --kind labels");
    }
    LabelScoreConfig others = config;
    if (kind == Kind::kMeshes) others.labels.clear();
    if (kind != Kind::kLabels) config::require_default(others, "", "--kind labels");
    if (kind != Kind::kPoses && model) throw UsageError("--model is of --kind poses");
    if (!config.prediction_labels.empty() && !config.merge) {
      throw UsageError("--prediction_labels needs --merge");
    }
    for (const int label : config.labels) {
      if (std::ranges::count(config.labels, label) + std::ranges::count(config.ignore, label) > 1) {
        throw UsageError("--labels: " + std::to_string(label) + " stands twice, or in --ignore");
      }
    }
  }
};

pipeline::Pairs pairs_of(const Options& o) {
  return pipeline::find_pairs(
      {o.kind, o.prediction, o.reference, o.list, o.dataset, o.prediction_dir});
}

/// Order and ids of the cases are in the table.
ListedInputs Options::listed_inputs() const {
  if (list || dataset) {
    const pipeline::Pairs pairs = pairs_of(*this);
    const CaseColumns roles{"prediction", "reference"};
    ListedInputs all = cases::inputs_of_cases(pairs.cases, roles, /*order_matters=*/true);
    for (RunInput& input : all.inputs) {
      const bool is_missing = pairs.missing.contains(input.of_case);
      if (input.role == roles.image && is_missing) input.text = "missing";
    }
    return all;
  }
  ListedInputs listed;
  for (const auto& [role, path] :
       {std::pair("prediction", prediction), std::pair("reference", reference)}) {
    for (const RunInput& data : cases::detached_inputs(role, path)) listed.inputs.push_back(data);
  }
  return listed;
}

pipeline::EvaluationRequest request_of(const Options& options, const Context& context) {
  const ReadOptions read = cases::Reading{.allow = options.allow}.read_options(context);
  pipeline::EvaluationRequest request{
      pairs_of(options), read, options.table, options.model, options.memory.count, options.config};
  const auto is_mesh = [](const Case& c) { return has_mesh_extension(c.label); };
  if (options.kind == Kind::kMeshes && std::ranges::all_of(request.cases, is_mesh) &&
      !(options.allow.empty() && options.config.labels.empty())) {
    throw UsageError("--allow and --labels are of references that are label maps; here are none");
  }
  if (options.list) {
    cases::warn_of_unread_columns(options.list, request.cases, request.columns, {}, read);
  }
  if (!request.note.empty()) context.info(request.note);
  if (options.baseline) {
    request.baseline = pipeline::read_baseline(options.baseline, request.cases, context);
  }
  return request;
}

Outputs run(const Options& options, Context& context) {
  const auto evaluate = options.kind == Kind::kPoses    ? pipeline::evaluate_poses
                        : options.kind == Kind::kMeshes ? pipeline::evaluate_meshes
                                                        : pipeline::evaluate_labels;
  return evaluate(request_of(options, context), context);
}

Plan plan(const Options& options, const Context& context) {
  const auto plan = options.kind == Kind::kPoses    ? pipeline::plan_poses
                    : options.kind == Kind::kMeshes ? pipeline::plan_meshes
                                                    : pipeline::plan_labels;
  return plan(request_of(options, context), context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "evaluate";
  info.summary = "Compare segmentations, meshes or poses with their references.";
  info.description =
      "Measures overlap (Dice, Jaccard, sensitivity, precision, total correct fraction, difference "
      "of volumes) and the distance of surfaces in mm. "
      "Each triangle of the marching-cubes surface of one mask counts by its area, and is measured "
      "from its centroid to the nearest point of the other surface. Both directions are pooled, "
      "and the mean (assd_mm), median, 95 % and maximum are given; hd95_mm is the greater of the "
      "95 % of the two directions, and surface_dice the share of the area of both within "
      "--tolerance_mm of the other.\n\n"
      "Two empty masks have Dice 1 and distance 0. If one mask is empty, Dice is 0 and there is no "
      "distance (null in the report, n/a in the table). Figures over a list leave out what is "
      "missing and say how many cases they count. A label counts in the cases where it occurs, or "
      "in all if --labels names it; a warning names the labels that a file of a case lacks, and "
      "one of --labels that no file holds is exit code 3. Voxels in which the reference has a "
      "label of --ignore are left out for both.\n\n"
      "With --kind meshes the prediction is a mesh, and so is a reference with the ending of one "
      "(.vtk, .obj, .gii, .ply, .stl); others are label maps, of which all but 0 counts, or the "
      "union of --labels. Both directions are measured by themselves, over all of the area of "
      "large triangles: mssd_mm is the mean of the two means, rms_mm the root of the mean of the "
      "two mean squares, hd95_mm and hd_mm are the greater of the two 95 % and of the two maxima. "
      "The pooled figures, as above, are those of the meshes as they are. Against a label map "
      "there is Dice too, of the voxels whose centres the mesh encloses.\n\n"
      "With --kind poses the structures of the reference are looked for in the prediction by their "
      "names: errors of centre, axial line (the longest axis of the true box, from face to face), "
      "rotation and scale, and intersection over union of the boxes. It is a failure if the centre "
      "is off by more than 10 mm or half of the smallest edge of the true box, or if there is no "
      "pose, which has overlap 0 and no errors: it is missed. A structure without a pose in the "
      "reference is not there, and a pose of it is a false positive; if there are cases of both, "
      "confidence_auc is the share of pairs whose confidences are in the right order.\n\n"
      "With --prediction-dir a folder is scored that a program wrote with --list or --dataset: the "
      "same list has the references (column label, or poses), or the data set has them (labels of "
      "test images in labelsTs, where there are predictions of them, or else those of training "
      "images). The prediction of a case is the file of its id, such as <id>.nii.gz, <id>.vtk or "
      "<id>.poses.json.\n\n"
      "A table is printed, unless --quiet is given: mean with its 95 % interval (bootstrap), "
      "deviation, median and the worst case of the main scores of each structure. The report has "
      "all scores. --baseline adds the same of the paired differences from the --table of another "
      "run, over the cases that both have. A list makes one result: a case whose prediction is "
      "missing has Dice 0 and no distance, and the exit code is 7; the first case that cannot be "
      "used ends the run.";
  info.examples = {
      "evaluate --prediction seg.nii.gz --reference truth.nii.gz --report metrics.json",
      "evaluate --list samples/test.tsv --prediction-dir out --table scores.tsv",
      "evaluate --dataset Task04/dataset.json --prediction-dir out --baseline scores.tsv",
      "evaluate --list cases.tsv --merge --table scores.tsv --report metrics.json",
      "evaluate --kind meshes --list cases.tsv --table errors.tsv",
      "evaluate --kind poses --list cases.tsv --report metrics.json"};
  info.results_version = 4;  // more scores, and assd_mm is the name of the mean distance
  info.uses_seed = false;
  Hooks<Options> hooks;
  hooks.run = run;
  hooks.plan = plan;
  hooks.check = [](const Options& o, const GivenFlags&) { o.check(); };
  hooks.listed_inputs = [](const Options& o) { return o.listed_inputs(); };
  return run_app(info, argc, argv, hooks);
}
