// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/features/lane_kernels.h"
#include "larch/features/linear/linear_source.h"

namespace larch::features::cpu {

/// Consecutive features and the elements of the integral volumes that they read around a sample.
/// Thousands of features share a few thousand elements: copied into a patch, with kLanes samples
/// side by side, they are read from the nearest cache and by whole vectors.
struct PatchPlan {
  size_t first_feature = 0;  ///< in the list of columns
  /// The rows of the patch: elements of a channel, ascending by channel and offset.
  struct Row {
    uint16_t channel = 0;
    int32_t offset = 0;
  };
  std::vector<Row> rows;
  std::vector<LinearTap> taps;  ///< of all features; offset: row of the patch
  std::vector<CodeRule> rules;  ///< one per feature; they point into `taps`
};

/// Plans for the features at `columns` of `all`, in their order, whose codes come from `maps`
/// (parallel to columns). A patch has at most as many rows as the second level cache holds, or
/// those of a single feature.
std::vector<PatchPlan> plan_patches(const LinearColumns& all, std::span<const uint32_t> columns,
                                    std::span<const learning::CodeMap> maps);

/// Copies the rows of samples[first] .. samples[first + kLanes - 1] into `patch`, [row][lane].
/// Beyond the last of `count` samples the last one is repeated. No list: sample k is number k.
void fill_patch(const PatchPlan& plan, const SamplePlaces& places,
                std::span<const uint32_t> samples, size_t count, size_t first,
                std::vector<uint32_t>& patch);

}  // namespace larch::features::cpu
