// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/run_app.h"
#include "larch/cases/case_list.h"
#include "larch/cases/images.h"
#include "larch/config/config.h"
#include "larch/pipeline/samples/samples.h"

namespace {

using namespace larch;

const CaseColumns kVolumes{.label_required = true};

enum class Kind { kOrgans, kAngiography, kPhantom, kPoses, kScenes, kWarped };
constexpr auto enum_names(Kind*) {
  return std::to_array<EnumName<Kind>>({{Kind::kOrgans, "organs"},
                                        {Kind::kAngiography, "angiography"},
                                        {Kind::kPhantom, "phantom"},
                                        {Kind::kPoses, "poses"},
                                        {Kind::kScenes, "scenes"},
                                        {Kind::kWarped, "warped"}});
}

/// The keys of organs stand at the top, where they have been before there was another kind.
struct SamplesConfig {
  phantom::OrgansConfig organs;
  phantom::AngiogramConfig angiography;
  phantom::HeadConfig phantom;
  phantom::PosesConfig poses;
  phantom::WarpedConfig warped;
  template <class F>
  void fields(F&& f) {
    organs.fields(f);
    f(Field{"angiography", angiography, "of --kind angiography; the other keys are of organs"},
      Field{"phantom", phantom, "of --kind phantom"}, Field{"poses", poses, "of --kind poses"},
      Field{"warped", warped, "of --kind warped"});
  }
};

struct Options {
  OutputDir output_dir;
  Kind kind = Kind::kOrgans;
  std::optional<int> training;
  std::optional<int> test;
  std::optional<int> cases;
  std::optional<std::string> format;
  InputImage picture, image, labels;
  InputFile list;
  bool truth = true;
  SamplesConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"output-dir,o", output_dir, "folder for images, labels and lists"}.required(),
      Field{"kind", kind,
            "organs: volumes to train on; angiography: X-ray sequences that move; phantom: heads "
            "with known tissues; poses: objects in known poses; scenes: colour pictures; warped: "
            "copies of an image and its labels"},
      Field{"training", training, "of organs, poses, scenes in train.tsv; default 12", 1, 10000},
      Field{"test", test, "of organs, poses, scenes in test.tsv; default 4", 0, 10000},
      Field{"cases", cases, "angiography, phantom: number of cases; warped: of copies; default 1",
            1, 10000},
      Field{"format", format,
            "ending of the image files, such as nii.gz (default of organs), nrrd or mha; or dicom: "
            "series of slices, or a file per sequence (default of angiography)"},
      Field{"picture", picture,
            "angiography: X-ray picture, or sequence of which the first frame is taken, whose body "
            "moves instead of a drawn one"},
      Field{"truth", truth, "angiography: write true motion and vessels too"},
      Field{"image", image, "warped: image of which copies are made"},
      Field{"labels", labels, "warped: label map on the grid of --image"},
      Field{"list", list, "warped: instead of both: TSV or CSV with the columns image and label"}
          .no_effect_on_results()
          .endings(".tsv,.csv"));
  }
  /// Returns the image without an id, or the cases of the list.
  std::vector<Case> inputs() const {
    if (list) return read_case_list(list, kVolumes);
    return {{"", image, labels}};
  }
  /// Calls f with the request of the kind.
  template <class F>
  auto with_request(const F& f) const {
    if (kind == Kind::kAngiography) {
      const std::string ending = format.value_or("dicom");
      return f(pipeline::AngiogramsRequest{cases.value_or(1), ending == "dicom" ? "dcm" : ending,
                                           picture, truth, config.angiography});
    }
    const std::string ending = format.value_or("nii.gz");
    if (kind == Kind::kPhantom) {
      return f(pipeline::HeadsRequest{cases.value_or(1), ending, config.phantom});
    }
    if (kind == Kind::kWarped) {
      return f(pipeline::WarpedRequest{inputs(), cases.value_or(1), ending, config.warped});
    }
    const int train = training.value_or(12), rest = test.value_or(4);
    if (kind == Kind::kPoses) return f(pipeline::PosesRequest{train, rest, ending, config.poses});
    if (kind == Kind::kScenes) return f(pipeline::ScenesRequest{train, rest});
    return f(pipeline::OrgansRequest{train, rest, ending, config.organs});
  }
  void check() const {
    const bool is_organs = kind == Kind::kOrgans;
    const bool is_listed = is_organs || kind == Kind::kPoses || kind == Kind::kScenes;
    if (is_listed ? cases.has_value() : training || test) {
      throw UsageError(
          cases ? "--cases is of the other kinds; give --training and --test"
                : "--training and --test are of --kind organs, poses and scenes; give --cases");
    }
    if (kind == Kind::kScenes && format) throw UsageError("--format: scenes are PNG");
    if (kind != Kind::kAngiography) {
      if (picture) throw UsageError("--picture is of --kind angiography");
      config::require_default(config.angiography, "angiography.", "--kind angiography");
    }
    if (kind != Kind::kPhantom)
      config::require_default(config.phantom, "phantom.", "--kind phantom");
    if (kind != Kind::kPoses) config::require_default(config.poses, "poses.", "--kind poses");
    if (kind != Kind::kWarped) {
      if (image || labels || list) {
        throw UsageError("--image, --labels and --list are of --kind warped");
      }
      config::require_default(config.warped, "warped.", "--kind warped");
    } else if (list ? image || labels : !(image && labels)) {
      throw UsageError("--kind warped: give either --image and --labels, or --list");
    }
    if (!is_organs) config::require_default(config.organs, "", "--kind organs");
    with_request([](const auto& request) { pipeline::check(request); });
  }
};

