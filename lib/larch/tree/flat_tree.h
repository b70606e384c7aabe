// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/tree/ensemble.h"
#include "larch/tree/traversal_math.h"

namespace larch::tree {

/// A tree in the form that traversals read, on the host.
struct FlatTree {
  std::vector<FlatNode> nodes;  ///< as in the ensemble, numbered from the root of the tree
  std::vector<FlatWeak> weaks;  ///< those of inner nodes, node after node
  std::vector<uint32_t> logistic;
  Thresholds thresholds;
  int depth = 0;  ///< of the deepest node

  /// Pointers into this object.
  TreeView view() const;
};

/// Returns the trees of an ensemble that check_ensemble accepts.
std::vector<FlatTree> flatten(const Ensemble& trees, const EvaluationRule& rule);

/// Trees on one device, for as many launches as wanted.
struct ResidentTrees {
  std::vector<Buffer<FlatNode>> nodes;
  std::vector<Buffer<FlatWeak>> weaks;
  std::vector<Buffer<uint32_t>> logistic;
  std::vector<std::vector<int32_t>> columns;  ///< by tree, of TreeView; or none
  Buffer<TreeView> views;  ///< of the trees, with pointers into the other buffers
};
ResidentTrees make_resident(const std::vector<FlatTree>& trees, const Device& device);

}  // namespace larch::tree
