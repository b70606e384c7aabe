// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/evaluate.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/evaluation/pairs.h"

namespace larch::pipeline {

/// Predictions and references that are compared.
struct EvaluationRequest : Pairs {
  ReadOptions read;
  std::string table;  ///< TSV of the scores; empty: none
  std::string
      model;  ///< of poses: a network, to whose mean shapes label maps are fitted; empty: none
  /// Label maps and surfaces take so much on the host together at most; 0: no promise is made.
  int64_t memory_bytes = 0;
  /// Of label maps; of meshes `labels` alone, all but 0 if there are none.
  LabelScoreConfig config{};
  std::optional<ScoreTable> baseline{};  ///< scores that those of this run are compared with
};

/// Returns the scores of all cases: in the report those of each case, a summary over all and the
/// paired differences from the baseline; in the table a line per case and structure; the summary
/// and the differences as a table to print. Warns of labels that the reference or the prediction of
/// a case lacks. A prediction that is missing finds nothing: its overlap is 0, it has no distances,
/// and the outputs are rejected. Throws InputError, the first case that cannot be used ends the
/// run, and labels that are asked for must occur in one of them; MemoryError, and Stopped.
///
/// Of label maps the means of the union are the figures of the run.
Outputs evaluate_labels(const EvaluationRequest& request, const Context& context);
/// Predictions are meshes (read_mesh), and so are references with the ending of one; others are
/// label maps (score_mesh).
/// The means of the structure "surface" are the figures of the run.
Outputs evaluate_meshes(const EvaluationRequest& request, const Context& context);
/// Of files of poses (read_any_poses) the structures of the reference count, and the prediction has
/// those of the same name. One that it lacks, or that has no pose there, is a failure; one that has
/// none in the reference is not there, and a pose of it a false positive. Where a structure is
/// there in some cases and absent in others, the area under the curve of its confidence is
/// reported. With a model either may be a label map, whose poses are those of its mean shapes. The
/// report has both poses of each case. The means over all structures of all cases are the figures
/// of the run.
Outputs evaluate_poses(const EvaluationRequest& request, const Context& context);

/// Looks at the headers of the label maps of each case, of which two have to be on one grid, or
/// reads meshes or files of poses, and describes them in a table. Label maps are read if labels are
/// asked for. Problems are in the plan. Throws InputError for labels that no case has.
Plan plan_labels(const EvaluationRequest& request, const Context& context);
Plan plan_meshes(const EvaluationRequest& request, const Context& context);
Plan plan_poses(const EvaluationRequest& request, const Context& context);

}  // namespace larch::pipeline
