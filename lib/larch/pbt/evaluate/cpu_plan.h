// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/features/lane_kernels.h"
#include "larch/pbt/evaluate/evaluate.h"

// What the walks of the CPU share.
namespace larch::pbt::cpu {

/// The trees on the host.
struct CpuTrees final : WalkPlan {
  std::vector<CompiledTree> trees;
  std::vector<std::vector<features::cpu::VoteRule>> rules;  ///< by tree and weak classifier
};

/// A tree and its weak classifiers for the loops over an image.
struct TreePlan {
  const CompiledTree& compiled;
  tree::TreeView view;                         ///< with the thresholds of the job
  std::vector<features::LinearTap> taps;       ///< as offsets in the channel of each
  std::vector<int32_t> channels;               ///< that each weak classifier reads
  std::vector<features::cpu::VoteRule> rules;  ///< one per weak classifier; they point into `taps`
  std::vector<int32_t> levels;                 ///< index in CpuPlan::levels of each weak classifier

  /// `channel_level`: as in CpuPlan.
  TreePlan(const CpuTrees& all, size_t t, const EvaluateJob& job,
           std::span<const size_t> channel_level);
  TreePlan(const TreePlan&) = delete;  // the rules of a copy would point into this one's taps
  TreePlan(TreePlan&&) = default;
};

/// The trees for an image, and the levels of the pyramid that its channels are on.
struct CpuPlan {
  std::vector<TreePlan> trees;
  std::vector<int> levels{0};         ///< distinct; the first is 0
  std::vector<size_t> channel_level;  ///< index in `levels` of each channel

  /// Places the trees of a job whose plan cpu::plan made.
  explicit CpuPlan(const EvaluateJob& job);
};

/// The voxels of a tile visit a node together, left subtree first; a subtree that no voxel of the
/// tile reaches is skipped.
void tile_walk(const CpuPlan& plan, const EvaluateJob& job, const Context& context);

/// Each voxel by itself.
void stack_walk(const CpuPlan& plan, const EvaluateJob& job, const Context& context);

}  // namespace larch::pbt::cpu
