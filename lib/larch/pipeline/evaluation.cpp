// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>

#include <nlohmann/json.hpp>

#include "larch/cases/case_loop.h"
#include "larch/cases/images.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes per voxel of a label map, and of the masks and mostly the surfaces of a structure.
constexpr int64_t kLabelMap = 4, kMasks = 2, kSurfaces = 2;

void require_same_grid(const Case& c, const Grid& prediction, const Grid& reference) {
  require_on_grid("'" + c.image + "'", prediction, "'" + c.label + "'", reference);
}

/// The bytes that the surfaces of a case may take.
int64_t surface_bytes(const EvaluationRequest& request, int64_t voxels) {
  if (request.memory_bytes == 0) return INT64_MAX;
  return request.memory_bytes - (2 * kLabelMap + kMasks) * voxels;
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

/// Rethrows the failure of the first case in the list among those that failed. One of memory names
/// no file: the case is named for it.
[[noreturn]] void rethrow_first(const std::map<size_t, std::exception_ptr>& failures,
                                const std::vector<Case>& pairs) {
  const auto& [i, error] = *failures.begin();
  try {
    std::rethrow_exception(error);
  } catch (const MemoryError& lack) {
    throw MemoryError("case '" + pairs[i].id + "': " + lack.what());
  }
}

}  // namespace

Outputs evaluate_cases(const EvaluationRequest& request, const metrics::LabelScoreConfig& config,
                       const Context& context) {
  const std::vector<Case>& pairs = request.cases;
  std::vector<metrics::CaseScores> scored(pairs.size());
  std::mutex failing;
  std::map<size_t, std::exception_ptr> failures;
  std::atomic<size_t> over{0};
  cases::CaseLoop loop;
  loop.count = pairs.size();
  loop.memory_bytes = request.memory_bytes;
  loop.size = [&](size_t i) {
    ReadOptions read = request.read;
    read.warn = nullptr;  // the reading itself will say it
    const int64_t voxels = probe_image(pairs[i].image, read).grid.voxels();
    const int64_t bytes = (2 * kLabelMap + kMasks + kSurfaces) * voxels;
    // With a promise a case whose surfaces are measured has all of it, since they are counted only
    // when its masks are there.
    return cases::CaseSize{voxels, config.surfaces ? std::max(bytes, request.memory_bytes) : bytes};
  };
  loop.work = [&](size_t i, const cases::CaseContext& c) {
    const LabelVolume prediction = read_labels(pairs[i].image, request.read);
    const LabelVolume reference = read_labels(pairs[i].label, request.read);
    require_same_grid(pairs[i], prediction.grid(), reference.grid());
    const cases::Turn turn = c.turn();
    scored[i] = {pairs[i].id, metrics::score_labels(prediction, reference, config, turn.context(),
                                                    surface_bytes(request, prediction.voxels()))};
    const size_t done = ++over;
    context.progress(double(done) / double(pairs.size()), "case '" + pairs[i].id + "'");
  };
  loop.failed = [&](size_t i, const std::exception_ptr& error) {
    const std::lock_guard lock(failing);
    failures.emplace(i, error);
    return false;
  };
  cases::give_memory_back(request.memory_bytes);
  cases::run_case_loop(loop, context);
  if (!failures.empty()) rethrow_first(failures, pairs);
  context.throw_if_stopped("stopped; no output was written");
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
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm"}};
  for (const Case& c : request.cases) {
    try {
      const Grid grid = probe_image(c.image, request.read).grid;
      require_same_grid(c, grid, probe_image(c.label, request.read).grid);
      plan.table.push_back({c.id, cases::size_cell(grid), cases::spacing_cell(grid)});
    } catch (const Error& error) {
      if (plan.problems.empty()) plan.code = error.code();
      plan.problems.push_back("case '" + c.id + "': " + error.what());
    }
    context.throw_if_stopped("stopped");
  }
  return plan;
}

}  // namespace larch::pipeline
