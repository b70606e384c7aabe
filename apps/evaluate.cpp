// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/metrics/label_scores.h"
#include "larch/pipeline/evaluation_plan.h"
#include "larch/pipeline/image_inputs.h"

namespace {

using namespace larch;
using Json = nlohmann::ordered_json;

const CaseColumns kPairs{"prediction", "reference", true};

struct Options {
  InputImage prediction, reference;
  InputFile list;
  OutputFile table;
  std::vector<Allow> allow;
  metrics::LabelScoreConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"prediction,p", prediction, "segmentation to judge"},
      Field{"reference,r", reference, "the truth, on the same grid"},
      Field{"list", list, "instead of both: TSV or CSV with the columns prediction and reference"}
          .no_effect_on_results(),
      Field{"table", table, "TSV with one line a case and structure"}, allow_field(allow));
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
  if (list) return pipeline::inputs_of_cases(list_pairs(*this), kPairs, /*order_matters=*/true);
  ListedInputs listed{pipeline::detached_inputs("prediction", prediction)};
  for (const RunInput& data : pipeline::detached_inputs("reference", reference)) {
    listed.inputs.push_back(data);
  }
  return listed;
}

ReadOptions read_options(const Options& options, const Context& context) {
  ReadOptions read;
  read.allow = options.allow;
  read.warn = [&](const std::string& text) { context.warn(text); };
  return read;
}

metrics::CaseScores score(const Case& files, const Options& options, const Context& context) {
  const ReadOptions read = read_options(options, context);
  const LabelVolume prediction = read_labels(files.image, read);
  const LabelVolume reference = read_labels(files.label, read);
  const std::string difference = describe_difference(prediction.grid(), reference.grid());
  if (!difference.empty()) {
    throw InputError("'" + files.image + "' and '" + files.label + "' are on different grids: " +
                     difference + "; resample one to the grid of the other");
  }
  return {files.id, metrics::score_labels(prediction, reference, options.config, context)};
}

Json to_json(const Case& files, const metrics::CaseScores& scored) {
  Json structures;
  for (const metrics::StructureScores& s : scored.structures) {
    for (const metrics::Score& score : s.scores) structures[s.structure][score.name] = score.value;
  }
  return {{"id", files.id},
          {"prediction", files.image},
          {"reference", files.label},
          {"structures", structures}};
}

/// Figures over all cases; those of the union are the metrics of the run.
void add_summary(const std::vector<metrics::CaseScores>& scored, Outputs& outputs) {
  Json summary;
  for (const auto& [structure, score, s] : metrics::summarise(scored)) {
    summary[structure][score] = {
        {"cases", s.count}, {"mean", s.mean}, {"sd", s.sd}, {"median", s.median}};
    if (structure == "union") outputs.metric(score, s.mean);
  }
  outputs.report("summary", summary);
}

Outputs run(const Options& options, Context& context) {
  const std::vector<Case> cases = list_pairs(options);
  std::vector<metrics::CaseScores> scored;
  Json rows = Json::array();
  Outputs outputs;
  for (const Case& files : cases) {
    const double done = static_cast<double>(scored.size()) / static_cast<double>(cases.size());
    context.progress(done, files.id);
    scored.push_back(score(files, options, context));
    rows.push_back(to_json(files, scored.back()));
    if (context.stop_requested()) return {};
  }
  context.progress(1, "all cases");
  add_summary(scored, outputs);
  outputs.report("cases", rows);
  const std::string text = metrics::to_tsv(scored);
  outputs.add(options.table, [text](const std::string& path) { write_file(path, text); });
  return outputs;
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
  return run_app<Options>(info, argc, argv, run,
                          [](const Options& options, const Context& context, const CaseWriter&) {
                            return pipeline::plan_evaluation(
                                list_pairs(options), read_options(options, context), context);
                          });
}
