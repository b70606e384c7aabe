// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/metrics/label_scores.h"

namespace larch::pipeline {

/// Predictions (Case::image) that are compared with references (Case::label).
struct EvaluationRequest {
  std::vector<Case> cases;
  ReadOptions read;
  std::string table;  ///< TSV of the scores; empty: none
  /// Label maps and surfaces take so much on the host together at most; 0: no promise is made.
  int64_t memory_bytes = 0;
};

/// The scores of all cases: in the report those of each case and a summary over all, whose means of
/// the union are the figures of the run; in the table a line per case and structure. Throws
/// InputError, the first case that cannot be used ends the run, MemoryError, and Stopped.
Outputs evaluate_cases(const EvaluationRequest& request, const metrics::LabelScoreConfig& config,
                       const Context& context);

/// Looks at the headers of both maps of each case, which have to be on one grid, and describes them
/// in a table. Problems are in the plan.
Plan plan_evaluation(const EvaluationRequest& request, const Context& context);

}  // namespace larch::pipeline
