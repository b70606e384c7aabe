// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <vector>

#include "larch/cases/dataset_json.h"
#include "larch/core/context.h"
#include "larch/pbt/train/samples.h"
#include "larch/pbt/train_config.h"

// What keys of pbt-train become that are null.
namespace larch::pipeline {

/// Sets the classifier and labels/border_voxels. The classifier is the one that the other keys are
/// for, or else a tree where one class is named or the label maps hold one beside the background,
/// and a forest where they hold several. `values`: of the label maps.
void choose_classifier(pbt::TrainConfig& config, const std::set<int>& values,
                       const Context& context);
/// Tells whether all keys are for forests, or for boosting trees too.
bool fits_forest(const pbt::TrainConfig& config);
/// Tells whether choose_classifier looks at the values.
bool asks_labels(const pbt::TrainConfig& config);

/// What a data set calls its labels, for a forest of all of them: names where none are given, and
/// the background, which is 0 where nothing is called so but 0 occurs and has no name. `seen`: the
/// label values that occur.
void take_names(const std::vector<DatasetLabel>& labels, const std::set<int>& seen,
                pbt::LabelConfig& config, const Context& context);

/// Sets validation/fraction by the number of volumes, and the boxes of a forest by the sizes of
/// volumes and structures.
void fit_to_volumes(pbt::TrainConfig& config, const std::vector<pbt::TrainingVolume>& volumes,
                    const Context& context);

/// For models whose trees have no labels of voxels: what the keys are where nothing is fitted.
pbt::TrainConfig with_constants(pbt::TrainConfig config);

}  // namespace larch::pipeline
