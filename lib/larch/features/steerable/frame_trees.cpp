// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/steerable/frame_trees.h"

#include <algorithm>
#include <bit>

#include "larch/features/lane_kernels.h"

namespace larch::features {
namespace {

/// Columns have room for lanes that a node leaves over at their end.
std::vector<int32_t> columns_of(std::span<const SteerableFeature> features,
                                const std::vector<tree::FlatWeak>& weaks) {
  const size_t length = weaks.size() + kWeakLanes;
  std::vector<int32_t> columns((kAlpha + 1) * length);
  for (size_t w = 0; w < weaks.size(); ++w) {
    const tree::FlatWeak& weak = weaks[w];
    const SteerableFeature& feature = features[weak.feature];
    const PatternPoint point = point_of(feature);
    const auto vote = learning::make_fast_vote(weak.codes, weak.bins, weak.mask);
    const auto type = static_cast<int32_t>(feature.type);
    constexpr auto kFirst = static_cast<int32_t>(SteerableType::kGradientX), kNormal = 5;
    auto put = [&, at = w](auto... values) mutable {
      ((columns[at] = std::bit_cast<int32_t>(values), at += length), ...);
    };
    put(point.steps[0], point.steps[1], point.steps[2], point.shrink, int32_t{feature.level}, type,
        type < kFirst ? kNormal : type - kFirst, vote.lo, vote.multiplier, vote.remainder,
        vote.shift, static_cast<uint32_t>(vote.mask), static_cast<uint32_t>(vote.mask >> 32),
        weak.alpha);
  }
  return columns;
}

}  // namespace

#ifndef __x86_64__
int32_t FrameResponse::votes(const tree::TreeView&, const tree::FlatNode&) const {
  return 0;  // never called: there are no columns
}
#endif

tree::ResidentTrees resident_trees(std::span<const SteerableFeature> features,
                                   const std::vector<tree::FlatTree>& trees, const Device& device) {
  tree::ResidentTrees resident = tree::make_resident(trees, device);
  const bool has_avx2 = cpu::all_lane_kernels().size() > 1;
  const auto is_other = [](const auto& f) { return f.type > SteerableType::kAlongZ; };
  if (device.is_cuda() || !has_avx2 || features.empty() || std::ranges::any_of(features, is_other))
    return resident;
  for (size_t t = 0; t < trees.size(); ++t) {
    resident.columns.push_back(columns_of(features, trees[t].weaks));
    tree::TreeView& view = resident.views.data()[t];
    view.columns = resident.columns[t].data();
    view.column_length = static_cast<int64_t>(trees[t].weaks.size()) + kWeakLanes;
  }
  return resident;
}

}  // namespace larch::features
