// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation/scored_cases.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/console.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/pipeline/evaluation/score_tables.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Case& c, const CaseScores& scored) {
  Json structures = Json::object();
  for (const StructureScores& s : scored.structures) {
    Json& scores = appended(structures, s.structure);
    for (const Score& score : s.scores) scores[score.name] = score.value;
  }
  return {
      {"id", c.id}, {"prediction", c.image}, {"reference", c.label}, {"structures", structures}};
}

/// Names the first predictions that are missing, in the order of the list; the report has all.
std::string missing_text(const EvaluationRequest& request) {
  constexpr size_t kNamed = 8;
  const size_t missing = request.missing.size();
  std::vector<std::string> names;
  for (const Case& c : request.cases) {
    if (names.size() < kNamed && request.missing.contains(c.id))
      names.push_back("'" + c.image + "'");
  }
  return std::to_string(missing) + " of " + std::to_string(request.cases.size()) +
         " predictions do not exist, such as " + config::join(names) + "; they count as Dice 0";
}

/// Figures of a prediction that is missing: nothing is found, not even the background. Those of
/// poses say so already.
void mark_missing(std::vector<StructureScores>& scores) {
  for (StructureScores& structure : scores) {
    for (auto& [named, value] : structure.scores) {
      const std::string_view name = named;
      if (name == "reference_mm3" || name == "box_iou" || name == "failure") continue;
      if (name == "missed" || name == "false_positive") continue;
      // A share of nothing is undefined and stays so.
      const bool is_share = is_best_when_great(name) && (name == "dice" || !std::isnan(value));
      value = is_share ? 0 : std::nan("");
    }
  }
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

std::vector<CaseScores> score_cases(
    const EvaluationRequest& request, const std::function<cases::CaseSize(const Case&)>& size,
    const std::function<std::vector<StructureScores>(const Case&, const Context&)>& score,
    const Context& context) {
  const std::vector<Case>& pairs = request.cases;
  std::vector<CaseScores> scored(pairs.size());
  std::mutex failing;
  std::map<size_t, std::exception_ptr> failures;
  std::atomic<size_t> over{0};
  cases::CaseLoop loop;
  loop.count = pairs.size();
  loop.memory_bytes = request.memory_bytes;
  loop.size = [&](size_t i) { return size(pairs[i]); };
  loop.work = [&](size_t i, const Context& c) {
    const larch::detail::LogScope of_case({pairs[i].id});
    scored[i] = {escaped(pairs[i].id), score(pairs[i], c)};
    if (request.missing.contains(pairs[i].id)) mark_missing(scored[i].structures);
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
  return scored;
}

Outputs outputs_of(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                   const std::string& whole) {
  Outputs outputs;
  add_summary(request, scored, whole, outputs);
  Json rows = Json::array();
  for (size_t i = 0; i < scored.size(); ++i) rows.push_back(to_json(request.cases[i], scored[i]));
  outputs.report("cases", rows);
  outputs.add(request.table,
              [text = to_tsv(scored)](const std::string& path) { write_file(path, text); });
  if (request.missing.empty()) return outputs;
  outputs.report("missing", request.missing);
  return outputs.status("rejected", missing_text(request));
}

Plan plan_cases(const EvaluationRequest& request, std::vector<std::string> header,
                const std::function<std::vector<std::string>(const Case&)>& row,
                const std::function<void()>& check, const Context& context) {
  Plan plan;
  plan.table = {std::move(header)};
  for (const Case& c : request.cases) {
    try {
      std::vector<std::string> cells = row(c);
      cells.insert(cells.begin(), c.id);
      plan.table.push_back(std::move(cells));
    } catch (const Error& error) {
      if (plan.problems.empty()) plan.code = error.code();
      plan.problems.push_back("case '" + c.id + "': " + error.what());
    }
    context.throw_if_stopped("stopped");
  }
  if (plan.problems.empty()) check();
  if (!request.missing.empty()) {
    if (plan.problems.empty()) plan.code = ExitCode::kRejected;
    plan.problems.push_back(missing_text(request));
  }
  return plan;
}

int64_t bytes_of_prediction(const EvaluationRequest& request, const Case& c) {
  return request.missing.contains(c.id) ? 0 : file_bytes(c.image);
}

}  // namespace larch::pipeline
