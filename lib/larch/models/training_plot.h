// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/data/rgb_image.h"
#include "larch/forest/model.h"
#include "larch/pbt/model.h"
#include "larch/picture/plot.h"

namespace larch::models {

/// Returns the training history of a model, a curve per depth of its trees. With e_s the weighted
/// error of round s, a strong classifier of t rounds is wrong about at most the share
///
///     B(t) = product over s <= t of 2 sqrt(e_s (1 - e_s)),    B(0) = 1,
///
/// of the samples that it was trained on, by their starting weights (Freund, Schapire 1997, theorem
/// 6). A curve is the mean of B over the nodes of its depth, of all trees, each weighted by the
/// number of samples that reached it; a node whose rounds have ended keeps its last value.
std::vector<picture::Curve> history_curves(const pbt::Model& model);

/// The curves in a pair of axes, and above them the score on held-out volumes if there is one.
/// Below them the scores of the trees cut off at each depth, if the model has them. The same model
/// gives the same bytes.
RgbImage history_plot(const pbt::Model& model);

/// Returns the accuracy of a forest on held-out volumes over the depth at which it is cut off.
RgbImage forest_plot(const forest::Model& model);

}  // namespace larch::models
