// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/features/lane_kernels.h"
#include "larch/learning/boost.h"

namespace larch::learning::cpu {

using features::cpu::CodeRule;
using features::cpu::kLanes;

/// Consecutive features of one channel and the elements of the integral volume that they read
/// around a sample. Thousands of features share a few thousand elements: copied into a patch, with
/// kLanes samples side by side, they are read from the nearest cache and by whole vectors.
struct PatchPlan {
  size_t first_feature = 0;
  uint16_t channel = 0;
  std::vector<int32_t> offsets;           ///< of the rows of the patch, ascending
  std::vector<features::LinearTap> taps;  ///< of all features; offset: row of the patch
  std::vector<CodeRule> rules;            ///< one a feature; they point into `taps`
};

/// Plans for features 0 .. count-1, in their order. A patch has at most as many rows as the second
/// level cache holds, or those of a single feature.
std::vector<PatchPlan> plan_patches(const PoolFeature* features, const features::LinearTap* taps,
                                    size_t count);

/// Copies the rows of the selected samples first .. first + kLanes - 1 into `patch`, [row][lane].
/// Beyond the last sample the last one is repeated.
void fill_patch(const PatchPlan& plan, const SamplePlaces& places, size_t first,
                std::vector<uint32_t>& patch);

}  // namespace larch::learning::cpu
