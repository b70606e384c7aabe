// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/features/steerable/steerable_math.h"
#include "larch/learning/weak_math.h"

// Weak classifiers of one node at one frame, eight side by side: the loop in which detection and
// refinement on the CPU spend their time.
namespace larch::features::cpu {

constexpr int kVoteLanes = 8;

/// Eight weak classifiers of features of the set base9, in columns; what is left over in the last
/// ones of a node adds nothing.
struct alignas(32) VoteBlock {
  float point[3][kVoteLanes];  ///< of the pattern, in steps from its middle
  float shrink[kVoteLanes];    ///< of the level
  int32_t level[kVoteLanes], type[kVoteLanes];
  int32_t direction[kVoteLanes];  ///< of FrameLanes that the gradient is projected on
  int32_t lo[kVoteLanes];         ///< learning::FastVote
  uint32_t multiplier[kVoteLanes], remainder[kVoteLanes], shift[kVoteLanes];
  uint32_t low_mask[kVoteLanes], high_mask[kVoteLanes];
  int32_t alpha[kVoteLanes];
};

/// A frame and its images as the loop reads them.
struct alignas(32) FrameLanes {
  FrameLanes(const SteerableFrame& of, const SteerableImages& in);

  const SteerableFrame& frame;
  const SteerableImages& images;
  float directions[3][kVoteLanes];  ///< axes of the image, then of the box
  int32_t sizes[3][kVoteLanes];     ///< by level
};

/// Returns blocks of up to kVoteLanes weak classifiers, whose features are numbers in `features`;
/// none where this machine or a feature is not fit for them.
std::vector<VoteBlock> make_vote_blocks(
    std::span<const SteerableFeature> features,
    const std::vector<std::span<const learning::WeakClassifier>>& weaks);

/// Returns the sum of the alphas, each with the sign of its vote.
int32_t votes_of(const VoteBlock& block, const FrameLanes& at);

/// The blocks of a model at a frame, as tree::block_posterior asks for them.
struct BlockVotes {
  const VoteBlock* blocks;
  FrameLanes at;
  int32_t operator()(int32_t block) const { return votes_of(blocks[block], at); }
};

}  // namespace larch::features::cpu
