// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/boundary/train/train.h"
#include "larch/core/context.h"
#include "larch/pipeline/training_cases.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {

/// From a list of images with label maps to a boundary model: reads, fits poses, puts the template
/// onto the surfaces, learns the shape and the classifiers; the outputs are the model and a picture
/// of its modes, with figures. `start_model`: a network (.hdn) with the structure, whose mean shape
/// gives the poses and whose errors displace them; may be empty. The model depends on the voxels,
/// the configuration, the network and context.seed alone. Throws InputError, UsageError,
/// MemoryError, and Stopped after a checkpoint.
Outputs train_boundary(const TrainingFiles& files, boundary::BoundaryConfig config,
                       const hdn::SharedConfig& shared, const std::string& start_model,
                       const Context& context);

/// The largest component of the structure, its holes filled, on the part of the grid with it; no
/// values: all labels but 0. Empty if there is none.
Volume<uint8_t> structure_mask(const LabelVolume& labels, const std::vector<int32_t>& values);

/// Finds by headers of images and by label maps what train_boundary would refuse, and makes a table
/// of the cases.
Plan plan_boundary_training(const TrainingFiles& files, boundary::BoundaryConfig config,
                            const hdn::SharedConfig& shared, const std::string& start_model,
                            const Context& context);

}  // namespace larch::pipeline
