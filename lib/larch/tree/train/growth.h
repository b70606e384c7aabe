// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "larch/learning/feature_matrix.h"
#include "larch/tree/train/grow.h"

namespace larch::tree {

/// Everything that growing a tree works on.
struct Growth {
  const GrowTask& task;
  PartialTree partial{};
  std::vector<NodeSamples> lists{};                             ///< of the nodes not yet finished
  std::vector<std::vector<HeldOutVisit>> visits{};              ///< of every finished node
  std::shared_ptr<const learning::PreparedColumns> prepared{};  ///< those that the tree may use
};

}  // namespace larch::tree
