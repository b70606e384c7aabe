// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "larch/core/device.h"
#include "larch/features/tap.h"
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

/// Returns the trees of a model that check_model accepts. Their thresholds are those of the model.
std::vector<CompiledTree> compile(const Model& model);

/// Holds what a device makes of the trees, for all walks. Made once and read only, by as many
/// threads and streams as want to. The implementations derive from it.
struct WalkPlan {
  WalkPlan() = default;
  virtual ~WalkPlan() = default;
  WalkPlan(const WalkPlan&) = delete;
  WalkPlan& operator=(const WalkPlan&) = delete;
};

/// Boosting trees on one device, for any images, settings and threads: what does not depend on
/// these is made here, so that an evaluation only places the taps in the channels of its image.
struct ResidentModel {
  /// The work is done on return. Throws UsageError for a model without trees or with too many
  /// channels or taps for the device.
  ResidentModel(Model model, const Device& device);

  Model model;
  Device device;
  std::vector<features::Tap> boxes;  ///< around the taps of each channel: features::widen
  std::shared_ptr<const WalkPlan> plan;
};

/// The walk that `Walk::kAuto` means, by what was measured: on the CPU tile; on a CUDA device queue
/// for trees of more than kTileLevels levels and for regions of interest of less than a tenth of
/// the voxels, else tile. `share`: of the voxels that are evaluated.
constexpr int kTileLevels = 7;
Walk chosen_walk(Walk wanted, int depth, double share, const Device& device);

/// Makes what does not depend on the image, from the trees that compile gave.
namespace cpu {
std::shared_ptr<const WalkPlan> plan(const Model& model, std::vector<CompiledTree> trees,
                                     const Device& device);
}
namespace cuda {
std::shared_ptr<const WalkPlan> plan(const Model& model, std::vector<CompiledTree> trees,
                                     const Device& device);
}

}  // namespace larch::pbt
