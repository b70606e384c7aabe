// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/components.h"
#include "larch/pipeline/pbt_detection.h"
#include "larch/pipeline/structures.h"

namespace {

using namespace larch;

struct Options {
  InputFile model;
  cases::Images images{.products = pipeline::kDetectionProducts,
                       .memory_help =
                           "memory of the images in work and of the evaluation, such as "
                           "4G or 500M (default: most of what is free)"};
  InputImage roi;
  InputList poses;
  DetectConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "model of pbt-train"}.required().endings(".pbt,.forest"));
    images.fields(f);
    f(Field{"roi", roi, "mask on the grid of the input: only there the tree is evaluated"},
      Field{"poses", poses,
            "file of hdn-detect (or boxes of 3D Slicer): each structure is looked for in its box "
            "alone, by its name; with --list the folder of a run of hdn-detect"}
          .endings(".json"));
  }
  pipeline::DetectionFiles request() const { return {config, roi, poses, images.memory.count}; }
};

void check(const Options& options, const GivenFlags&) {
  if (options.images.is_list() && options.roi) {
    throw UsageError("--roi is for one image; give the list a column 'roi' with the masks");
  }
  pipeline::check_poses(options.poses, options.images.is_list());
}

constexpr const char* kDescription =
    "Evaluates the boosting tree at every voxel, lets the experts of the model look again, or "
    "regularises the probabilities, and writes what is asked for. All is on the grid of the input "
    "or in LPS mm, whatever the space of the model; "
    "only GIFTI meshes (.gii) are RAS mm, as that format has it. The results do not depend on the "
    "device or the number of threads. If nothing is found, the outputs are written with the status "
    "'rejected' and the exit code is 7.\n\n"
    "With --list or --dataset and --output-dir the model is loaded once. The folder gets what "
    "--write says, with the bytes that each image by itself would give: <id>.nii.gz and <id>.tsv "
    "(labels), <id>.probability.nii.gz, <id>.vtk (mesh), <id>.ctbl (table), <id>.png (qc) and "
    "<id>.candidates.tsv; a "
    "record <id>.larch.json of each case, and status.tsv with a row for each. A case that fails "
    "does not stop the others; the exit code is then 7, or 5 if memory is all that was lacking. "
    "--skip-existing goes on with an interrupted run.\n\n"
    "With --poses a voxel outside of the box of a structure, widened by --margin_mm, is not of it. "
    "In a list the masks of --roi stand in the column roi.\n\n"
    "--memory bounds what the evaluation takes on its device: a volume that needs more is "
    "evaluated in slabs, with the same result. With --list it also bounds, roughly, the images "
    "that are in work at a time.";

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
  info.results_version = 2;  // contours of pictures are smooth
  info.references = {
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011"};
  info.uses_seed = false;
  cases::CaseProgram<Options, Model> program;
  program.check = check;
  program.prepare = [](const Options& o, const Context& context) {
    Model model = open_model(o.model, ModelKind::kVoxels, context.device, {}, context.digest_sink);
    const bool is_list = o.images.is_list();
    pipeline::check_for(model, is_list ? o.images.files_of("id") : o.images.files(), o.config);
    return model;
  };
  program.process = [](const cases::CaseJob& c, const Options& o, const Model& model) {
    return pipeline::detect_case(c, o.request(), model);
  };
  program.complete = [](const Options& o, Case& c) {
    // Lists of trainings hold true poses, which must not help to find the structures.
    c.further.erase(pipeline::kPosesColumn);
    pipeline::complete_poses(o.poses, c);
  };
  program.look = [](const cases::CaseJob& c, const Options& o, const Model& model) {
    return pipeline::look_at_detection(c, o.request(), model);
  };
  program.images = [](const Options& o) {
    return std::vector{std::pair<std::string, std::string>("roi", o.roi)};
  };
  program.columns = pipeline::component_columns();
  for (const char* name : {pipeline::kRoiColumn, pipeline::kPosesColumn}) {
    program.columns.push_back({name, /*is_file=*/true});
  }
  program.columns.push_back(pipeline::kReference);
  program.columns.push_back({"label", /*is_file=*/true, /*required=*/false, /*is_reference=*/true});
  program.figures = {"voxels", "volume_ml"};
  program.rejection = "nothing was detected";
  program.bytes_per_voxel = 64;
  return cases::run_case_app(info, argc, argv, program);
}
