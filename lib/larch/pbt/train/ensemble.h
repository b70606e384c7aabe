// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/pbt/model.h"
#include "larch/tree/ensemble.h"

namespace larch::pbt {

/// Appends the only tree of `tree` to the trees of `ensemble`. What does not belong to a tree
/// (space, thresholds, table) is taken from the first one. Features and weak classifiers that no
/// node uses are left out, and so are the self-tests, which are those of a whole model.
void append_tree(Model& ensemble, const Model& tree);

/// Tree number `which` of an ensemble as a model of its own, with the features in the order of
/// their first use. append_tree puts it back as it was.
Model extract_tree(const Model& ensemble, size_t which);

/// A grown tree, whose features are columns of `pool`, as a model: `start` says all but the trees.
/// The features are in the order of their first use.
Model model_of(const tree::Ensemble& grown, const Model& start,
               const std::vector<features::HaarFeature>& pool);

/// The trees of a model with columns of the pool for features, as they grow.
tree::Ensemble grown_of(const Model& model);

}  // namespace larch::pbt
