// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/ensemble.h"
#include "larch/tree/train/samples.h"

namespace larch::tree {

/// -ln of the probability p of the class, or of 1 - p; at most that of 1e-12.
double log_loss_of(double p, bool positive);

/// Log-loss and area under the ROC curve of posteriors, weighted by mass.
struct HeldOutScore {
  double log_loss = 0, auc = 0;
};
HeldOutScore score(const std::vector<double>& posterior, const Samples& samples);

/// Posterior of each of `count` held-out samples, by a tree as far as it has grown: those in
/// `lists` wait at their nodes, those in `visits` have passed (both by node).
std::vector<double> frontier_posteriors(const Ensemble& tree, const std::vector<NodeSamples>& lists,
                                        const std::vector<std::vector<HeldOutVisit>>& visits,
                                        size_t count);

/// Posterior of the samples 0 .. count - 1 of a source, by an ensemble whose features are columns
/// of the source, without the nodes below each depth: the mean of its trees' (Birkbeck, Sofka, Zhou
/// 2011, Algorithm 2); [depth][sample], that of the whole ensemble last. In doubles from integers,
/// the same on every device.
std::vector<std::vector<double>> posteriors_by_depth(const Ensemble& trees,
                                                     const learning::FeatureSource& source,
                                                     size_t count, const Context& context);

/// Reduced-error pruning: turns nodes into leaves, bottom-up, where the held-out log-loss does not
/// rise by more than 1e-6, and removes what became unreachable.
void prune(Ensemble& tree, const std::vector<std::vector<HeldOutVisit>>& visits,
           const Samples& held_out);

}  // namespace larch::tree
