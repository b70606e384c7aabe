// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/file.h"
#include "larch/pipeline/boundary_refinement.h"
#include "larch/pipeline/case_poses.h"
#include "larch/pipeline/structures.h"

namespace {

using namespace larch;

struct Options {
  InputFile model;
  cases::Images images{.products = pipeline::kBoundaryProducts};
  InputList poses;
  InputImage start_labels;
  InputMesh mesh;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "boundary model of pbt-train (.bnd)"}.required().endings(".bnd"));
    images.fields(f);
    f(Field{"poses", poses,
            "start: file with the pose of the structure, as hdn-detect writes it; with --list the "
            "folder of its run"}
          .endings(".json"),
      Field{"start-labels", start_labels,
            "start: a label map on any grid, to which the mean shape is fitted; with --list the "
            "folder "
            "of a run that made them"},
      Field{"mesh", mesh, "start: a mesh that this program has written"});
  }
  pipeline::StartFiles start() const { return {poses, start_labels, mesh}; }
};

void check(const Options& o, const GivenFlags&) {
  const int starts = (o.poses ? 1 : 0) + (o.start_labels ? 1 : 0) + (o.mesh ? 1 : 0);
  pipeline::check_poses(o.poses, o.images.is_list());
  if (o.images.is_list()) {
    if (starts > 1 || o.mesh || (o.start_labels && !is_folder(o.start_labels))) {
      throw UsageError(
          "with --list the starts stand in columns of the list (poses, label or mesh), or in the "
          "folder that --poses or --start-labels names");
    }
  } else if (starts != 1) {
    throw UsageError("give one start: --poses, --start-labels or --mesh");
  }
}

constexpr const char* kDescription =
    "Draws meshes of corresponding vertices to the boundaries of the structures of a model. Mean "
    "shapes are placed by poses (--poses of hdn-detect), by the fit to a label map "
    "(--start-labels, of pbt-detect or anything else), or a mesh of an earlier run is taken "
    "(--mesh, where the model has one structure). The vertices of a mesh, 602 at first, then 1202 "
    "and 2402, go along their normals to where a boosting tree sees the boundary; the "
    "displacements are smoothed, and the mesh stays near the shapes of the model. Vertex i is the "
    "same place of the structure in all meshes of a model. The result does not depend on the "
    "device or the number of threads.\n\n"
    "A model of enough cases tells how sure the result is (confidence): found, uncertain or not "
    "found. Where it is not sure it tries six starts near the given one; the surest of their "
    "results counts if it is found. What is not found is written with the status 'rejected', and "
    "the exit code is 7. Of several structures those that are not found, or that the start lacks, "
    "are left out with a message, and the case is rejected if none is left.\n\n"
    "With --list and --output-dir the model is loaded once, and each image starts from its column "
    "poses, label or mesh, or from <id>.poses.json in the folder that --poses names. The folder "
    "gets what --write says: <id>.vtk (mesh), <id>.nii.gz and "
    "<id>.tsv (labelmap), <id>.ctbl (table), <id>.png (qc); a record <id>.larch.json of each case, "
    "and status.tsv "
    "with "
    "a row for each. A case that fails does not stop the others; the exit code is then 7, or 5 if "
    "memory is all that was lacking. evaluate --kind meshes compares meshes with true surfaces.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "boundary-refine";
  info.summary = "Draw meshes to the learned boundaries of structures.";
  info.description = kDescription;
  info.examples = {
      "boundary-refine --model hippocampus.bnd --input patient.nii.gz --poses "
      "poses.json --output organ.vtk --labelmap organ.nii.gz --qc qc.png",
      "boundary-refine --model hippocampus.bnd --input patient.nii.gz --start-labels "
      "seg.nii.gz --output organ.vtk",
      "boundary-refine --model hippocampus.bnd --list cases.tsv --output-dir out "
      "--write mesh,labelmap,qc"};
  info.results_version = 2;  // contours of pictures are smooth
  info.references = {
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011",
      "Cootes, Taylor, Cooper, Graham, Active shape models: their training and application, CVIU "
      "61(1), 1995"};
  info.uses_seed = false;
  cases::CaseProgram<Options, Model> program;
  program.prepare = [](const Options& o, const Context& context) {
    return open_model(o.model, ModelKind::kBoundary, context.device, {}, context.digest_sink);
  };
  program.check = check;
  program.process = [](const cases::CaseJob& c, const Options& o, const Model& model) {
    return pipeline::refine_case(c, model, o.start());
  };
  program.complete = [](const Options& o, Case& c) {
    if (!o.poses && !o.start_labels) return;
    // The folder has the start; columns of the list count no more.
    c.label.clear();
    for (const char* start : {pipeline::kPosesColumn, pipeline::kMeshStart}) c.further.erase(start);
    pipeline::complete_poses(o.poses, c);
    pipeline::complete_labels(o.start_labels, c);
  };
  program.look = [](const cases::CaseJob& c, const Options& o, const Model& model) {
    return pipeline::look_at_boundary(c, model, o.start());
  };
  program.read_more = [](const cases::CaseJob& c, const Options& o, const Model& model) {
    pipeline::check_start(c, model, o.start());
  };
  program.images = [](const Options& o) {
    std::vector<std::pair<std::string, std::string>> images;
    if (o.start_labels) images.emplace_back("start-labels", o.start_labels);
    return images;
  };
  program.columns = {{pipeline::kPosesColumn, /*is_file=*/true},
                     {"label", /*is_file=*/true},
                     {pipeline::kMeshStart, /*is_file=*/true},
                     pipeline::kReference};
  program.figures = {"volume_ml",         "probability",      "displacement_mm",
                     "flipped_triangles", "without_boundary", "confidence"};
  program.rejection = "no structure was found";
  program.bytes_per_voxel = 0;
  return cases::run_case_app(info, argc, argv, program);
}
