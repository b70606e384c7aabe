// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/pbt/evaluate/compiled_model.h"

// What this device makes of compiled trees, once and for any number of volumes and threads.
namespace larch::pbt::cuda {

/// A tree on the device.
struct TreePlan {
  std::vector<tree::FlatNode> nodes;  ///< on the host, for the queue walk
  uint32_t root_q = 0;                ///< of a tree that is one leaf
  PackedTree packed;
  std::optional<Tiling> tiling;  ///< of the tile walk; none where queues take its place

  bool is_leaf() const { return nodes[0].n_weak == 0; }
};

struct Plan final : WalkPlan {
  Walk walk = Walk::kTile;
  std::vector<TreePlan> trees;
};
/// The plan of a job, which cuda::plan made.
inline const Plan& plan_of(const WalkPlan* plan) {
  return static_cast<const Plan&>(*plan);
}

}  // namespace larch::pbt::cuda
