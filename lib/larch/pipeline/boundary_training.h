// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {

/// From a list of images with label maps to a boundary model (larch/train.h): reads and trains; the
/// outputs are the model and a picture of its modes, with figures. `start_model`: a network (.hdn)
/// with the structure; may be empty. Throws as larch::train_boundary.
Outputs train_boundary(const TrainingFiles& files, boundary::BoundaryConfig config,
                       const voxels::TrainConfig& shared, const std::string& start_model,
                       const Context& context);

/// Finds by headers of images and by label maps what train_boundary would refuse, and makes a table
/// of the cases.
Plan plan_boundary_training(const TrainingFiles& files, boundary::BoundaryConfig config,
                            const voxels::TrainConfig& shared, const std::string& start_model,
                            const Context& context);

}  // namespace larch::pipeline
