// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/config/config.h"
#include "larch/pipeline/samples/angiogram_files.h"
#include "larch/pipeline/samples/head_files.h"
#include "larch/pipeline/samples/sample_files.h"
#include "larch/pipeline/samples/samples_description.h"

namespace {

using namespace larch;

enum class Kind { kOrgans, kAngiography, kPhantom };
constexpr auto enum_names(Kind*) {
  return std::to_array<EnumName<Kind>>({{Kind::kOrgans, "organs"},
                                        {Kind::kAngiography, "angiography"},
                                        {Kind::kPhantom, "phantom"}});
}

/// The keys of organs stand at the top, where they have been before there was another kind.
struct SamplesConfig {
  phantom::OrgansConfig organs;
  phantom::AngiogramConfig angiography;
  phantom::HeadConfig phantom;
  template <class F>
  void fields(F&& f) {
    organs.fields(f);
    f(Field{"angiography", angiography, "of --kind angiography; the other keys are of organs"},
      Field{"phantom", phantom, "of --kind phantom"});
  }
};

/// Throws UsageError for a key that is not as it is by default.
template <class Config>
void require_default(const Config& config, const std::string& prefix, const std::string& kind) {
  const auto said = config::to_json(config), usual = config::to_json(Config{});
  for (const auto& [key, value] : said.items()) {
    if (value != usual[key]) throw UsageError("--" + prefix + key + " is of --kind " + kind);
  }
}

struct Options {
  OutputDir output_dir;
  Kind kind = Kind::kOrgans;
  std::optional<int> training;
  std::optional<int> test;
  std::optional<int> cases;
  std::optional<std::string> format;
  InputImage picture;
  bool truth = true;
  SamplesConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"output-dir,o", output_dir, "folder for images, labels and lists"}.required(),
      Field{"kind", kind,
            "organs: volumes to train on; angiography: X-ray sequences that move; phantom: heads "
            "with known tissues"},
      Field{"training", training, "organs: number of cases in train.tsv; default 12", 1, 10000},
      Field{"test", test, "organs: number of cases in test.tsv; default 4", 0, 10000},
      Field{"cases", cases, "angiography, phantom: number of cases; default 1", 1, 10000},
      Field{"format", format,
            "ending of the image files, such as nii.gz (default of organs), nrrd or mha; or dicom: "
            "series of slices, or a file per sequence (default of angiography)"},
      Field{"picture", picture,
            "angiography: X-ray picture, or sequence of which the first frame is taken, whose body "
            "moves instead of a drawn one"},
      Field{"truth", truth, "angiography: write true motion and vessels too"});
  }
  pipeline::SampleRequest organs() const {
    return {output_dir, training.value_or(12), test.value_or(4), format.value_or("nii.gz"),
            config.organs};
  }
  pipeline::AngiogramRequest angiograms() const {
    const std::string ending = format.value_or("dicom");
    return {output_dir, cases.value_or(1), ending == "dicom" ? "dcm" : ending, picture,
            truth,      config.angiography};
  }
  pipeline::HeadRequest heads() const {
    return {output_dir, cases.value_or(1), format.value_or("nii.gz"), config.phantom};
  }
  void check() const {
    const bool is_organs = kind == Kind::kOrgans;
    if (is_organs ? cases.has_value() : training || test) {
      throw UsageError(is_organs ? "--cases is of the other kinds; give --training and --test"
                                 : "--training and --test are of --kind organs; give --cases");
    }
    if (kind != Kind::kAngiography) {
      if (picture) throw UsageError("--picture is of --kind angiography");
      require_default(config.angiography, "angiography.", "angiography");
    }
    if (kind != Kind::kPhantom) require_default(config.phantom, "phantom.", "phantom");
    if (!is_organs) require_default(config.organs, "", "organs");
    switch (kind) {
      case Kind::kOrgans:
        return pipeline::check(organs());
      case Kind::kAngiography:
        return pipeline::check(angiograms());
      case Kind::kPhantom:
        return pipeline::check(heads());
    }
  }
};

void check(const Options& options, const GivenFlags&) {
  options.check();
}

Outputs run(const Options& options, Context& context) {
  switch (options.kind) {
    case Kind::kAngiography:
      return pipeline::make_angiograms(options.angiograms(), context);
    case Kind::kPhantom:
      return pipeline::make_heads(options.heads(), context);
    default:
      return pipeline::make_samples(options.organs(), context);
  }
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "make-samples";
  info.summary = "Make sample volumes and sequences with known truth.";
  info.description = pipeline::kSamplesDescription;
  info.examples = {"make-samples --output-dir samples",
                   "make-samples --output-dir large --size 128,128,80 --training 40 --seed 7",
                   "make-samples --output-dir series --format dicom --rotation_deg 10,-20,15",
                   "make-samples --output-dir cine --kind angiography --angiography.frames 12",
                   "make-samples --output-dir heads --kind phantom --phantom.snr 11"};
  return run_app<Options>(info, argc, argv, {.run = run, .check = check});
}