void check(const Options& options, const GivenFlags&) {
  options.check();
}

/// The numbers of the cases of a list, by which they are warped, are their places in it.
ListedInputs listed_inputs(const Options& options) {
  if (options.list) {
    return cases::inputs_of_cases(options.inputs(), kVolumes, /*order_matters=*/true);
  }
  ListedInputs listed{cases::detached_inputs("image", options.image)};
  for (const RunInput& data : cases::detached_inputs("labels", options.labels)) {
    listed.inputs.push_back(data);
  }
  return listed;
}

Outputs run(const Options& options, Context& context) {
  Outputs outputs = options.with_request(
      [&](const auto& request) { return pipeline::make_samples(request, context); });
  for (Outputs::File& file : outputs.files) {
    file.path = (std::filesystem::path(options.output_dir.path) / file.path).string();
  }
  return outputs;
}

constexpr const char* kDescription =
    "With --kind organs each image shows a body with an organ (label 1), a distractor, a bright "
    "column and a cavity, in noise and a smooth intensity field. Organ and distractor have the "
    "same mean intensity, so that no threshold finds the organ. The folder gets images/, labels/, "
    "train.tsv, test.tsv, dataset.json and labels.tsv. With --format dicom, images/ has a folder "
    "per case, and label maps are NIfTI.\n\n"
    "With --kind angiography each sequence shows a body at rest (the mask frames), then moving "
    "while a contrast agent passes through vessels, with the noise of X-ray photons. The folder "
    "gets images/ (DICOM files name their mask frames), labels/ (vessels), fields/, truth/ and "
    "cases.tsv. In fields/ is the true motion in mm of every pixel and frame, by which the mask is "
    "read, in truth/ the same as formulas (JSON). --truth=false leaves out all but images.\n\n"
    "With --kind phantom each image is a head as in T1-weighted MR, with white matter (label 1), "
    "folded grey matter (2) and fluid (3), a smooth intensity field and Rician noise. The folder "
    "gets images/, labels/, cases.tsv and labels.tsv.\n\n"
    "With --kind poses each image shows bright ellipsoids with balls at two ends in noise. The "
    "folder gets images/, labels/ (ellipsoids), poses/ (boxes around the ellipsoids, which 3D "
    "Slicer shows), train.tsv, test.tsv and labels.tsv. Objects after the first go with it.\n\n"
    "With --kind scenes each image is a colour picture (PNG, 320 x 213) of six kinds of regions, "
    "some of which differ by texture alone; borders have the label 0. The folder gets images/, "
    "labels/, train.tsv, test.tsv and labels.tsv.\n\n"
    "With --kind warped each image is a copy of --image, or of each image of --list, that is "
    "turned, shifted, scaled, if wanted bent, and on a canvas of its own filled up with noise "
    "where the image ends; its labels go with it. The folder gets images/, labels/, truth/ (JSON: "
    "where points of the input lie in the copy) and cases.tsv.\n\n"
    "The same seed gives the same files, and with other --axes the same voxels in another order.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "make-samples";
  info.summary = "Make sample volumes and sequences with known truth.";
  info.description = kDescription;
  info.examples = {"make-samples --output-dir samples",
                   "make-samples --output-dir large --size 128,128,80 --training 40 --seed 7",
                   "make-samples --output-dir series --format dicom --rotation_deg 10,-20,15",
                   "make-samples --output-dir cine --kind angiography --angiography.frames 12",
                   "make-samples --output-dir heads --kind phantom --phantom.snr 11",
                   "make-samples --output-dir objects --kind poses --poses.structures 3",
                   "make-samples --output-dir copies --kind warped --list cases.tsv --cases 4"};
  return run_app<Options>(info, argc, argv,
                          {.run = run, .check = check, .listed_inputs = listed_inputs});
}
