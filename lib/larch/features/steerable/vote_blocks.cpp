// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/steerable/vote_blocks.h"

#include <algorithm>

namespace larch::features::cpu {

FrameLanes::FrameLanes(const SteerableFrame& of, const SteerableImages& in)
    : frame(of), images(in) {
  for (int axis = 0; axis < 3; ++axis) {
    for (int k = 0; k < 3; ++k) {
      directions[axis][k] = k == axis ? 1.0F : 0.0F;
      directions[axis][3 + k] = of.axes[k][axis];
      sizes[axis][k] = in.sizes[k][axis];
    }
  }
}

namespace {

bool takes_blocks(std::span<const SteerableFeature> features) {
  const bool is_base = std::all_of(features.begin(), features.end(),
                                   [](const auto& f) { return f.type <= SteerableType::kAlongZ; });
#ifdef __x86_64__
  return is_base && __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

VoteBlock block_of(std::span<const SteerableFeature> features,
                   std::span<const learning::WeakClassifier> weaks) {
  VoteBlock block{};
  for (size_t k = 0; k < weaks.size(); ++k) {
    const learning::WeakClassifier& weak = weaks[k];
    const SteerableFeature& feature = features[weak.feature];
    const PatternPoint point = point_of(feature);
    for (size_t axis = 0; axis < 3; ++axis) block.point[axis][k] = point.steps[axis];
    block.shrink[k] = point.shrink;
    block.level[k] = feature.level;
    block.type[k] = static_cast<int32_t>(feature.type);
    constexpr int kFirst = static_cast<int>(SteerableType::kGradientX), kAlongAxis = 5;
    block.direction[k] = block.type[k] < kFirst ? kAlongAxis : block.type[k] - kFirst;
    const learning::FastVote vote = learning::make_fast_vote(weak.codes, weak.bins, weak.mask);
    block.lo[k] = vote.lo;
    block.multiplier[k] = vote.multiplier;
    block.remainder[k] = vote.remainder;
    block.shift[k] = vote.shift;
    block.low_mask[k] = static_cast<uint32_t>(vote.mask);
    block.high_mask[k] = static_cast<uint32_t>(vote.mask >> 32);
    block.alpha[k] = weak.alpha_q20;
  }
  return block;
}

}  // namespace

std::vector<VoteBlock> make_vote_blocks(
    std::span<const SteerableFeature> features,
    const std::vector<std::span<const learning::WeakClassifier>>& weaks) {
  std::vector<VoteBlock> blocks;
  if (!takes_blocks(features)) return blocks;
  for (const auto& of : weaks) blocks.push_back(block_of(features, of));
  return blocks;
}

}  // namespace larch::features::cpu
