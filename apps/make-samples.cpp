// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"
#include "larch/pipeline/sample_files.h"

namespace {

using namespace larch;

enum class Kind { kOrgans };
constexpr auto enum_names(Kind*) {
  return std::to_array<EnumName<Kind>>({{Kind::kOrgans, "organs"}});
}

struct Options {
  OutputDir output_dir;
  Kind kind = Kind::kOrgans;
  int training = 12;
  int test = 4;
  std::string format = "nii.gz";
  phantom::OrgansConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"output-dir,o", output_dir, "folder for images, labels and lists"}.required(),
      Field{"kind", kind, "what is in the images"},
      Field{"training", training, "number of cases in train.tsv", 1, 10000},
      Field{"test", test, "number of cases in test.tsv", 0, 10000},
      Field{"format", format,
            "ending of the image files, such as nii.gz, nrrd or mha; or dicom: series of slices"});
  }
  pipeline::SampleRequest request() const { return {output_dir, training, test, format, config}; }
  void check() const { pipeline::check(request()); }
};

Outputs run(const Options& options, Context& context) {
  return pipeline::make_samples(options.request(), context);
}

Plan plan(const Options& options, const Context&, const CaseWriter&) {
  return pipeline::plan_samples(options.request());
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "make-samples";
  info.summary = "Make sample volumes with known truth.";
  info.description =
      "Each image shows a body with an organ (label 1) and a distractor of the same mean "
      "intensity, so that no threshold finds the organ; a bright column, a cavity, noise and a "
      "smooth intensity field. The folder gets images/, labels/, train.tsv, test.tsv, dataset.json "
      "and labels.tsv; with --format dicom, images/ has a folder per case and the label maps are "
      "NIfTI. The same seed gives the same files, and with other --axes the same voxels in another "
      "order.";
  info.examples = {"make-samples --output-dir samples",
                   "make-samples --output-dir large --size 128,128,80 --spacing_mm 1,1,1.5 "
                   "--training 40 --seed 7",
                   "make-samples --output-dir series --format dicom --rotation_deg 10,-20,15"};
  return run_app<Options>(info, argc, argv, run, plan);
}
