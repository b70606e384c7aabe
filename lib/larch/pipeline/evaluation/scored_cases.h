// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/case_loop.h"
#include "larch/core/context.h"
#include "larch/evaluate.h"
#include "larch/pipeline/evaluation/evaluation.h"

namespace larch::pipeline {

/// Scores each case by `score`, side by side; `size` is as in CaseLoop. The first case of the list
/// among those that fail ends the run.
std::vector<CaseScores> score_cases(
    const EvaluationRequest& request, const std::function<cases::CaseSize(const Case&)>& size,
    const std::function<std::vector<StructureScores>(const Case&, const Context&)>& score,
    const Context& context);

/// Returns the report, the table and what is printed of the scores; the means of the structure
/// `whole` are the metrics of the run.
Outputs outputs_of(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                   const std::string& whole);

/// Returns a table with a row for each case: the id, and the cells that `row` gives. `check` is
/// called where no case has a problem.
Plan plan_cases(const EvaluationRequest& request, std::vector<std::string> header,
                const std::function<std::vector<std::string>(const Case&)>& row,
                const std::function<void()>& check, const Context& context);

/// Returns the bytes of the file of a prediction, 0 of one that is missing.
int64_t bytes_of_prediction(const EvaluationRequest& request, const Case& c);

}  // namespace larch::pipeline
