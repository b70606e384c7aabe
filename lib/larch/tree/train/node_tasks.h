// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/strong_classifier.h"
#include "larch/tree/train/growth.h"

namespace larch::tree {

/// What a node is trained on.
struct NodeTask {
  size_t node = 0;
  std::shared_ptr<const learning::PreparedColumns> columns;
  std::vector<uint32_t> selected;  ///< of the samples
  std::vector<uint8_t> positive;
  std::vector<double> weight;
  int rounds = 0;
};
NodeTask make_task(const Growth& growth, size_t node, const Context& context);

/// Trains the strong classifiers of nodes of one level, which do not depend on each other.
std::vector<learning::StrongClassifier> train_nodes(const Growth& growth,
                                                    std::span<const NodeTask> tasks,
                                                    const Context& context);

/// How many of the weak classifiers give the least exponential loss on the held-out samples of a
/// node, giving up after validation.patience rounds without improvement.
size_t best_length(const GrowTask& task, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context);

/// Those of `columns` (empty: all of the task's source), prepared.
std::shared_ptr<const learning::PreparedColumns> prepare_columns(
    const GrowTask& task, const std::vector<uint32_t>& columns, const Context& context);

}  // namespace larch::tree
