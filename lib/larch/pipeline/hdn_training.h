// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/dataset_json.h"
#include "larch/core/context.h"
#include "larch/hdn/train/train.h"
#include "larch/pipeline/training_cases.h"
#include "larch/pipeline/training_files.h"

namespace larch::pipeline {

/// The cell of a list with the file of a case's poses (.mrk.json or poses.json), in place of a
/// label map.
inline constexpr const char* kPosesColumn = "poses";
/// From lists of images with label maps or poses to a hierarchical detection network: reads, finds
/// the true poses, trains; the outputs are the network and the picture of the recall of its stages,
/// with figures. `labels`: of the data set, each a structure where the configuration names none.
/// The network depends on the voxels, the poses, the configuration and context.seed alone. Throws
/// InputError, UsageError, MemoryError, and Stopped after a checkpoint.
Outputs train_hdn(const TrainingFiles& files, hdn::HdnConfig config,
                  const hdn::SharedConfig& shared, const std::vector<DatasetLabel>& labels,
                  const Context& context);

/// Finds by headers of images, label maps and poses what train_hdn would refuse before the training
/// begins, and makes a table of the cases.
Plan plan_hdn_training(const TrainingFiles& files, hdn::HdnConfig config,
                       const hdn::SharedConfig& shared, const std::vector<DatasetLabel>& labels,
                       const Context& context);

}  // namespace larch::pipeline
