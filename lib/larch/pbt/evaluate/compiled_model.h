// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/features/tap.h"
#include "larch/image/integral.h"
#include "larch/pbt/evaluate/evaluate_config.h"
#include "larch/pbt/model.h"
#include "larch/tree/flat_tree.h"

namespace larch::pbt {

/// The taps of a weak classifier's feature.
struct TapRange {
  uint32_t first = 0, count = 0;
  int32_t channel = 0;  ///< of all of them
};

/// A tree on box features, whose offsets are still relative to the voxel, on the host.
struct CompiledTree : tree::FlatTree {
  std::vector<features::Tap> taps;
  std::vector<TapRange> ranges;  ///< one per weak classifier

  std::span<const features::Tap> taps_of(size_t weak) const {
    return std::span(taps).subspan(ranges[weak].first, ranges[weak].count);
  }
};

/// Holds what a device makes of the trees for one walk: the taps as offsets in memory, the trees
/// packed, the shape of tiles. Made once and read only, by as many threads as want to. The
/// implementations derive from it.
struct WalkPlan {
  WalkPlan() = default;
  virtual ~WalkPlan() = default;
  WalkPlan(const WalkPlan&) = delete;
  WalkPlan& operator=(const WalkPlan&) = delete;
};

/// A model that is compiled for volumes whose integral channels have the same strides, padding and
/// levels. Its memory belongs to the stream of the context that it was compiled with.
struct CompiledModel {
  std::vector<CompiledTree> trees;
  Walk walk = Walk::kTile;
  std::shared_ptr<const WalkPlan> plan;
};

/// Compiles a model that check_model accepts for volumes such as `set`, on context.device, where
/// the work is done on return. `share`: of the voxels that will be evaluated, on which the walk
/// depends if the configuration leaves it open. Throws MemoryError if an offset leaves 32 bits,
/// UsageError if a feature reaches beyond the padding.
CompiledModel compile(const Model& model, const image::IntegralSet& set,
                      const EvaluateConfig& config, const Context& context, double share = 1);

/// The walk that `Walk::kAuto` means, by what was measured: on the CPU tile; on a CUDA device queue
/// for trees of more than kTileLevels levels and for regions of interest of less than a tenth of
/// the voxels, else tile. `share`: of the voxels that are evaluated.
constexpr int kTileLevels = 7;
Walk chosen_walk(Walk wanted, int depth, double share, const Device& device);

/// Holds what one implementation of the planning receives.
struct PlanJob {
  std::span<const CompiledTree> trees;
  std::span<const image::IntegralLayout> layouts;
  Walk walk = Walk::kTile;
};
namespace cpu {
std::shared_ptr<const WalkPlan> plan(const PlanJob& job, const Context& context);
}
namespace cuda {
std::shared_ptr<const WalkPlan> plan(const PlanJob& job, const Context& context);
}

}  // namespace larch::pbt
