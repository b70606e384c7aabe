// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/app/plan.h"
#include "larch/pipeline/detection/pbt_batch.h"

namespace larch::pipeline {

/// What detect_batch would do: check_batch, the headers of all images, whether their working grids
/// and the evaluation fit, and a table of the cases. A case that would fail is a problem of the
/// plan. Throws what concerns all of them.
Plan plan_batch(const pbt::Model& model, const DetectConfig& config, const BatchRequest& request,
                const CaseWriter& writer, const Context& context);

/// The same for one image. Throws as reading and detecting would.
Plan plan_detection(const pbt::Model& model, const DetectConfig& config,
                    const DetectionRequest& request, const Context& context);

}  // namespace larch::pipeline
