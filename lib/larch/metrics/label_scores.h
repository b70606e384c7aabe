// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/metrics/scores.h"

namespace larch::metrics {

struct LabelScoreConfig {
  std::vector<int> labels{};
  std::vector<int> prediction_labels{};
  std::vector<int> ignore{};
  bool merge = false;
  bool surfaces = true;
  template <class F>
  void fields(F&& f) {
    f(Field{"labels", labels, "labels to score; empty = all that occur, except 0"},
      Field{"prediction_labels", prediction_labels,
            "with merge: the labels of the prediction, if they are not those of the reference"},
      Field{"ignore", ignore,
            "voxels in which the reference has one of these labels are left out of every figure, "
            "as those of the label 'ignore' of nnU-Net"},
      Field{"merge", merge, "score only the union of the labels, as one structure"},
      Field{"surfaces", surfaces, "measure surface distances too"});
  }
};

/// Scores of each label (unless config.merge) and then of the union of the labels: dice, jaccard,
/// prediction_mm3, reference_mm3, volume_difference_mm3, relative_volume_difference (overlap.h),
/// surface_mean_mm, surface_median_mm, surface_p95_mm, surface_max_mm (surface_distance.h), and
/// total_correct_fraction. Voxels that are ignored belong to no structure: surfaces end there.
/// Throws InputError if the grids differ, UsageError for prediction_labels
/// without merge, and MemoryError, before they are made, if the surfaces of a structure take more
/// than `surface_bytes`.
std::vector<StructureScores> score_labels(const LabelVolume& prediction,
                                          const LabelVolume& reference,
                                          const LabelScoreConfig& config, const Context& context,
                                          int64_t surface_bytes = INT64_MAX);

}  // namespace larch::metrics
