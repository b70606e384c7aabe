// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/data/pose.h"
#include "larch/data/volume.h"

namespace larch::metrics {

/// Agreement of two masks on one grid.
struct Overlap {
  int64_t prediction_voxels = 0;
  int64_t reference_voxels = 0;
  int64_t common_voxels = 0;
  double prediction_mm3 = 0;
  double reference_mm3 = 0;
  double dice = 1;     ///< 2 |A and B| / (|A| + |B|); 1 if both are empty
  double jaccard = 1;  ///< |A and B| / |A or B|; 1 if both are empty
  /// Voxels on which the masks agree, inside and outside, over all voxels; 1 if there are none.
  double total_correct_fraction = 1;
  double volume_difference_mm3 = 0;  ///< prediction - reference
  /// Difference over reference; 0 if both are empty, NaN if only the reference is.
  double relative_volume_difference = 0;
};

/// The agreement of structures with so many voxels, of `voxels` in all.
Overlap overlap(int64_t prediction, int64_t reference, int64_t common, int64_t voxels,
                double voxel_mm3);

/// What two label maps hold of a label: its voxels, and the box from `low` to `high`, both
/// included, with those of both.
struct LabelCount {
  int32_t label = 0;
  int64_t prediction = 0, reference = 0, common = 0;
  Vec3i low{INT32_MAX, INT32_MAX, INT32_MAX}, high{-1, -1, -1};

  void include(const Vec3i& first, const Vec3i& last) {
    low = {std::min(low.x, first.x), std::min(low.y, first.y), std::min(low.z, first.z)};
    high = {std::max(high.x, last.x), std::max(high.y, last.y), std::max(high.z, last.z)};
  }
};

/// Labels that occur, ascending, 0 too.
struct LabelCounts {
  int64_t voxels = 0;  ///< that count
  std::vector<LabelCount> labels{};
};

/// Counts all labels in one pass, without the voxels in which the reference has one of `ignore`.
/// Throws InputError, which says what differs, if the grids are not the same (require_on_grid).
LabelCounts count_labels(const LabelVolume& prediction, const LabelVolume& reference,
                         std::span<const int32_t> ignore = {});

/// 1 where the label is one of `values`.
Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values);

/// Throws InputError, which says what differs, if the grids are not the same (require_on_grid).
Overlap overlap(const Volume<uint8_t>& prediction, const Volume<uint8_t>& reference);

/// Volume of the intersection of two boxes over that of their union, 0 to 1: exact but for
/// rounding.
double box_iou(const Pose& a, const Pose& b);

}  // namespace larch::metrics
