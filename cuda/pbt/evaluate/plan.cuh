// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cuda/pbt/evaluate/packed_tree.cuh"
#include "larch/pbt/evaluate/compiled_model.h"

// What this device makes of compiled trees, once and for any number of volumes and threads.
namespace larch::pbt::cuda {

/// A tile and its copy in shared memory.
struct Tiling {
  Vec3i bricks{};  ///< of a tile, along x, y, z
  Vec3i tiles{};   ///< of the image
  Vec3i lo{};      ///< first element of the copy, relative to the tile's first voxel
  Vec3i extent{};  ///< elements of the copy
  int row = 0, plane = 0;
  int channel = 0;  ///< that is copied
};

/// How the tile walk leads voxels through a tree: on copies of tiles, or on the integral volume if
/// no copy fits.
struct TilePlan {
  Tiling tiling;
  size_t shared_bytes = 0;
  size_t copy_bytes = 0;
  bool staged = false;
  bool mixed = false;  ///< some weak classifiers use channels that are not copied
};
/// The plan for a tree; `wanted`: voxels of a tile, or 0, 0, 0. Of `staged`, the taps of the copied
/// channel are to be packed for the copy.
TilePlan plan_tiles(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts,
                    const Vec3i& wanted, const Device& device, StagedTaps* staged);

/// A tree on the device.
struct TreePlan {
  std::vector<tree::FlatNode> nodes;  ///< on the host, for the queue walk
  uint32_t root_q = 0;                ///< of a tree that is one leaf
  PackedTree packed;
  TilePlan tiles;  ///< for the tile walk alone
  bool many_channels = false;

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
