// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "larch/cases/run_cases.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

// Bytes per voxel.
constexpr int64_t kLabelMap = 4;
/// Of one map as it is stored, beside the other one and itself.
constexpr int64_t kReading = 3 * kLabelMap;
/// Masks of a structure, and their surfaces.
constexpr int64_t kScoring = 4;

/// The two label maps of a case.
struct Pair {
  LabelVolume prediction, reference;
};

Pair read_pair(const Case& c, const ReadOptions& read) {
  Pair pair{read_labels(c.image, read), read_labels(c.label, read)};
  const std::string difference = describe_difference(pair.prediction.grid(), pair.reference.grid());
  if (!difference.empty()) {
    throw InputError("'" + c.image + "' and '" + c.label + "' are on different grids: " +
                     difference + "; resample one to the grid of the other");
  }
  return pair;
}

cases::MemoryNeed bytes_of(const Case& c, ReadOptions read) {
  read.warn = nullptr;  // the reading itself will say it
  const int64_t voxels = probe_image(c.image, read).grid.voxels();
  cases::MemoryNeed need;
  need.reading = kReading * voxels;
  need.resting = 2 * kLabelMap * voxels;
  need.computing = need.resting + kScoring * voxels;
  return need;
}

Json to_json(const Case& c, const metrics::CaseScores& scored) {
  Json structures;
  for (const metrics::StructureScores& s : scored.structures) {
    for (const metrics::Score& score : s.scores) structures[s.structure][score.name] = score.value;
  }
  return {
      {"id", c.id}, {"prediction", c.image}, {"reference", c.label}, {"structures", structures}};
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

}  // namespace

Outputs evaluate_cases(const EvaluationRequest& request, const metrics::LabelScoreConfig& config,
                       const Context& context) {
  const std::vector<Case>& pairs = request.cases;
  std::vector<metrics::CaseScores> scored(pairs.size());
  cases::CaseSteps<Pair> steps;
  steps.bytes = [&](size_t i) { return bytes_of(pairs[i], request.read); };
  steps.read = [&](size_t i, const Context&) { return read_pair(pairs[i], request.read); };
  steps.compute = [&](size_t i, const Pair& pair, const Context& all) {
    scored[i] = {pairs[i].id, metrics::score_labels(pair.prediction, pair.reference, config, all)};
  };
  cases::run_cases({pairs}, steps, context);
  Outputs outputs;
  add_summary(scored, outputs);
  Json rows = Json::array();
  for (size_t i = 0; i < pairs.size(); ++i) rows.push_back(to_json(pairs[i], scored[i]));
  outputs.report("cases", rows);
  outputs.add(request.table, [text = metrics::to_tsv(scored)](const std::string& path) {
    write_file(path, text);
  });
  return outputs;
}

Plan plan_evaluation(const EvaluationRequest& request, const Context& context) {
  SurveyRequest survey_request;
  survey_request.labels = survey_request.image_is_labels = true;
  survey_request.read = request.read;
  survey_request.tolerance_mm = 1e-3;
  const std::vector<SurveyedCase> surveyed = survey(request.cases, survey_request, context);
  Plan plan;
  add_problems(request.cases, surveyed, plan);
  plan.table = {{"id", "voxels", "spacing_mm", "prediction_labels", "reference_labels"}};
  int64_t largest = 0;
  for (size_t i = 0; i < surveyed.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    plan.table.push_back({request.cases[i].id, size_cell(s.image.grid), spacing_cell(s.image.grid),
                          labels_cell(s.image_labels), labels_cell(s.labels)});
    largest = std::max(largest, s.image.grid.voxels());
  }
  plan.memory_bytes = kReading * largest;
  return plan;
}

}  // namespace larch::pipeline
