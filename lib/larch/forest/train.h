// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/forest/model.h"
#include "larch/learning/train_hooks.h"
#include "larch/tree/train/grow_forest.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/train_config.h"

namespace larch::forest {

/// An image with its labels in model space, as training takes it: labels/positive are merged to
/// class_value and all else to 0, where they are given; voxels that are not used are kUnlabelled.
/// `images`: one for each component. Throws InputError when the grids differ, naming `name`.
voxels::TrainingVolume make_training_volume(
    const std::string& name, std::span<const Volume<float>> images, const LabelVolume& labels,
    const image::ModelSpace& space, const voxels::LabelConfig& config, const Context& context);

/// Trees as far as they have grown; the last may be growing.
using PartialForest = std::vector<tree::ForestTree>;

using TrainHooks = learning::TrainHooks<PartialForest>;

/// Trains a decision forest (Sharp 2008). `volumes` must be sorted (voxels::sort_by_digest). The
/// result depends on volumes, configuration and context.seed alone. Throws InputError where there
/// are not two classes to learn, UsageError, MemoryError, and Stopped after a checkpoint.
Model train_forest(const std::vector<voxels::TrainingVolume>& volumes,
                   const image::ModelSpace& space, const voxels::TrainConfig& config,
                   const TrainHooks& hooks, voxels::TrainReport* report, const Context& context);

}  // namespace larch::forest
