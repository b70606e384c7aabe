// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation_plan.h"

#include <algorithm>

#include "larch/pipeline/survey.h"

namespace larch::pipeline {

Plan plan_evaluation(const std::vector<Case>& cases, const ReadOptions& read,
                     const Context& context) {
  SurveyRequest request;
  request.labels = request.image_is_labels = true;
  request.read = read;
  request.tolerance_mm = 1e-3;
  const std::vector<SurveyedCase> surveyed = survey(cases, request, context);
  Plan plan;
  add_problems(cases, surveyed, plan);
  plan.table = {{"id", "voxels", "spacing_mm", "prediction_labels", "reference_labels"}};
  int64_t largest = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    plan.table.push_back({cases[i].id, size_cell(s.image.grid), spacing_cell(s.image.grid),
                          labels_cell(s.image_labels), labels_cell(s.labels)});
    largest = std::max(largest, s.image.grid.voxels());
  }
  plan.memory_bytes = 12 * largest;  // both maps, and one as it is stored
  return plan;
}

}  // namespace larch::pipeline
