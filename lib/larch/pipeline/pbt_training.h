// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {

/// From lists of images and labels to a model: reads, brings to model space (the median spacing of
/// the images, unless configured), and trains; the outputs are the model, the picture and the page
/// of held-out cases, with figures. The page shows what detect.h finds in them with the model, and
/// the truth. The model depends on the voxels, the configuration and context.seed alone.
/// Throws InputError (files, grids, a label that never occurs), UsageError (configuration, an
/// output that is one of the volumes), MemoryError, and Stopped after a checkpoint.
Outputs train_voxels(const TrainingFiles& files, const voxels::TrainConfig& config,
                     const Context& context);

/// Returns the name of the picture of a held-out case in the folder of its page.
std::string held_out_picture(const std::string& folder, const Case& c);

/// The picture of the training of a model, to be written to `path`; none if that is empty.
void add_plot(const std::string& path, const models::AnyModel& model, Outputs& outputs);

/// Finds by the label maps and the headers of the images what train_voxels would refuse before the
/// training begins, and makes a table of the cases. Problems of single cases are in the plan;
/// throws the rest.
Plan plan_training(const TrainingFiles& files, voxels::TrainConfig config, const Context& context);

}  // namespace larch::pipeline
