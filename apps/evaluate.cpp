// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "larch/app/run_app.h"
#include "larch/cases/images.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/metrics/label_scores.h"
#include "larch/pipeline/evaluation.h"

namespace {

using namespace larch;

const CaseColumns kPairs{"prediction", "reference", true};

struct Options {
  InputImage prediction, reference;
  InputFile list;
  OutputFile table;
  std::vector<Allow> allow;
  Bytes memory;
  metrics::LabelScoreConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"prediction,p", prediction, "segmentation to judge"},
      Field{"reference,r", reference, "the truth, on the same grid"},
      Field{"list", list, "instead of both: TSV or CSV with the columns prediction and reference"}
          .no_effect_on_results(),
      Field{"table", table, "TSV with one line per case and structure"}, allow_field(allow),
      Field{"memory", memory,
            "memory of label maps and surfaces, such as 4G or 500M (default: half of what is free, "
            "or what one case takes)"}
          .no_effect_on_results());
  }
  ListedInputs listed_inputs() const;
  void check() const {
    if (list && (prediction || reference)) {
      throw UsageError("give either --list or --prediction and --reference");
    }
    if (!list && !(prediction && reference)) {
      throw UsageError("give --prediction and --reference, or --list; see --help");
    }
    if (!config.prediction_labels.empty() && !config.merge) {
      throw UsageError("--prediction_labels needs --merge");
    }
  }
};

/// Image and label of a case are its prediction and its reference.
std::vector<Case> list_pairs(const Options& options) {
  if (options.list) return read_case_list(options.list, kPairs);
  const std::string name = std::filesystem::path(options.prediction.path).filename().string();
  return {{name, options.prediction, options.reference}};
}

/// Order and ids of the cases are in the table.
ListedInputs Options::listed_inputs() const {
  if (list) return cases::inputs_of_cases(list_pairs(*this), kPairs, /*order_matters=*/true);
  ListedInputs listed;
  for (const auto& [role, path] :
       {std::pair("prediction", prediction), std::pair("reference", reference)}) {
    for (const RunInput& data : cases::detached_inputs(role, path)) listed.inputs.push_back(data);
  }
  return listed;
}

pipeline::EvaluationRequest request_of(const Options& options, const Context& context) {
  ReadOptions read;
  read.allow = options.allow;
  read.has_frame_flag = false;
  read.warn = [&](const std::string& text) { context.warn(text); };
  return {list_pairs(options), read, options.table, options.memory.count};
}

Outputs run(const Options& options, Context& context) {
  return pipeline::evaluate_cases(request_of(options, context), options.config, context);
}

Plan plan(const Options& options, const Context& context) {
  return pipeline::plan_evaluation(request_of(options, context), context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "evaluate";
  info.summary = "Compare segmentations with reference segmentations.";
  info.description =
      "Measures overlap (Dice, Jaccard, difference of volumes) and the distance of surfaces in mm. "
      "Each triangle of the marching-cubes surface of one mask counts by its area, and is measured "
      "from its centroid to the nearest point of the other surface. Both directions are pooled, "
      "and mean, median, 95 % and maximum are given.\n\n"
      "Two empty masks have Dice 1 and distance 0. If one mask is empty, Dice is 0 and there is no "
      "distance (null in the report, n/a in the table). Figures over a list leave out what is "
      "missing and say how many cases they count. A label counts in the cases where it occurs, or "
      "in all if --labels names it.\n\n"
      "A list makes one result: the first case that cannot be used ends the run.";
  info.examples = {
      "evaluate --prediction seg.nii.gz --reference truth.nii.gz --report metrics.json",
      "evaluate --list cases.tsv --merge --table scores.tsv --report metrics.json"};
  info.uses_seed = false;
  Hooks<Options> hooks;
  hooks.run = run;
  hooks.plan = plan;
  hooks.check = [](const Options& o, const GivenFlags&) { o.check(); };
  hooks.listed_inputs = [](const Options& o) { return o.listed_inputs(); };
  return run_app(info, argc, argv, hooks);
}
