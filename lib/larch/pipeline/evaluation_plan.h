// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/app/plan.h"
#include "larch/core/context.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"

namespace larch::pipeline {

/// What a comparison of predictions (Case::image) with references (Case::label) would do: both are
/// read, have to be label maps on one grid, and are described in a table. Problems are in the plan.
Plan plan_evaluation(const std::vector<Case>& cases, const ReadOptions& read,
                     const Context& context);

}  // namespace larch::pipeline
