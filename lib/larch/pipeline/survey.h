// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "larch/app/plan.h"
#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/data/grid.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"

namespace larch::pipeline {

/// Voxels of each label value.
using LabelCounts = std::map<int32_t, int64_t>;

/// What is known of a case before a run.
struct SurveyedCase {
  ImageInfo image{};         ///< what its header says
  LabelCounts image_labels;  ///< if the image is a label map too
  LabelCounts labels;        ///< empty without a label map
  std::string problem;       ///< why the case cannot be used; empty: it can
  ExitCode code = ExitCode::kDone;
};

struct SurveyRequest {
  bool labels = false;           ///< label maps are read, and have to be on the grid of the image
  bool image_is_labels = false;  ///< the images are read as label maps
  double tolerance_mm = 1e-2;    ///< between the corners of the two grids
  ReadOptions read{};            ///< of images and label maps
};

/// Looks at every case: headers of the images, whose voxels are not read, and the label maps whole.
/// Several cases at a time, as long as their label maps fit into half of the free memory. What is
/// wrong with a case is in its row. Throws Stopped when the stop flag of `context` is set.
std::vector<SurveyedCase> survey(const std::vector<Case>& cases, const SurveyRequest& request,
                                 const Context& context);

/// Cells of the table of a plan: "512x512x120" and "0.7x0.7x2.5"; "n/a" without voxels.
std::string size_cell(const Grid& grid);
std::string spacing_cell(const Grid& grid);
/// "0,1,2", cut after some; "-" for none.
std::string labels_cell(const LabelCounts& counts);

/// Takes the problems of the cases over, each with its id. The code is that of the first.
void add_problems(const std::vector<Case>& cases, const std::vector<SurveyedCase>& surveyed,
                  Plan& plan);

}  // namespace larch::pipeline
