// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/ensemble.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/tree_config.h"

namespace larch::tree {

/// Returns the weak classifiers of a node.
std::span<const WeakClassifier> weaks_of(const Ensemble& tree, const Node& node);

/// Routes all training samples of a node to its children, those whose posterior lies within
/// routing_band of one half to both (Tu 2005): `scores`, the node's H at each sample of the list.
void route_training(const Ensemble& tree, const TreeConfig& config, const NodeSamples& list,
                    std::span<const int32_t> scores, std::array<NodeSamples, 2>& children,
                    int threads);

/// Routes the held-out samples as evaluation would, and notes the node's H at each.
void route_held_out(const Ensemble& tree, NodeSamples& list, std::span<const int32_t> scores,
                    std::array<NodeSamples, 2>& children);

/// Follows the samples 0 .. count - 1 of a source down a tree and lists, per node, who arrives
/// there with a positive weight. Nodes from `first_node` on are not left again.
std::vector<std::vector<uint32_t>> arrivals(const Ensemble& tree,
                                            const learning::FeatureSource& source, size_t count,
                                            size_t first_node, const Context& context);

}  // namespace larch::tree
