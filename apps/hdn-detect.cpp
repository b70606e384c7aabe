// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/hdn_detection.h"

namespace {

using namespace larch;

struct Options {
  InputFile model;
  cases::Images images{.products = pipeline::kPoseProducts};
  bool strict = false;
  NetworkConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"model,m", model, "network of pbt-train (.hdn)"}.required().endings(".hdn"));
    images.fields(f);
    f(Field{"strict", strict, "reject a case in which a structure is not found or skipped"});
  }
};

constexpr const char* kDescription =
    "Finds position, orientation and size of the structures of a hierarchical detection network: "
    "first those that are found everywhere, then those that lie about others, from coarse to fine "
    "resolution. Poses are oriented boxes in LPS mm, whatever the space of the model. The results "
    "do not depend on the device or the number of threads.\n\n"
    "Each structure has a status: found; uncertain (its confidence, the probability that it "
    "is there, is below 0.75, or nineteen of twenty had more in the training); not found, without "
    "a pose; or skipped, because its parent was not found. If "
    "nothing is found, the outputs are written with the status 'rejected' and the exit code is 7; "
    "with --strict, if anything is not.\n\n"
    "With --list or --dataset and --output-dir the model is loaded once. The folder gets what "
    "--write says: <id>.poses.json, <id>.mrk.json (markups), <id>.nii.gz and <id>.tsv (labelmap), "
    "<id>.ctbl (table), <id>.png (qc); a record <id>.larch.json of each case, and status.tsv with "
    "a row for each. A "
    "case that fails does not stop the others; the exit code is then 7, or 5 if memory is all that "
    "was lacking. --skip-existing goes on with an interrupted run. evaluate --kind poses compares "
    "poses with true ones.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "hdn-detect";
  info.summary = "Find the poses of structures with a hierarchical detection network.";
  info.description = kDescription;
  info.examples = {"hdn-detect --model head.hdn --input patient.nii.gz --output poses.json",
                   "hdn-detect --model head.hdn --input dicom-folder/ --output poses.json "
                   "--markups boxes.mrk.json --labelmap boxes.nii.gz --qc qc.png --report r.json",
                   "hdn-detect --model head.hdn --list cases.tsv --output-dir out --write "
                   "poses,markups,qc"};
  info.references = {
      "US 2012/0069003 A1",
      "Zheng, Barbu, Georgescu, Scheuering, Comaniciu, Four-chamber heart modeling and automatic "
      "segmentation for 3-D cardiac CT volumes using marginal space learning and steerable "
      "features, IEEE TMI 27(11), 2008",
      "Sofka, Zhang, Zhou, Comaniciu, Multiple object detection by sequential Monte Carlo and "
      "hierarchical detection network, CVPR 2010",
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011"};
  info.uses_seed = false;
  cases::CaseProgram<Options, Model> program;
  program.prepare = [](const Options& o, const Context& context) {
    return open_model(o.model, ModelKind::kNetwork, context.device, o.config, context.digest_sink);
  };
  program.process = [](const cases::CaseJob& c, const Options& o, const Model& network) {
    return pipeline::detect_poses(c, network, o.strict);
  };
  program.look = [](const cases::CaseJob& c, const Options&, const Model& network) {
    return pipeline::look_at_poses(c, network);
  };
  program.figures = {"structures", "found", "uncertain"};
  program.rejection = "a structure was not detected";
  program.bytes_per_voxel = 0;
  return cases::run_case_app(info, argc, argv, program);
}
