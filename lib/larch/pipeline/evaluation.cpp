// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "larch/cases/memory.h"
#include "larch/cases/plan_cases.h"
#include "larch/cases/run_cases.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

// Bytes per voxel.
constexpr int64_t kLabelMap = 4;
/// The masks of a structure in both maps.
constexpr int64_t kMasks = 2;
/// Surfaces of a structure, as they mostly are; how large they can be is known from the masks.
constexpr int64_t kSurfaces = 2;

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

/// With a promise a case whose surfaces are measured is computed with nothing else in memory, since
/// they are counted only then.
cases::MemoryNeed bytes_of(const EvaluationRequest& request, const Case& c, bool surfaces) {
  ReadOptions read = request.read;
  read.warn = nullptr;  // the reading itself will say it
  const ImageInfo prediction = probe_image(c.image, read), reference = probe_image(c.label, read);
  const int64_t voxels = prediction.grid.voxels();
  cases::MemoryNeed need;
  need.resting = kLabelMap * (voxels + reference.grid.voxels());
  need.reading = need.resting + std::max(prediction.bytes, reference.bytes);
  need.least = std::max(need.reading, need.resting + kMasks * voxels);
  need.computing = need.resting + (kMasks + kSurfaces) * voxels;
  if (surfaces) need.computing = std::max(need.computing, request.memory_bytes);
  return need;
}

/// What the surfaces of a case may take.
int64_t surface_bytes(const EvaluationRequest& request, const Pair& pair) {
  if (request.memory_bytes == 0) return INT64_MAX;
  return request.memory_bytes - (2 * kLabelMap + kMasks) * pair.prediction.voxels();
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
  steps.bytes = [&](size_t i) { return bytes_of(request, pairs[i], config.surfaces); };
  steps.read = [&](size_t i, const Context&) { return read_pair(pairs[i], request.read); };
  steps.compute = [&](size_t i, const Pair& pair, const Context& all) {
    scored[i] = {pairs[i].id, metrics::score_labels(pair.prediction, pair.reference, config, all,
                                                    surface_bytes(request, pair))};
  };
  cases::run_cases({pairs, request.memory_bytes}, steps, context);
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

Plan plan_evaluation(const EvaluationRequest& request, const metrics::LabelScoreConfig& config,
                     const Context& context) {
  SurveyRequest maps;
  maps.labels = maps.image_is_labels = true;
  maps.read = request.read;
  maps.tolerance_mm = 1e-3;
  const std::vector<SurveyedCase> surveyed = survey(request.cases, maps, context);
  const auto look = [&](size_t i, Plan& plan) {
    if (!surveyed[i].problem.empty()) throw Error(surveyed[i].code, surveyed[i].problem);
    const cases::MemoryNeed need = bytes_of(request, request.cases[i], config.surfaces);
    cases::require_least(need, request.memory_bytes);
    plan.memory_bytes = std::max(plan.memory_bytes, need.least);
  };
  Plan plan = cases::plan_cases({request.cases, request.memory_bytes}, look, context);
  plan.table = {{"id", "voxels", "spacing_mm", "prediction_labels", "reference_labels"}};
  for (size_t i = 0; i < surveyed.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    plan.table.push_back({request.cases[i].id, size_cell(s.image.grid), spacing_cell(s.image.grid),
                          labels_cell(s.image_labels), labels_cell(s.labels)});
  }
  return plan;
}

}  // namespace larch::pipeline
