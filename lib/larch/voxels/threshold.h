// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/voxels/model.h"
#include "larch/voxels/samples.h"

namespace larch::voxels {

/// A threshold of the probability of the structures, and the Dice coefficients of the voxels above
/// it.
struct ScoredThreshold {
  double threshold = 0.5;
  double dice = 0;                   ///< mean of the classes that occur
  std::vector<double> class_dice{};  ///< of each class; -1: it does not occur
};

/// Finds the best of the thresholds 0.01, 0.02, ... 0.99. The same on every device, since voxels
/// are counted.
class ThresholdSearch {
 public:
  static constexpr int kNone = -1;  ///< the true class of a voxel outside of the structures

  explicit ThresholdSearch(size_t classes);
  /// Adds a voxel: the probability that it is of a structure, its class if it is, and the true one.
  void add(float probability, size_t likeliest, int truth);
  /// The threshold with the largest mean Dice coefficient over all voxels together; of equal ones
  /// that which is nearest to 1/2, the lower of two. None if no voxel is of a class.
  std::optional<ScoredThreshold> best() const;

 private:
  static constexpr int kSteps = 100;
  /// By how many of the thresholds the probability is above.
  using Counts = std::array<int64_t, kSteps>;
  std::array<float, kSteps - 1> thresholds_{};
  std::vector<Counts> found_, right_;  ///< voxels of each class as the model says, and right ones
  std::vector<int64_t> true_;          ///< voxels of each class
};

/// Stores it in a model and says so.
void store_threshold(const ScoredThreshold& best, ModelInfo& info, const Context& context);

}  // namespace larch::voxels
