// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation/score_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/text.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Summary& s) {
  return {{"cases", s.count},         {"mean", s.mean}, {"sd", s.sd},
          {"median", s.median},       {"p95", s.p95},   {"mean_ci_low", s.ci_low},
          {"mean_ci_high", s.ci_high}};
}

/// The table that is printed leaves out what others say nearly as well; the report has all.
bool is_printed(std::string_view score) {
  constexpr std::string_view kLeftOut[] = {
      "jaccard",           "prediction_mm3", "reference_mm3",  "volume_difference_mm3",
      "surface_median_mm", "surface_p95_mm", "surface_max_mm", "total_correct_fraction"};
  return std::ranges::find(kLeftOut, score) == std::end(kLeftOut);
}

std::string cell(double value) {
  return std::isnan(value) ? "n/a" : number_text(value, 4);
}

/// Returns the rows that are printed: without the union of a single structure.
std::vector<SummaryRow> printed(std::vector<SummaryRow> rows) {
  std::set<std::string> structures;
  for (const SummaryRow& row : rows) structures.insert(row.structure);
  std::erase_if(rows, [&](const SummaryRow& row) {
    return !is_printed(row.score) || (structures.size() == 2 && row.structure == "union");
  });
  return rows;
}

/// Adds a table with the columns that every one has and two of its own.
void print(const EvaluationRequest& request, const std::vector<SummaryRow>& rows,
           const std::vector<std::string>& header,
           const std::function<std::vector<std::string>(const SummaryRow&)>& last,
           Outputs& outputs) {
  outputs.table.push_back({"structure", header[0], "n", "mean", "sd", "median"});
  outputs.table.back().insert(outputs.table.back().end(), header.begin() + 1, header.end());
  for (const SummaryRow& row : printed(rows)) {
    const auto name = request.names.find(row.structure);
    const Summary& s = row.summary;
    outputs.table.push_back(
        {row.structure + (name == request.names.end() ? "" : " " + name->second), row.score,
         std::to_string(s.count), cell(s.mean), cell(s.sd), cell(s.median)});
    const std::vector<std::string> cells = last(row);
    outputs.table.back().insert(outputs.table.back().end(), cells.begin(), cells.end());
  }
}

/// Adds the paired differences from the baseline.
void add_differences(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                     Outputs& outputs) {
  const std::vector<SummaryRow> rows =
      summarise(paired_differences(scored, request.baseline.value()));
  Json differences = Json::object();
  for (const SummaryRow& row : rows) {
    appended(differences, row.structure)[row.score] = to_json(row.summary);
  }
  outputs.report("differences", differences);
  outputs.table.emplace_back();
  print(
      request, rows, {"this run - baseline", "95 % from", "to"},
      [](const SummaryRow& row) {
        return std::vector{cell(row.summary.ci_low), cell(row.summary.ci_high)};
      },
      outputs);
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
  Json summary = Json::object();
  for (const SummaryRow& row : rows) {
    Json& figures = appended(summary, row.structure)[row.score] = to_json(row.summary);
    figures["worst"] = row.worst;
    figures["worst_case"] = row.worst_case;
    if (row.structure == whole) outputs.metric(row.score, row.summary.mean);
  }
  outputs.report("summary", summary);
  print(
      request, rows, {"score", "worst", "case"},
      [](const SummaryRow& row) {
        return std::vector{cell(row.worst), row.worst_case};
      },
      outputs);
  if (request.baseline) add_differences(request, scored, outputs);
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
