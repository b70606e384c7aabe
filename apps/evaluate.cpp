// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "larch/app/run_app.h"
#include "larch/cases/case_inputs.h"
#include "larch/cases/option_groups.h"
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
  cases::MemoryLimit limit{
      .help =
          "memory of label maps and surfaces, such as 4G or 500M (default: half of what is "
          "free, or what one case takes)"};
  metrics::LabelScoreConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"prediction,p", prediction, "segmentation to judge"},
      Field{"reference,r", reference, "the truth, on the same grid"},
      Field{"list", list, "instead of both: TSV or CSV with the columns prediction and reference"}
          .no_effect_on_results(),
      Field{"table", table, "TSV with one line per case and structure"}, allow_field(allow));
    limit.fields(f);
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
  ListedInputs listed{cases::detached_inputs("prediction", prediction)};
  for (const RunInput& data : cases::detached_inputs("reference", reference)) {
    listed.inputs.push_back(data);
  }
  return listed;
}

pipeline::EvaluationRequest request_of(const Options& options, const Context& context) {
  ReadOptions read;
  read.allow = options.allow;
  read.has_frame_flag = false;
  read.warn = [&](const std::string& text) { context.warn(text); };
  return {list_pairs(options), read, options.table, options.limit.memory.count};
}

Outputs run(const Options& options, Context& context) {
  return pipeline::evaluate_cases(request_of(options, context), options.config, context);
}

Plan plan(const Options& options, const Context& context, const CaseWriter&) {
  return pipeline::plan_evaluation(request_of(options, context), options.config, context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "evaluate";
  info.summary = "Compare segmentations with reference segmentations.";
  info.description =
      "Overlap: Dice, Jaccard and volume difference. Surface distance in mm: each triangle of the "
      "marching-cubes surface of one mask is weighted by its area and measured from its centroid "
      "to the nearest point of the other surface; both directions are pooled; mean, median, 95 % "
      "and maximum are given.\n\nBoth masks empty: Dice 1 and distance 0. One empty: Dice 0, and "
      "no distance (null in the report, n/a in the table). Figures over a list leave out what does "
      "not exist and say how many cases they count; a label counts in the cases where it occurs, "
      "or in all if --labels names it.";
  info.examples = {
      "evaluate --prediction seg.nii.gz --reference truth.nii.gz --report metrics.json",
      "evaluate --list cases.tsv --merge --table scores.tsv --report metrics.json"};
  info.uses_seed = false;
  return run_app<Options>(info, argc, argv, run, plan);
}
