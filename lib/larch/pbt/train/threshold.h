// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/samples.h"

namespace larch::pbt {

/// A threshold of the posterior, and the Dice coefficient of the voxels above it.
struct ScoredThreshold {
  double threshold = 0.5, dice = 0;
};

/// Of the thresholds 0.01, 0.02, ... 0.99 the one with the largest Dice coefficient over all voxels
/// of the held-out volumes together; of equal ones that which is nearest to 1/2, the lower of two.
/// The whole volumes are evaluated, in model space, with the voxels at the boundary that no samples
/// are drawn from. None if no voxel of them is of the class. The same on every device, since voxels
/// are counted.
std::optional<ScoredThreshold> best_threshold(const Model& model,
                                              const std::vector<TrainingVolume>& volumes,
                                              std::span<const size_t> held_out,
                                              const Context& context);

}  // namespace larch::pbt
