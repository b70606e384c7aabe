// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/evaluate.h"
#include "larch/pipeline/evaluation/evaluation.h"

namespace larch::pipeline {

/// Adds a member to a JSON object that has none of the name, or gives its last one, without a
/// search through all of them.
nlohmann::ordered_json& appended(nlohmann::ordered_json& object, const std::string& name);

/// Adds figures over all cases to the report and to the table that is printed, and those of the
/// differences from the baseline; the means of the structure `whole` are the metrics of the run.
void add_summary(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                 const std::string& whole, Outputs& outputs);

/// Reads a table of the scores of another run (to_tsv), and warns of ids that only it or `cases`
/// has. Throws InputError that names the line: no such table, a row that stands twice, a cell that
/// is no number, or no id of these cases.
ScoreTable read_baseline(const std::string& path, const std::vector<Case>& cases,
                         const Context& context);

}  // namespace larch::pipeline
