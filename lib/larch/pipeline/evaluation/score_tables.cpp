// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation/score_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/text.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// The table that is printed leaves out what others say nearly as well; the report has all.
bool is_printed(std::string_view score) {
  constexpr std::string_view kLeftOut[] = {
      "jaccard",           "prediction_mm3", "reference_mm3",  "volume_difference_mm3",
      "surface_median_mm", "surface_p95_mm", "surface_max_mm", "total_correct_fraction"};
  return std::ranges::find(kLeftOut, score) == std::end(kLeftOut);
}

/// Adds figures to the report, as `key`, and to the table that is printed, under `heading`.
void add_rows(const EvaluationRequest& request, const std::vector<SummaryRow>& rows,
              const std::string& key, const std::string& heading, Outputs& outputs) {
  Json figures = Json::object();
  for (const auto& [structure, score, s, worst, worst_case] : rows) {
    appended(figures, structure)[score] = {
        {"cases", s.count},          {"mean", s.mean}, {"sd", s.sd},
        {"median", s.median},        {"p95", s.p95},   {"mean_ci_low", s.ci_low},
        {"mean_ci_high", s.ci_high}, {"worst", worst}, {"worst_case", worst_case}};
  }
  outputs.report(key, figures);
  const bool is_single = figures.size() == 2 && figures.contains("union");
  const auto cell = [](double value) { return std::isnan(value) ? "n/a" : number_text(value, 4); };
  outputs.table.push_back(
      {"structure", heading, "n", "mean", "sd", "median", "mean from", "to 95 %", "worst", "case"});
  for (const auto& [structure, score, s, worst, worst_case] : rows) {
    if (!is_printed(score) || (is_single && structure == "union")) continue;
    const auto name = request.names.find(structure);
    outputs.table.push_back({structure + (name == request.names.end() ? "" : " " + name->second),
                             score, std::to_string(s.count), cell(s.mean), cell(s.sd),
                             cell(s.median), cell(s.ci_low), cell(s.ci_high), cell(worst),
                             worst_case});
  }
}

}  // namespace

Json& appended(Json& object, const std::string& name) {
  auto& members = object.get_ref<Json::object_t&>();
  if (members.empty() || members.back().first != name) members.emplace_back(name, Json());
  return members.back().second;
}

void add_summary(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                 const std::string& whole, Outputs& outputs) {
  const std::vector<SummaryRow> rows = summarise(scored);
  for (const SummaryRow& row : rows) {
    if (row.structure == whole) outputs.metric(row.score, row.summary.mean);
  }
  add_rows(request, rows, "summary", "score", outputs);
  if (!request.baseline) return;
  outputs.table.emplace_back();
  add_rows(request, summarise(paired_differences(scored, *request.baseline)), "differences",
           "less baseline", outputs);
}

ScoreTable read_baseline(const std::string& path, const std::vector<Case>& cases,
                         const Context& context) {
  const Table table = read_table(path);
  for (const char* column : {"id", "structure"}) {
    if (table.has(column)) continue;
    throw InputError("'" + path + "' has no column '" + column +
                     "'; give a table that evaluate --table wrote");
  }
  ScoreTable baseline;
  for (const Table::Row& row : table.rows) {
    std::map<std::string, double> scores;
    std::string id, structure;
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const std::string &column = table.columns[i], &text = row.cells[i];
      if (column == "id" || column == "structure") {
        (column == "id" ? id : structure) = text;
        continue;
      }
      double value = std::nan("");
      const char* end = text.data() + text.size();
      if (text != "n/a" &&
          (std::from_chars(text.data(), end, value).ptr != end || !std::isfinite(value))) {
        io::bad_line(path, row.line, "'" + text + "' in the column '" + column + "' is no number");
      }
      scores[column] = value;
    }
    if (!baseline[id].emplace(structure, std::move(scores)).second) {
      io::bad_line(path, row.line,
                   "the structure '" + structure + "' of '" + id + "' stands twice");
    }
  }
  const size_t theirs = baseline.size();
  const auto both = static_cast<size_t>(std::ranges::count_if(
      cases, [&](const Case& c) { return baseline.contains(escaped(c.id)); }));
  if (both == 0) throw InputError("'" + path + "' has none of the ids of this run");
  if (both < cases.size() || both < theirs) {
    context.warn("'" + path + "': " + std::to_string(both) + " of " + std::to_string(cases.size()) +
                 " cases are among its " + std::to_string(theirs) +
                 "; the differences are those of these");
  }
  return baseline;
}

}  // namespace larch::pipeline
