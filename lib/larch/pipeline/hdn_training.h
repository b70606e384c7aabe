// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/pipeline/case_poses.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {

/// From lists of images with label maps or poses to a network (larch/train.h): reads and trains;
/// the outputs are the network and the picture of the recall of its stages, with figures. Throws as
/// train_network.
Outputs train_hdn(const TrainingFiles& files, const hdn::HdnConfig& config,
                  const voxels::TrainConfig& shared, const Context& context);

/// Finds by headers of images, label maps and poses what train_hdn would refuse before the training
/// begins, and makes a table of the cases.
Plan plan_hdn_training(const TrainingFiles& files, hdn::HdnConfig config,
                       const voxels::TrainConfig& shared, const Context& context);

}  // namespace larch::pipeline
