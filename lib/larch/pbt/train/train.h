// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/train_hooks.h"
#include "larch/pbt/model.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/train_config.h"

namespace larch::pbt {

/// A model whose last tree is still growing: the first `finished` nodes have been trained; the
/// others are known by their masses only.
struct PartialModel {
  Model model;
  size_t finished = 0;
};

using TrainHooks = learning::TrainHooks<PartialModel>;

/// Trains a probabilistic boosting tree, or an ensemble of them (Tu 2005; Birkbeck, Sofka, Zhou
/// 2011; US 2012/0069003 A1, paragraphs 29 to 38). `volumes` must be sorted (sort_by_digest);
/// `space` is the model space that they are in. The result depends on volumes, configuration and
/// context.seed alone, not on the device, the number of threads or interruptions. Throws InputError
/// for training data of one class, naming both counts; Stopped after a checkpoint when the
/// context's stop flag is set.
Model train_trees(const std::vector<TrainingVolume>& volumes, const image::ModelSpace& space,
                  const TrainConfig& config, const TrainHooks& hooks, TrainReport* report,
                  const Context& context);

}  // namespace larch::pbt
